"""Many client processes: at the same time, for long, mostly idle, and while a server restarts."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.figures import Area, AreaCase, Extent, PlannedRow, Target, Values, noise_row
from benchmarks.programs import FOLDER, programs
from gridbench.process.children import PYTHON
from gridbench.process.memory import footprint, tree
from gridbench.statistics.series import Histogram
from gridbench_testbed.services.gridrpc_server import GridrpcServer

LOAD = str(FOLDER / "server_load.py")
"""A client in Python."""
_CONNECT = 120.0  # seconds until the first results, on a machine with few processors
_END = 20.0  # seconds that a process has to end


@dataclass(frozen=True, slots=True)
class Report:
    """Observations of one client."""

    calls: int
    failed: int
    seconds: float
    inside: float = 0.0
    """Seconds that its calls spent inside the function, where the function measures that."""
    longest: float = 0.0
    """Seconds of its longest call."""
    times: Histogram = field(default_factory=Histogram)


@dataclass(frozen=True, slots=True)
class Together:
    """Observations of all clients."""

    reports: list[Report]

    @property
    def rate(self) -> float:
        """Calls per second of all of them."""
        return sum(one.calls / one.seconds for one in self.reports)

    @property
    def failed(self) -> int:
        """Calls without a result."""
        return sum(one.failed for one in self.reports)

    @property
    def inside(self) -> float:
        """Share of the clients' time that their calls spent inside the function."""
        return sum(one.inside for one in self.reports) / sum(one.seconds for one in self.reports)

    @property
    def fairness(self) -> float:
        """The most calls of a client by the fewest."""
        counts = [one.calls for one in self.reports]
        return max(counts) / min(counts) if min(counts) else float("inf")

    def percentile(self, percent: float) -> float:
        """Seconds that so many percent of all calls did not exceed."""
        every = Histogram()
        for one in self.reports:
            every = every.merged(one.times)
        return every.percentile(percent)


def calls(
    folder: str, server: str, count: int, function: str, seconds: float, *number: float
) -> Clients:
    """So many programs in C that call a function of the server for so long."""
    name = f"gridbench_server/{function}"
    command = [f"{folder}/load", "calls", name, str(seconds), *map(str, number)]
    return Clients([command] * count, {**os.environ, "GRIDRPC_SERVERS": server})


class Clients:
    """While active, processes that print `ready`, wait for a line, and print a report.

    RuntimeError when one of them fails.
    """

    def __init__(
        self, commands: Sequence[Sequence[str]], environment: Mapping[str, str] | None = None
    ) -> None:
        self._commands = commands
        self._environment = environment
        self._processes: list[subprocess.Popen[str]] = []
        self._stack = contextlib.ExitStack()
        self._errors: Any = None

    def begin(self) -> None:
        """Have all of them call."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()

    def reports(self) -> Together:
        """Wait for the end of all."""
        found = []
        for process in self._processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            # It takes its leave of the server, which others still measure.
            if not line:
                raise RuntimeError(self._why(process))
            found.append(_report(line))
        return Together(found)

    def together(self) -> Together:
        """Have all of them call, and wait for the end."""
        self.begin()
        return self.reports()

    def __enter__(self) -> Clients:
        self._errors = self._stack.enter_context(tempfile.TemporaryFile("w+"))
        try:
            for command in self._commands:
                process = subprocess.Popen(
                    command, env=self._environment, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=self._errors, text=True,
                )  # fmt: skip
                self._processes.append(process)
            end = time.monotonic() + _CONNECT
            for process in self._processes:
                self._wait_for_ready(process, end)
        except BaseException:
            self._end(at_once=True)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(at_once=kind is not None)

    def _wait_for_ready(self, process: subprocess.Popen[str], end: float) -> None:
        assert process.stdout is not None
        for line in _lines(process.stdout, end):
            if line.strip() == "ready":
                return
        raise RuntimeError(self._why(process))

    def _why(self, process: subprocess.Popen[str]) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        ended = "runs on" if process.returncode is None else f"ended with {process.returncode}"
        return f"a client has no result, and {ended}: {' / '.join(lines[-3:])}"

    def _end(self, *, at_once: bool) -> None:
        """`at_once`: nobody waits for calls that are still to come."""
        for process in self._processes:
            if at_once:
                process.terminate()
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
        self._stack.close()


def _lines(stream: Any, end: float) -> Iterator[str]:
    """Lines of a process as they come, until it ends, or the time is over."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while selector.select(max(0.0, end - time.monotonic())):
            line = stream.readline()
            if not line:
                return
            yield line


def _report(line: str) -> Report:
    found = json.loads(line)
    times = Histogram.from_record(found.pop("times", {}))
    return Report(**found, times=times)


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
            program = [*PYTHON, LOAD, "idle", server.tls, str(_PAUSE)]
            stack.enter_context(
                Clients([[*program, str(size)] for size in sizes])
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
