"""What a user sees while cases are measured."""

from __future__ import annotations

import time

from rich.console import Console

from gridbench.bench.figures import Area, Case, Run
from gridbench.formats import about

_BETWEEN_REDRAWS = 0.25  # seconds


class Progress:
    """Which run of which case goes on, for how long, and how long the area can still take.

    A line that is drawn anew on a terminal; elsewhere one for each run of an area with a budget,
    whose runs take long.
    """

    def __init__(self, console: Console, area: Area, *, runs: int, areas_left: int) -> None:
        """`areas_left`: how many come after this one."""
        self._console = console
        self._area = area
        self._runs = runs
        self._areas_left = areas_left
        self._what = self._limits = ""
        self._began = self._drawn = 0.0

    def begin(self, number: int, case: Case, *, limit: float, left: float | None) -> None:
        """A run begins."""
        self._began = time.monotonic()
        self._drawn = 0.0
        self._what = f"{self._area.name}: round {number + 1} of {self._runs}, {case.name}"
        self._limits = f" of at most {about(limit)}"
        if left is not None:
            self._limits += f"; this part has {about(left)} left"
        if self._areas_left:
            self._limits += f", {self._areas_left} more to come"
        if self._says_lines:
            self._line(f"{self._what}, {self._limits.removeprefix(' of ')} ...")
        self.glance()

    def glance(self) -> None:
        """Show how long it has been going on."""
        now = time.monotonic()
        if not self._console.is_terminal or now - self._drawn < _BETWEEN_REDRAWS:
            return
        self._drawn = now
        line = f"{self._what}: {now - self._began:.0f} s{self._limits}"
        self._console.file.write(f"\r\x1b[K{line[: self._console.width - 1]}")
        self._console.file.flush()

    def end(self, number: int, case: Case, run: Run) -> None:
        """It has ended: what did not give all its values is told at once."""
        del number, case
        told = run.problem or f"done in {run.seconds:.0f} s"
        if self._says_lines or run.problem:
            self._line(f"{self._what}: {told}")

    def close(self) -> None:
        """Leave the line empty for what comes."""
        if self._console.is_terminal:
            self._console.file.write("\r\x1b[K")
            self._console.file.flush()

    @property
    def _says_lines(self) -> bool:
        return not self._console.is_terminal and self._area.budget is not None

    def _line(self, text: str) -> None:
        self.close()
        self._console.print(text, soft_wrap=True, markup=False, highlight=False)
