"""What a user sees while the micro benchmarks run."""

from __future__ import annotations

import time

from rich.console import Console

from gridbench.formats import about
from gridbench.micro.plan import Session

_BETWEEN_LINES = 30.0  # seconds, where lines pile up instead of being redrawn


class Progress:
    """Tells what is being measured, and how long it will take from here."""

    def __init__(self, console: Console, seconds: float) -> None:
        """`seconds`: how long all of it takes, by the plan."""
        self._console = console
        self._left = seconds
        self._planned = 0.0
        self._took = 0.0
        self._told = time.monotonic()

    def begin(self, number: int, rounds: int, session: Session) -> None:
        """A session begins."""
        line = (
            f"round {number + 1} of {rounds}: {session.label}, {session.name};"
            f" about {about(self.left)} left"
        )
        if self._console.is_terminal:
            self._console.file.write(f"\r\x1b[K{line[: self._console.width - 1]}")
            self._console.file.flush()
        elif time.monotonic() - self._told > _BETWEEN_LINES:
            self._told = time.monotonic()
            self._console.print(line, soft_wrap=True, markup=False)

    def end(self, planned: float, took: float) -> None:
        """A session that should have taken `planned` seconds took so many."""
        self._left -= planned
        self._planned += planned
        self._took += took

    @property
    def left(self) -> float:
        """Seconds; the plan corrected by how well it has fitted so far."""
        # Until something has been measured the plan is all there is.
        factor = (self._took + 10) / (self._planned + 10)
        return max(0.0, self._left) * factor

    def close(self) -> None:
        """Leave the line empty for what comes."""
        if self._console.is_terminal:
            self._console.file.write("\r\x1b[K")
            self._console.file.flush()
