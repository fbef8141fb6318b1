"""What a user sees while a simulation goes on, and Ctrl-C."""

from __future__ import annotations

from rich.console import Console

from gridbench.process.interrupt import Interrupt
from gridbench.progress import Tasks


class Stopped(Exception):
    """The user wants an end."""


class Progress(Tasks):
    """Tasks that have come back, of one run after another."""

    def __init__(self, console: Console, interrupt: Interrupt) -> None:
        super().__init__(console, transient=True)
        self._interrupt = interrupt

    def watch(self, done: int) -> None:
        """So many tasks have come back. Raises Stopped if the user has asked for an end."""
        if self._interrupt.came:
            raise Stopped
        self.update(done)
