"""What a user sees while an engine is run for advice."""

from __future__ import annotations

import time

from rich import progress as bars
from rich.console import Console

from gridbench.terminal_bars import TerminalBars

_BETWEEN_REDRAWS = 0.25  # seconds


class Progress(TerminalBars):
    """How many of the runs have been made, and which one goes on: a bar that only a terminal
    shows."""

    def __init__(self, console: Console, title: str, runs: int) -> None:
        super().__init__(
            console,
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TimeElapsedColumn(),
            bars.TextColumn("{task.fields[what]}", markup=False),
            transient=True,
        )
        self._begun = 0
        self._drawn = time.monotonic()
        self._bar = self._bars.add_task(title, total=runs, what="")

    def begin(self, what: str) -> None:
        """Another run begins."""
        self._bars.update(self._bar, completed=self._begun, what=what)
        self._begun += 1
        self._draw()

    def skip(self) -> None:
        """A run is left out."""
        self._begun += 1

    def glance(self) -> None:
        """Show the time, unless that was done a moment ago."""
        if time.monotonic() - self._drawn >= _BETWEEN_REDRAWS:
            self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if self._console.is_terminal:
            self._bars.refresh()
