"""What a user sees while a model is fitted, which takes minutes with hundreds of runs."""

from __future__ import annotations

from collections.abc import Callable

from rich import progress as bars
from rich.console import Console

from gridbench.model.fit import Watch
from gridbench.terminal_bars import TerminalBars

Fitting = Callable[[str], Watch | None]
"""Told what a model is fitted to next; returns who watches that."""


def nobody(_: str) -> None:
    """Watches none."""


class Progress(TerminalBars):
    """Which of some fits goes on, and its searches, on a terminal; elsewhere a line for each."""

    def __init__(self, console: Console, fits: int) -> None:
        super().__init__(
            console,
            bars.SpinnerColumn(),
            bars.TextColumn("{task.description}"),
            bars.TimeElapsedColumn(),
            transient=True,
        )
        self._fits = fits
        self._number = 0
        self._line = self._bars.add_task("", total=None)

    def begin(self, what: str) -> Watch:
        """A model is fitted to `what`."""
        self._number += 1
        title = f"fit {self._number} of {self._fits}, to {what}"
        if not self._console.is_terminal:
            self._console.print(f"  {title}", soft_wrap=True)

        def watch(done: int, planned: int) -> None:
            self._show(f"{title}: search {min(done + 1, planned)} of {planned}")

        self._show(title)
        return watch

    def _show(self, text: str) -> None:
        if self._console.is_terminal:
            self._bars.update(self._line, description=text, refresh=True)
