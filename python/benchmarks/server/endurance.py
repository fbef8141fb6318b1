"""Many clients for a long time, a thousand that are mostly idle, and a server that is restarted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.figures import Area, AreaCase, Extent, PlannedRow, Target, Values, noise_row
from benchmarks.server.clients import PROGRAMS, Clients, Together, calls
from benchmarks.server.latency import programs
from gridbench.process.children import PYTHON
from gridbench.process.memory import footprint, tree
from gridbench.statistics.series import Histogram
from gridbench_testbed.services.gridrpc_server import GridrpcServer

_SOAKED = {Extent.TRIAL: (3, 0.5), Extent.USUAL: (64, 10.0), Extent.FULL: (64, 600.0)}
"""Clients, and seconds."""
_RESTARTS = {Extent.TRIAL: (2, 1), Extent.USUAL: (16, 3), Extent.FULL: (16, 20)}
"""Clients, and how often the server is restarted."""
_AROUND = 1.0  # seconds of calls before a restart, and after it
_MOSTLY_IDLE = {Extent.TRIAL: 4, Extent.USUAL: 200, Extent.FULL: 1000}
_EACH = 50  # clients in one process
_PAUSE = 10.0  # seconds between two calls of a client that is mostly idle
_ACTIVE = {Extent.TRIAL: 0.2, Extent.USUAL: 3.0, Extent.FULL: 10.0}


def _module(folder: str) -> list[Path]:
    return [Path(folder, "gridbench_server.so")]


def soak(folder: str, clients: int, seconds: float, workers: int) -> Values:
    """Calls, calls lost, bytes of the server and its workers near the beginning and the end, and
    times of calls in s."""
    with (
        GridrpcServer(_module(folder), workers, tls=True) as server,
        calls(folder, server.tls, clients, "null", seconds) as group,
    ):
        group.begin()
        time.sleep(0.1 * seconds)
        before = footprint(tree(server.pid))
        time.sleep(0.8 * seconds)
        after = footprint(tree(server.pid))
        found = group.reports()
    return {
        "rate": found.rate, "lost": found.failed, "before": before, "after": after,
        **_times("", found),
    }  # fmt: skip


def restarts(folder: str, clients: int, count: int, workers: int) -> Values:
    """Seconds that a client waits at most while the server is stopped and started again, and calls
    lost."""
    longest: list[float] = []
    down: list[float] = []
    lost = 0
    with GridrpcServer(_module(folder), workers, tls=True) as server:
        for _ in range(count):
            seconds = 2 * _AROUND + (max(down) if down else 1.0)
            with calls(folder, server.tls, clients, "null", seconds) as group:
                group.begin()
                time.sleep(_AROUND)
                begin = time.perf_counter()
                server.stop()
                server.start()
                down.append(time.perf_counter() - begin)
                found = group.reports()
            longest += [one.longest for one in found.reports]
            lost += found.failed
    return {
        "p99": Histogram.of(longest).percentile(99), "max": max(longest), "lost": lost,
        "down": sum(down) / len(down),
    }  # fmt: skip


def idle(folder: str, clients: int, seconds: float, workers: int) -> Iterator[Values]:
    """Bytes of the server for each client of the first half and the second, and times of calls of
    another client in s, without them (twice) and with them."""
    with GridrpcServer(_module(folder), workers, tls=True) as server, ExitStack() as stack:

        def active(name: str) -> Values:
            with calls(folder, server.tls, 1, "null", seconds) as group:
                return _times(f"{name} ", group.together())

        yield active("without")
        yield active("again")
        memory = [footprint(tree(server.pid))]
        for half in (clients // 2, clients - clients // 2):
            sizes = [min(_EACH, half - done) for done in range(0, half, _EACH)]
            program = [*PYTHON, str(PROGRAMS / "idle.py"), server.tls]
            stack.enter_context(
                Clients([[*program, str(size), f"{_PAUSE}"] for size in sizes])
            )  # fmt: skip
            memory.append(footprint(tree(server.pid)))
        yield {
            "first half": (memory[1] - memory[0]) / (clients // 2),
            "second half": (memory[2] - memory[1]) / (clients - clients // 2),
        }
        yield active("with")


def _times(name: str, found: Together) -> Values:
    return {f"{name}p50": found.percentile(50), f"{name}p99": found.percentile(99)}


def _case(
    name: str, function: object, timeout: float, most_runs: int = 3, **arguments: object
) -> AreaCase:
    folder, missing = programs()
    return AreaCase(
        name=name,
        function=function,  # type: ignore[arg-type]  # one of those above
        arguments={"folder": folder, "workers": os.cpu_count() or 1, **arguments},
        missing=missing,
        most_runs=most_runs,
        timeout=timeout,
    )


def soak_area(extent: Extent) -> Area:
    """Once in full, as it takes long."""
    clients, seconds = _SOAKED[extent]
    most_runs = 1 if extent is Extent.FULL else 3
    case = _case("soak", soak, 300 + seconds, most_runs, clients=clients, seconds=seconds)
    before, after = case["before"] * 1e-6, case["after"] * 1e-6
    memory = "memory of the server and its workers near the end; limit: near the beginning"
    bound = Target(1.05, of_limit=True)
    rows = [
        PlannedRow("calls", "/s", case["rate"], digits=0),
        PlannedRow("calls lost", "", case["lost"], target=Target(0), digits=0),
        PlannedRow(memory, "MB", after, limit=before, target=bound, digits=1),
        *(
            PlannedRow(f"time of a call, {name}", "us", case[name] * 1e6, digits=0)
            for name in ("p50", "p99")
        ),
    ]
    title = f"Null calls of {clients} clients at once over TLS, for {seconds} s"
    return Area("server/soak", title, [case], rows)


def restart_area(extent: Extent) -> Area:
    """Some restarts, one after the other."""
    clients, count = _RESTARTS[extent]
    case = _case("restart", restarts, 300 + 10.0 * count, clients=clients, count=count)
    down = "from the request to stop until all workers of the new server are ready"
    longest = "the longest call of a client, p99 of all clients and restarts"
    rows = [
        PlannedRow(down, "s", case["down"]),
        PlannedRow(longest, "s", case["p99"]),
        PlannedRow("the longest call of all", "s", case["max"]),
        PlannedRow("calls lost", "", case["lost"], target=Target(0), digits=0),
    ]
    title = (
        f"{count} restarts of a server (stopped, and started again) that {clients} clients call"
        " without a pause, over TLS; the function is idempotent"
    )
    return Area("server/restart", title, [case], rows)


def idle_area(extent: Extent) -> Area:
    """The server's memory for them, and what they cost another client."""
    clients = _MOSTLY_IDLE[extent]
    case = _case("idle clients", idle, 900.0, clients=clients, seconds=_ACTIVE[extent])
    rows = [
        PlannedRow(f"memory of the server for a client, {half} of {clients}", "MB", value * 1e-6)
        for half, value in ((half, case[half]) for half in ("first half", "second half"))
    ]
    for name in ("p50", "p99"):
        without, others = case[f"without {name}"] * 1e6, case[f"with {name}"] * 1e6
        again, what = case[f"again {name}"] * 1e6, f"{name} of a client alone by itself"
        rows.append(noise_row(what, without, again))
        what = f"{name} of an active client; limit: without the others"
        rows.append(PlannedRow(what, "us", others, limit=without, digits=1))
    title = f"{clients} clients over TLS, each with a call every {_PAUSE} s, and an active one"
    return Area("server/idle", title, [case], rows)
