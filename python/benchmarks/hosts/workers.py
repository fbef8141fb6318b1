"""Starting workers on hosts by ssh, and thousands of workers on many hosts."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections import deque
from urllib.parse import quote, urlencode

from benchmarks.figures import Area, AreaCase, Extent, Row, Target, Values, noise_row, shuffled
from benchmarks.programs import local, programs
from benchmarks.requirements import missing_sshd
from gridbench.bench.points import Points
from gridbench.process.memory import footprint, tree
from gridbench.statistics.series import Series
from gridbench_testbed.links.sshd import Rig
from gridrpc import Grid

# Part `start`: workers on hosts behind ssh until all work, beside as many bare `ssh true` at once.
# The hosts are network namespaces with an sshd each. An earlier grid has copied program and module.

_START_HOSTS = {Extent.TRIAL: 2, Extent.USUAL: 8, Extent.FULL: 8}
_START_WORKERS = 2  # on each host
_REPEATED = {Extent.TRIAL: 1, Extent.USUAL: 2, Extent.FULL: 3}
_CASE = "workers through ssh"
_ALLOWANCE = 0.15  # seconds above 1.3 times the bare logins


def started(folder: str, hosts: int, repeated: int) -> Values:
    """Seconds for all workers to work, the first time and later; for the bare logins, twice."""
    with Rig(hosts) as rig:
        names = [f"node{number}" for number in rig.nodes]

        def ours() -> float:
            begin = time.perf_counter()
            values = {"command": f"ssh -F {rig.config}", "workers": _START_WORKERS}
            keys = urlencode(values, quote_via=quote)
            servers = [f"ssh://{name}?{keys}" for name in names]
            with Grid(servers=servers, worker="native", modules=[folder]) as grid:
                grid.wait_until_ready()
                take = grid.function("gridbench_hosts/take")
                for call in [take.submit(number) for number in range(_START_WORKERS * hosts)]:
                    call.result()
                return time.perf_counter() - begin

        def logins() -> float:
            begin = time.perf_counter()
            options = ["-F", str(rig.config), "-oBatchMode=yes"]
            running = [
                subprocess.Popen(["ssh", *options, name, "true"], stdin=subprocess.DEVNULL)
                for name in names
            ]
            statuses = [process.wait() for process in running]
            if any(statuses):
                raise RuntimeError("a login failed")
            return time.perf_counter() - begin

        first = ours()
        logins()
        rounds = [shuffled({"ours": ours, "ssh": logins, "again": logins}) for _ in range(repeated)]
        best = {name: min(one[name] for one in rounds) for name in rounds[0]}
        return {"first": first, **best}


def start_area(extent: Extent) -> Area:
    """One case."""
    folder, missing = programs()
    hosts = _START_HOSTS[extent]
    arguments = {"folder": folder, "hosts": hosts, "repeated": _REPEATED[extent]}
    case = AreaCase(_CASE, started, arguments, missing=missing or missing_sshd(), timeout=300)
    workers = _START_WORKERS * hosts
    title = f"{workers} native workers on {hosts} hosts by ssh; limit: `ssh true` at once"
    return Area("hosts/start", title, (case,), _start_rows, part="start")


def _start_rows(samples: Points) -> list[Row]:
    ours, ssh = samples.of(_CASE, "ours"), samples.of(_CASE, "ssh")
    allowed = {number: 1.3 * value + _ALLOWANCE for number, value in ssh.by_round.items()}
    return [
        noise_row("`ssh true` to all hosts by itself", ssh, samples.of(_CASE, "again")),
        Row("from nothing to all at work", "s", ours, limit=ssh),
        Row(
            f"the same; limit: 1.3 x `ssh true` + {_ALLOWANCE} s",
            "s",
            ours,
            limit=Series(allowed, ssh.problem),
            target=Target(1.0, of_limit=True),
        ),
        Row("the first time, with copying", "s", samples.of(_CASE, "first")),
    ]


# Part `many`: start, end, memory (shared pages counted once) and calls of thousands of native
# workers on many hosts, which are agents on this machine, beside a grid of fewer workers.

_MANY_HOSTS = {Extent.TRIAL: 2, Extent.USUAL: 50, Extent.FULL: 50}
_MANY_WORKERS = {Extent.TRIAL: (4, 8), Extent.USUAL: (100, 1000), Extent.FULL: (100, 1000, 5000)}
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


def many_area(extent: Extent) -> Area:
    """All numbers of workers; the smallest is what the others are compared with."""
    folder, missing = programs()
    hosts, numbers = _MANY_HOSTS[extent], _MANY_WORKERS[extent]
    cases = [
        AreaCase(name, crowd, {
                "folder": folder, "hosts": hosts, "workers": workers, "count": _CALLS[extent],
            }, missing=missing, most_runs=3 if workers > 1000 else None, timeout=1200)
        for workers in numbers
        for name in (_name(workers), *([_again(workers)] if workers == numbers[0] else []))
    ]  # fmt: skip
    title = f"Native workers on {hosts} hosts of this machine over TLS; peer: {numbers[0]} workers"
    return Area("hosts/many", title, tuple(cases), lambda s: _many_rows(s, numbers), part="many")


def _name(workers: int) -> str:
    return f"{workers:,} workers"


def _again(workers: int) -> str:
    return f"{_name(workers)}, again"


def _many_rows(samples: Points, numbers: tuple[int, ...]) -> list[Row]:
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
