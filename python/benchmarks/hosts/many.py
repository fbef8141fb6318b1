"""Thousands of native workers on many hosts, which are agents on this machine.

How long they take to start and to end, what memory they hold (their own processes and those of the
hosts, pages that they share counted once), and what a call costs, beside a grid of fewer workers.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import deque

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from benchmarks.hosts.places import local, programs
from gridbench.bench.series import Points
from gridbench.process.memory import footprint, tree
from gridrpc import Grid

_HOSTS = {Extent.TRIAL: 2, Extent.USUAL: 50, Extent.FULL: 50}
_WORKERS = {Extent.TRIAL: (4, 8), Extent.USUAL: (100, 1000), Extent.FULL: (100, 1000, 5000)}
_CALLS = {Extent.TRIAL: 500, Extent.USUAL: 5_000, Extent.FULL: 20_000}
_WINDOW = 256  # calls under way
_START = 600.0  # seconds that workers may take


def crowd(folder: str, hosts: int, workers: int, count: int) -> Values:
    """Seconds to start, bytes per worker, us per call one by one and many under way, s to end."""
    begin = time.perf_counter()
    server = f"{local(hosts, workers // hosts, 'tls')}&start_timeout={_START:g}"
    grid = Grid(servers=[server], worker="native", modules=[folder])
    try:
        grid.wait_until_ready(_START)
        started = time.perf_counter() - begin
        take = grid.function("gridbench_hosts/take")
        for _ in grid.map(take, range(10 * workers), chunk=1):
            pass
        memory = footprint([pid for pid in tree(os.getpid()) if pid != os.getpid()])
        alone = []
        for number in range(count // 10):
            at = time.perf_counter()
            take(number)
            alone.append(time.perf_counter() - at)
        at = time.perf_counter()
        under_way = deque(take.submit(number) for number in range(_WINDOW))
        for number in range(count):
            under_way.popleft().result()
            under_way.append(take.submit(number))
        together = (time.perf_counter() - at) / count
    finally:
        at = time.perf_counter()
        grid.close()
        closed = time.perf_counter() - at
    return {
        "start": started,
        "memory": memory / workers,
        "alone": 1e6 * statistics.median(alone),
        "together": 1e6 * together,
        "close": closed,
    }


def area(extent: Extent) -> Area:
    """All numbers of workers; the smallest is what the others are compared with."""
    folder, missing = programs()
    hosts, numbers = _HOSTS[extent], _WORKERS[extent]
    cases = [
        AreaCase(name, crowd, {
                "folder": folder, "hosts": hosts, "workers": workers, "count": _CALLS[extent],
            }, missing=missing, most_runs=3 if workers > 1000 else None, timeout=1200)
        for workers in numbers
        for name in (_name(workers), *([_again(workers)] if workers == numbers[0] else []))
    ]  # fmt: skip
    title = f"Native workers on {hosts} hosts of this machine over TLS; peer: {numbers[0]} workers"
    return Area("hosts/many", title, tuple(cases), lambda s: _rows(s, numbers), part="many")


def _name(workers: int) -> str:
    return f"{workers:,} workers"


def _again(workers: int) -> str:
    return f"{_name(workers)}, again"


def _rows(samples: Points, numbers: tuple[int, ...]) -> list[Row]:
    least = _name(numbers[0])
    rows = []
    for quantity, what in (("together", f"a call, {_WINDOW} under way"), ("alone", "a call alone")):
        once, again = samples.of(least, quantity), samples.of(_again(numbers[0]), quantity)
        rows.append(noise_row(f"{what}, {least} by themselves", once, again))
        for workers in numbers[1:]:
            rows.append(
                Row(
                    f"{what}, {_name(workers)}",
                    "us",
                    samples.of(_name(workers), quantity),
                    peer=once,
                    target=Target(1.3, of_peer=True),
                    digits=1,
                )
            )
    for quantity, what in (("start", "start"), ("close", "close")):
        rows += [
            Row(f"{what}, {_name(workers)}", "s", samples.of(_name(workers), quantity))
            for workers in numbers
        ]
    rows += [
        Row(
            f"memory of each of {_name(workers)}, agents and spawners included",
            "MB",
            samples.of(_name(workers), "memory").scaled(1e-6),
            digits=2,
        )
        for workers in numbers
    ]
    return rows
