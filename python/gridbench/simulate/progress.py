"""What a user sees while a simulation goes on, and Ctrl-C."""

from __future__ import annotations

import time

from rich import progress as bars
from rich.console import Console

from gridbench.run.interrupt import Interrupt
from gridbench.terminal_bars import TerminalBars

_BETWEEN_REDRAWS = 0.1  # seconds
_BETWEEN_LINES = 10.0  # seconds, where lines pile up instead of being redrawn


class Stopped(Exception):
    """The user wants an end."""


class Progress(TerminalBars):
    """Tasks that have come back, of one run after another: a bar on a terminal, elsewhere a plain
    line every few seconds. It raises `Stopped` when the user has asked for an end."""

    def __init__(self, console: Console, interrupt: Interrupt) -> None:
        super().__init__(
            console,
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TimeElapsedColumn(),
            transient=True,
        )
        self._interrupt = interrupt
        self._title = ""
        self._tasks = 0
        self._drawn = time.monotonic()
        self._bar = self._bars.add_task("", total=None)

    def begin(self, title: str, tasks: int) -> None:
        """Another run begins, of so many tasks."""
        self._title, self._tasks = title, tasks
        self._bars.reset(self._bar, total=tasks, description=title)

    def watch(self, done: int) -> None:
        """So many tasks have come back."""
        if self._interrupt.came:
            raise Stopped
        now = time.monotonic()
        terminal = self._console.is_terminal
        if now - self._drawn < (_BETWEEN_REDRAWS if terminal else _BETWEEN_LINES):
            return
        self._drawn = now
        if terminal:
            self._bars.update(self._bar, completed=done, refresh=True)
        else:
            self._console.print(f"{self._title}: {done:,}/{self._tasks:,} tasks", soft_wrap=True)
