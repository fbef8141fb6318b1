"""What a user sees while something takes long: a bar on a terminal, elsewhere a few lines."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich import progress as bars
from rich.console import Console
from rich.table import Column

from gridbench.formats import about, clock, digits
from gridbench.terminal import say

_BETWEEN_REDRAWS = 0.1  # seconds
_BETWEEN_LINES = 10.0  # seconds, where lines pile up instead of being redrawn
_RATE_SPAN = 10.0  # seconds over which a rate is taken
_DOUBT = 10.0  # seconds of steps that have to fit the plan before it is corrected much


class _Bar:
    """One bar, which only a terminal shows, and which is drawn only when it is asked to: what is
    measured meanwhile is not to be disturbed by a thread of ours."""

    def __init__(
        self, console: Console, *columns: bars.ProgressColumn, total: float | None, transient: bool
    ) -> None:
        self.console = console
        self._columns = bars.Progress(
            *columns, console=console, auto_refresh=False, transient=transient
        )
        self._bar = self._columns.add_task("", total=total, state="")
        self._drawn = self._reported_at = time.monotonic()

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._columns.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.console.is_terminal:
            self._columns.stop()

    def say(self, line: str) -> None:
        """A line that stays."""
        self._reported_at = time.monotonic()
        say(self.console, line)

    def _draw(self, title: str, state: str, completed: float, total: float | None) -> None:
        self._drawn = time.monotonic()
        self._columns.update(
            self._bar, description=title, state=state, completed=completed, total=total,
            refresh=True,
        )  # fmt: skip

    def _is_due(self, *, now: bool = False) -> bool:
        """Whether a terminal is to be drawn again."""
        waited = time.monotonic() - self._drawn
        return self.console.is_terminal and (now or waited >= _BETWEEN_REDRAWS)

    def _line_is_due(self, *, now: bool = False) -> bool:
        """Whether another plain line may be printed."""
        waited = time.monotonic() - self._reported_at
        return not self.console.is_terminal and (now or waited >= _BETWEEN_LINES)


class Steps(_Bar):
    """Steps one after the other, each of which may take long: cases, runs, sessions.

    A terminal shows the current step, since when, and how long all of them will take. Elsewhere
    the start of a step is reported every ten seconds at most.
    """

    def __init__(
        self,
        console: Console,
        noun: str,
        steps: int | None = None,
        *,
        seconds: float | None = None,
        transient: bool = True,
    ) -> None:
        """`noun`: what a step is called; `steps`: how many, and `seconds`: how long they take
        together, as far as that is known."""
        super().__init__(
            console,
            bars.TextColumn("{task.description}", markup=False),
            *([] if steps is None else [bars.BarColumn(20), bars.TaskProgressColumn()]),
            bars.TextColumn(
                "{task.fields[state]}",
                markup=False,
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            total=steps,
            transient=transient,
        )
        self._columns.expand = True
        self._noun = noun
        self.steps = steps
        """How many there are, if that is known."""
        self._number = 0
        self._what = self._note = ""
        self._expected = 0.0  # of the current step
        self._share: float | None = None  # of it that is done, where that is counted
        self._seconds = seconds  # of those that have not ended
        self._planned = self._took = 0.0  # of those that have
        self._began = time.monotonic()

    @property
    def number(self) -> int:
        """Of the current step, from 1."""
        return self._number

    @property
    def left(self) -> float | None:
        """Seconds until the last step ends, if that was planned: the plan, corrected by how well
        it has fitted so far."""
        if self._seconds is None:
            return None
        inside = min(time.monotonic() - self._began, self._expected)
        # Until something has been measured the plan is all there is.
        factor = (self._took + _DOUBT) / (self._planned + _DOUBT)
        return max(0.0, self._seconds - inside) * factor

    def begin(
        self,
        what: str,
        *,
        expected: float = 0.0,
        seconds: float | None = None,
        note: str = "",
    ) -> None:
        """A step begins that is expected to take so long. `seconds`: all from here on, if that is
        known better now; `note`: what else there is to say of it."""
        self._number += 1
        self._what, self._note, self._expected, self._share = what, note, expected, None
        if seconds is not None:
            self._seconds, self._took, self._planned = seconds, 0.0, 0.0
        self._began = time.monotonic()
        if self._line_is_due(now=self._number == 1):
            self.say(_joined(f"{self._title()}: {what}", note, self._end()))
        self.glance(now=True)

    def glance(self, *, now: bool = False) -> None:
        """Show how far it is, unless that was done a moment ago."""
        if not self._is_due(now=now):
            return
        inside = time.monotonic() - self._began
        state = _joined(f"{self._what}: {clock(int(inside))}", self._note, self._end())
        done = self._number - 1.0
        if self._share is not None:
            done += min(self._share, 1.0)
        elif self._expected:
            done += min(inside / self._expected, 1.0)
        self._draw(self._title(), state, done, self.steps)

    def note(self, note: str) -> None:
        """Current message about the step."""
        self._note = note
        self.glance()

    def count(self, what: str, done: int, of: int, share: float) -> None:
        """So many of something have been done inside the step, which is `share` of all of it."""
        self._share = share
        self.note(f"{what} {done:,} of {of:,}")
        if self._line_is_due():
            self.say(_joined(f"{self._title()}: {self._what}", self._note, self._end()))

    def skip(self) -> None:
        """A step is left out."""
        self._number += 1

    def end(self, took: float) -> None:
        """The step has ended after so many seconds."""
        if self._seconds is not None:
            self._seconds = max(0.0, self._seconds - self._expected)
        self._planned += self._expected
        self._took += took
        self._expected = 0.0

    def _title(self) -> str:
        of = "" if self.steps is None else f" of {self.steps:,}"
        return f"{self._noun} {self._number:,}{of}"

    def _end(self) -> str:
        left = self.left
        if not left:
            return ""
        end = time.strftime("%H:%M", time.localtime(time.time() + left))
        return f"{about(left)} left, until about {end}"


class Tasks(_Bar):
    """Tasks that come back by the thousand: how many, how fast, and how long the rest will take."""

    def __init__(self, console: Console, *, transient: bool = False) -> None:
        super().__init__(
            console,
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[state]}", markup=False),
            bars.TimeElapsedColumn(),
            total=None,
            transient=transient,
        )
        self._title = ""
        self._count = 0
        self._counts = [(time.monotonic(), 0)]

    def begin(self, title: str, count: int) -> None:
        """Tasks begin, so many of them."""
        self._title, self._count = title, count
        self._counts = [(time.monotonic(), 0)]
        self._columns.reset(self._bar, total=count, description=title)

    def update(self, done: int, *, doing: str = "", note: str = "", last: bool = False) -> None:
        """So many have come back. `doing`: what has to be over before there is something to count;
        `note`: what else there is to say; `last`: show it in any case."""
        plain = self._line_is_due() or (last and not self.console.is_terminal)
        if not plain and not self._is_due(now=last):
            return
        state = doing or _joined(note, *self._pace(done))
        if plain:
            self.say(f"{self._title}: {done:,} of {self._count:,} done, {state}")
        else:
            self._draw(self._title, state, done, self._count)

    def _pace(self, done: int) -> list[str]:
        now = time.monotonic()
        self._counts.append((now, done))
        while len(self._counts) > 2 and now - self._counts[1][0] > _RATE_SPAN:
            self._counts.pop(0)
        then, before = self._counts[0]
        rate = (done - before) / (now - then) if now > then else 0.0
        if done >= self._count:
            return [f"{digits(rate)} tasks/s"]
        left = clock((self._count - done) / rate) if rate > 0 else "-"
        return [f"{digits(rate)} tasks/s", f"{left} left"]


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
