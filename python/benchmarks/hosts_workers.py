"""Starting workers on hosts by ssh, and thousands of workers on many hosts."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections import deque
from urllib.parse import quote, urlencode

from benchmarks.figures import (
    Area,
    AreaCase,
    Extent,
    PlannedRow,
    Target,
    Values,
    noise_row,
    shuffled,
)
from benchmarks.programs import local, missing_sshd, programs
from gridbench.process.memory import footprint, tree
from gridbench_testbed.links.sshd import Rig
from gridrpc import Grid

# Part `start`: workers on hosts behind ssh until all work, beside as many bare `ssh true` at once.
# The hosts are network namespaces with an sshd each. An earlier grid has copied program and module.

_START_HOSTS = {Extent.TRIAL: 2, Extent.USUAL: 8, Extent.FULL: 8}
_START_WORKERS = 2  # on each host
_REPEATED = {Extent.TRIAL: 1, Extent.USUAL: 2, Extent.FULL: 3}
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
    missing = missing or missing_sshd()
    case = AreaCase("workers through ssh", started, arguments, missing=missing, timeout=300)
    ours, ssh = case["ours"], case["ssh"]
    allowed, target = ssh * 1.3 + _ALLOWANCE, Target(1.0, of_limit=True)
    rows = [
        noise_row("`ssh true` to all hosts by itself", ssh, case["again"]),
        PlannedRow("from nothing to all at work", "s", ours, limit=ssh),
        PlannedRow(
            f"the same; limit: 1.3 x `ssh true` + {_ALLOWANCE} s", "s", ours,
            limit=allowed, target=target,
        ),
        PlannedRow("the first time, with copying", "s", case["first"]),
    ]  # fmt: skip
    workers = _START_WORKERS * hosts
    title = f"{workers} native workers on {hosts} hosts by ssh; limit: `ssh true` at once"
    return Area("hosts/start", title, [case], rows)


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

    def case_of(workers: int, more: str = "") -> AreaCase:
        return AreaCase(
            f"{workers:,} workers{more}", crowd,
            {"folder": folder, "hosts": hosts, "workers": workers, "count": _CALLS[extent]},
            missing=missing, most_runs=3 if workers > 1000 else None, timeout=1200,
        )  # fmt: skip

    least, *others = cases = [case_of(workers) for workers in numbers]
    again = case_of(numbers[0], ", again")
    rows = []
    for quantity, what in (("together", f"a call, {_WINDOW} under way"), ("alone", "a call alone")):
        once, target = least[quantity], Target(1.3, of_peer=True)
        rows.append(noise_row(f"{what}, {least.name} by themselves", once, again[quantity]))
        for case in others:
            name, ours = f"{what}, {case.name}", case[quantity]
            rows.append(PlannedRow(name, "us", ours, peer=once, target=target, digits=1))
    for quantity in ("start", "close"):
        rows += [PlannedRow(f"{quantity}, {case.name}", "s", case[quantity]) for case in cases]
    for case in cases:
        what = f"memory of each of {case.name}, agents and spawners included"
        rows.append(PlannedRow(what, "MB", case["memory"] * 1e-6, digits=2))
    title = f"Native workers on {hosts} hosts of this machine over TLS; peer: {numbers[0]} workers"
    return Area("hosts/many", title, [least, again, *others], rows)
