"""What a user sees while a scenario runs."""

from __future__ import annotations

import time

from rich import progress as bars
from rich.console import Console

from gridbench.formats import about, duration
from gridbench.scenario.results import CaseResult
from gridbench.terminal_bars import TerminalBars

_BETWEEN_REDRAWS = 0.25  # seconds


class Progress(TerminalBars):
    """How far all cases are, and when the last of them is expected to end.

    A bar on a terminal; elsewhere a line for each case.
    """

    def __init__(self, console: Console, cases: int, seconds: float) -> None:
        """`seconds`: how long all cases are expected to take."""
        super().__init__(
            console,
            bars.TextColumn("{task.fields[cases]}"),
            bars.BarColumn(),
            bars.TaskProgressColumn(),
            bars.TextColumn("{task.fields[state]}"),
        )
        self._cases = cases
        self._number = 0
        self._what = ""
        self._left = seconds
        self._done = 0.0
        self._began = self._drawn = time.monotonic()
        self._expected = 0.0
        self._bar = self._bars.add_task("", total=max(seconds, 1e-9), cases="", state="")

    def begin(self, what: str, expected: float, left: float) -> None:
        """A case begins that is expected to take so many seconds; `left`: all from here on."""
        self._number += 1
        self._what, self._expected, self._left = what, expected, left
        self._began = time.monotonic()
        self.glance(now=True)

    def glance(self, *, now: bool = False) -> None:
        """Show how far it is, unless that was done a moment ago."""
        moment = time.monotonic()
        if not self._console.is_terminal or (not now and moment - self._drawn < _BETWEEN_REDRAWS):
            return
        self._drawn = moment
        inside = min(moment - self._began, self._expected)
        left = max(0.0, self._left - inside)
        end = time.strftime("%H:%M", time.localtime(time.time() + left))
        self._bars.update(
            self._bar,
            total=max(self._done + self._left, 1e-9),
            completed=self._done + inside,
            cases=f"case {self._number} of {self._cases}",
            state=f"{self._what}; {about(left)} left, until about {end}",
            refresh=True,
        )

    def end(self, result: CaseResult) -> None:
        """The case that began last has ended, or one was skipped."""
        if result.status == "skipped" and result.took_s == 0:
            self._number += 1
        self._done += result.took_s
        self._left = max(0.0, self._left - self._expected)
        self._expected = 0.0
        good = result.status == "done"
        if not self._console.is_terminal or not good:
            self._console.print(
                f"{self._number}/{self._cases} {result.engine}, {result.case}: {told(result)}",
                soft_wrap=True,
                markup=False,
            )


def told(result: CaseResult) -> str:
    """The outcome of a case in a line."""
    times = ""
    if result.total_s is not None and result.ideal_s is not None:
        times = f"{duration(result.total_s)}, without overhead {duration(result.ideal_s)}"
    if result.status == "done":
        return times
    return f"{result.status}: {result.reason}" + (f" ({times})" if times else "")
