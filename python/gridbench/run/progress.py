"""What a user sees while a run goes on."""

from __future__ import annotations

import time

from rich import progress as bars
from rich.console import Console

from gridbench.formats import clock
from gridbench.terminal_bars import TerminalBars

_BETWEEN_REDRAWS = 0.1  # seconds
_BETWEEN_LINES = 5.0  # seconds, where lines pile up instead of being redrawn
_RATE_SPAN = 10.0  # seconds over which the rate is taken


class Progress(TerminalBars):
    """Progress of one pass: tasks done, running, rate, remaining time.

    A bar on a terminal; elsewhere a plain line every few seconds. It is drawn only from
    `update`, by the caller's thread: the other threads are busy with being on time.
    """

    def __init__(self, console: Console, title: str, ntasks: int, nnodes: int) -> None:
        super().__init__(
            console,
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[state]}"),
            bars.TimeElapsedColumn(),
        )
        self._title = title
        self._ntasks = ntasks
        self._nnodes = nnodes
        self._started = time.monotonic()
        self._drawn = self._started
        self._counts: list[tuple[float, int]] = [(self._started, 0)]
        self._bar = self._bars.add_task(title, total=ntasks, state="starting")

    def update(
        self, done: int, submitted: int, failed: int, *, doing: str = "", last: bool = False
    ) -> None:
        """Show the counts, unless they were shown a moment ago; `last`: in any case.

        `doing`: what has to be over before there is something to count.
        """
        now = time.monotonic()
        terminal = self._console.is_terminal
        if not last and now - self._drawn < (_BETWEEN_REDRAWS if terminal else _BETWEEN_LINES):
            return
        self._drawn = now
        state = doing or self._state(now, done, submitted, failed)
        if terminal:
            self._bars.update(self._bar, completed=done, state=state, refresh=True)
        else:
            self._console.print(
                f"{self._title}: {done}/{self._ntasks} done, {state}", soft_wrap=True
            )

    def _state(self, now: float, done: int, submitted: int, failed: int) -> str:
        # What is out and beyond the number of workers waits in the engine.
        running = min(max(0, submitted - done), self._nnodes)
        self._counts.append((now, done))
        while len(self._counts) > 2 and now - self._counts[1][0] > _RATE_SPAN:
            self._counts.pop(0)
        then, before = self._counts[0]
        rate = (done - before) / (now - then) if now > then else 0.0
        parts = [f"{running} running", f"{rate:.1f} tasks/s"]
        if done < self._ntasks:
            left = clock((self._ntasks - done) / rate) if rate > 0 else "-"
            parts.append(f"{left} left")
        if failed:
            parts.append(f"{failed} failed")
        return ", ".join(parts)
