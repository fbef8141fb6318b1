"""100 MB that a forked pool inherits: the case in which nothing has to be sent at all.

The data is there before the workers are, so that fork gives it to them. It is shown beside the
other, in which it is made later; it needs no engine that shares.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from gridbench.bench.client import Client, Found, WrongResult
from gridbench.process.barrier import Meeting
from gridbench.workload.calls import read, read_and_meet

_data: Any = None


def inherited(client: Client, size: int) -> Found:
    """`first`, `later`: seconds until all workers of the pool have read it; `first` forks them."""
    global _data
    _data = np.full(size, 1, np.uint8)
    expected = read(_data)
    times = []
    with ProcessPoolExecutor(client.workers, mp_context=get_context("fork")) as pool:
        for _ in range(3):
            with Meeting(client.patience) as meeting:
                begin = time.monotonic()
                futures = [
                    pool.submit(_read_inherited, meeting.place) for _ in range(client.workers)
                ]
                times.append(max(meeting.gather(client.workers)) - begin)
                meeting.end()
                if any(future.result() != expected for future in futures):
                    raise WrongResult("a worker read other data than it inherited")
    return Found({"first": times[0], "later": min(times[1:])})


def _read_inherited(place: str) -> int:
    return read_and_meet(_data, place)
