"""CPU time of each test file, with that of the processes it waits for.

Elapsed time says little where tests share a machine. A daemon that a test does not wait for counts
only in the total.
"""

from __future__ import annotations

import os
import resource
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest

#: How many files the summary lists.
LISTED = 40


@dataclass
class Usage:
    """What the tests of a file have used."""

    cpu: float = 0.0
    elapsed: float = 0.0
    tests: int = 0


class CpuTime:
    """Plugin that measures in each process that runs tests, and sums up in the one that reports."""

    def __init__(self) -> None:
        self._last = _own_and_children()
        self._busy = _machine()
        self._files: defaultdict[str, Usage] = defaultdict(Usage)
        self._collection = 0.0

    def _since_last(self) -> float:
        now = _own_and_children()
        used, self._last = now - self._last, now
        return used

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collection = self._since_last()
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output["collection"] = self._collection

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._collection += getattr(node, "workeroutput", {}).get("collection", 0.0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        report = yield
        report.cpu = self._since_last()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        usage = self._files[report.location[0]]
        usage.cpu += getattr(report, "cpu", 0.0)
        usage.elapsed += report.duration
        usage.tests += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        terminalreporter.section("CPU time, in seconds")
        total = sum(usage.cpu for usage in self._files.values())
        write(f"{total:8.1f} in tests, {self._collection:.1f} to import and collect them,")
        write(f"{_machine() - self._busy:8.1f} in all programs on this machine")
        write(f"{'CPU':>8} {'elapsed':>8} {'tests':>6}  file")
        for name, usage in sorted(self._files.items(), key=lambda one: -one[1].cpu)[:LISTED]:
            write(f"{usage.cpu:8.1f} {usage.elapsed:8.1f} {usage.tests:6}  {name}")


def _own_and_children() -> float:
    """CPU seconds of this process, and of children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _machine() -> float:
    """CPU seconds of all programs since the machine has started."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system = map(int, file.readline().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")
