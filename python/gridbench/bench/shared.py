"""Area `shared`: 100 MB given once and read by 16 Python workers that run already.

The clock runs from the moment the client has the array until the last worker has read one byte of
each of its pages. The workers then stay in the task until all have, so that each reads it, and
so that memory can be measured while they all hold it. The array is a new one each time. The first
time needs new memory; later the grid may use again what the data before had.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

import numpy as np
import numpy.typing as npt

import gridrpc
from gridbench.bench.crews import POOL, PYTHON, Crew, crew, warm_up
from gridbench.bench.figures import Area, Case, Row, Samples, Target, Values
from gridbench.bench.limits import copying
from gridbench.bench.processes import footprint, tree
from gridbench.bench.work import read, read_and_meet
from gridbench.engines.meeting import Meeting

_WORKERS = 16
_SIZE = 100_000_000
_GRID = f"shared data, {PYTHON}"
_POOL = f"shared data, {POOL}"
_COPY = "copying 100 MB"


def share(kind: str, workers: int, size: int, later: int) -> Values:
    """Seconds the first time, and (median) the times after it; copies by which memory grew."""
    with crew(kind, workers) as running:
        warm_up(kind, running, workers)
        _share_once(running, workers, np.zeros(1, np.uint8))
        seconds, grown = _share_once(running, workers, np.full(size, 1, np.uint8))
        again = [
            _share_once(running, workers, np.full(size, value, np.uint8))[0]
            for value in range(2, 2 + later)
        ]
    values = {"first": seconds, "copies": grown / size}
    return values | ({"later": statistics.median(again)} if again else {})


def _share_once(running: Crew, workers: int, array: npt.NDArray[np.uint8]) -> tuple[float, int]:
    expected = read(array)
    before = footprint(tree(os.getpid()))
    with Meeting() as meeting:
        begin = time.monotonic()
        data: Any = running.share(array) if isinstance(running, gridrpc.Grid) else array
        calls = [running.submit(read_and_meet, data, meeting.place) for _ in range(workers)]
        seconds = max(meeting.gather(workers)) - begin
        grown = footprint(tree(os.getpid())) - before
        meeting.end()
        if any(call.result() != expected for call in calls):
            raise RuntimeError("a worker read other data than were shared")
    return seconds, grown


def area(full: bool) -> Area:
    """In full the pool, which takes long, runs twice."""
    numbers = {"workers": _WORKERS, "size": _SIZE}
    grid = {"kind": PYTHON, "later": 5, **numbers}
    pool = {"kind": POOL, "later": 0, **numbers}
    return Area(
        "shared",
        "100 MB shared with 16 running Python workers; limit: one copy into new or warm memory",
        (
            Case(name=_GRID, function=share, arguments=grid),
            Case(name=_POOL, function=share, arguments=pool, most_runs=2 if full else 1),
            Case(name=_COPY, function=copying, arguments={"size": _SIZE}),
        ),
        _rows,
    )


def _rows(samples: Samples) -> list[Row]:
    pool = samples.of(_POOL, "first")
    return [
        Row(
            what="100 MB shared until all have read it, first time (new memory)",
            unit="s",
            ours=samples.of(_GRID, "first"),
            peer=pool,
            limit=samples.of(_COPY, "new"),
            target=Target(0.1),
        ),
        Row(
            what="the same, later in the same grid",
            unit="s",
            ours=samples.of(_GRID, "later"),
            peer=pool,
            limit=samples.of(_COPY, "warm"),
            target=Target(0.1),
        ),
        Row(
            what="memory of all processes grows by",
            unit="copies",
            ours=samples.of(_GRID, "copies"),
            peer=samples.of(_POOL, "copies"),
            # What the processes need besides the data is less than a tenth of it.
            target=Target(1.1),
            digits=2,
        ),
    ]
