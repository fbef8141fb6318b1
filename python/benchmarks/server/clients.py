"""Client processes that call at the same time, and what came of their calls."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gridbench.statistics.series import Histogram

PROGRAMS = Path(__file__).with_name("programs")
_CONNECT = 120.0  # seconds until the first results, on a machine with few processors
_END = 20.0  # seconds that a process has to end


@dataclass(frozen=True, slots=True)
class Report:
    """What one client has seen."""

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
    """What all clients have seen."""

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
