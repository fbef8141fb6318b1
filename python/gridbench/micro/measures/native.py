"""What is measured otherwise with native workers: they run no Python, and cannot meet."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gridbench.bench.client import Client, Found, NotStarted, WrongResult, one_line
from gridbench.micro.measures.calls import rate_by_map
from gridbench.micro.measures.start import memory
from gridbench.workload.calls import stand, take

if TYPE_CHECKING:
    from gridbench.engines.functions import Chunk

_AT_WORK = 1.0  # seconds that the first tasks last, much longer than bringing up takes


def map_rate(client: Client, chunk: Chunk) -> Found:
    """`per_second`: a function of a module that takes a number, over a range of them."""
    engine = client.engine

    def mapped(count: int) -> float:
        items = list(range(count))
        begin = time.perf_counter()
        results = list(engine.map(take, items, chunk))
        passed = time.perf_counter() - begin
        if len(results) != count or any(result is not None for result in results):
            raise WrongResult(f"map over {count} items gave other results")
        return passed

    return Found(rate_by_map(mapped, chunk, client.budget))


def bring_up(client: Client, numpy_loaded: bool) -> Found:
    """As `start.bring_up`, by tasks that sleep and the stamps of the workers."""
    if numpy_loaded:
        import numpy as np

        del np
    begin = time.monotonic()
    try:
        engine = client.make()
        engine.start(client.workers)
        calls = [engine.call(stand, _AT_WORK) for _ in range(client.workers)]
        engine.gather(calls)
    except Exception as error:  # whatever it is, nothing else can be measured
        raise NotStarted(one_line(error)) from error
    arrivals = [call.profile.calc_in for call in calls]
    processes = len({call.profile.pid for call in calls})
    if processes != client.workers:
        raise WrongResult(f"{client.workers} tasks at one time ran in {processes} processes")
    return Found(
        {"first": min(arrivals) - begin, "all": max(arrivals) - begin} | memory(client.workers)
    )


def tasks(client: Client, count: int, seconds: float) -> Found:
    """As `farm.tasks`; the results are the seconds slept."""
    engine = client.engine
    begin = time.monotonic()
    results = engine.gather([engine.call(stand, seconds) for _ in range(count)])
    passed = time.monotonic() - begin
    if len(results) != count or any(slept < seconds for slept in results):
        raise WrongResult(f"{count} tasks did not all come back well")
    return Found({"seconds": passed, "per_second": count / passed})
