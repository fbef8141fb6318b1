"""Runs one case on one engine, in a process of its own that is watched and can be ended."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

import psutil

from gridbench.engines.servers import Servers
from gridbench.formats import as_given, size
from gridbench.machine.judgement import judged, tolerated
from gridbench.machine.load import ClockReading, Load, reading
from gridbench.machine.processors import available_processors
from gridbench.process.child import Child, Ended
from gridbench.process.leftovers import Leftovers
from gridbench.records import RecordError, from_record
from gridbench.run.client import EngineFacts
from gridbench.run.machine import available_memory
from gridbench.workload.body import SLEEP

RUNS_CASES = "gridbench.scenario.child"
"""The module of such processes."""
_LEAST_MEMORY = 0.06  # share of the machine's memory: with less left, a case is ended
_NO_MEMORY = 0.02  # the same: it is ended at once
_PATIENCE = 60.0  # seconds for a case to end after it was told to
_TAIL = 3  # lines of what the process has printed that are told if it fails


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOrder:
    """One case on one engine."""

    engine: str
    setup: Path
    folder: Path
    """Where the run goes; it must exist and be empty."""
    time_scale: float
    body: str = SLEEP
    """What tasks do: see `gridbench.workload.body`."""
    warm: bool
    check: bool
    start_timeout: float
    facts: EngineFacts
    """What the engine has said of itself."""
    namespaces: tuple[str, ...] = ()
    """Network namespaces for the workers, in turn; none: they are beside the client."""
    began: ClockReading | None = None
    """The machine's clocks before the process was started that is to run it, or earlier."""
    analysed: bool = True
    """What was measured is looked at in that process; else by who has ordered it."""
    servers: Servers | None = None
    """Servers that have the workers, of which as many as the case has cores are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswer:
    """How it went."""

    status: Literal["done", "failed", "invalid", "interrupted"]
    reason: str = ""
    total_s: float | None = None
    ideal_s: float | None = None
    returned: int = 0
    """Tasks that came back."""
    figures: dict[str, float] = field(default_factory=dict)
    load: Load | None = None
    """What others did while it was measured; None: it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """What came of it."""

    answer: CaseAnswer
    began: ClockReading
    """The machine's clocks when it began."""
    took: float
    """Seconds."""
    load: dict[str, float]
    """Of the machine meanwhile: see `gridbench.scenario.results.CaseResult`."""
    ended_for: str = ""
    """Why it was ended before its end: time or memory."""
    disturbed: bool = False
    """Other programs used the machine meanwhile, which also counts if it failed."""


def run_case(
    order: CaseOrder,
    *,
    leftovers: Leftovers,
    limit: float | None,
    stopped: Callable[[], bool],
    glance: Callable[[], None],
    start: Callable[[], Child] = lambda: Child(RUNS_CASES),
) -> CaseOutcome:
    """Run it, for at most `limit` seconds; `glance` is called some times each second, `start` makes
    the process. What others do is looked at from `order.began` on, if that is given."""
    began = reading(os.getpid())
    child = start()
    watch = _Watch(child, began, limit)

    def look() -> None:
        watch.look(stopped=stopped())
        glance()

    try:
        child.send(asdict(replace(order, began=order.began or began)))
        answer = _answer(child, look)
    finally:
        child.end(leftovers, patience=_PATIENCE)
    return CaseOutcome(
        answer=answer,
        began=began,
        took=time.monotonic() - began.at,
        load=watch.load(answer.load),
        ended_for=watch.why,
        disturbed=watch.disturbed(answer.load),
    )


def _answer(child: Child, look: Callable[[], object]) -> CaseAnswer:
    try:
        return from_record(CaseAnswer, child.receive(math.inf, look))
    except (Ended, RecordError):
        how = f"its process {child.ending()}"
        told = "; ".join(child.last_lines(_TAIL))
        return CaseAnswer(status="failed", reason=f"{how}: {told}" if told else how)


class _Watch:
    """Ends the process when the user, the time or the memory demands it."""

    def __init__(self, child: Child, began: ClockReading, limit: float | None) -> None:
        self.why = ""
        self._child = child
        self._began = began
        self._limit = limit
        self._told = 0.0  # when it was told to end
        self._all = psutil.virtual_memory().total
        self._before = self._least = available_memory()

    def look(self, *, stopped: bool) -> None:
        """Look at the clock and the memory."""
        now, free = time.monotonic(), available_memory()
        self._least = min(self._least, free)
        if free < self._all * _NO_MEMORY:
            self.why = self.why or f"memory: it was ended at once when only {size(free)} were left"
            self._child.ask_to_end(signal.SIGKILL)
        elif self._told:
            if now > self._told + _PATIENCE:
                self._child.ask_to_end(signal.SIGKILL)
        elif stopped:
            self._end(now)
        elif self._limit is not None and now > self._began.at + self._limit:
            self.why = f"time: it was ended after the {as_given(self._limit)} that it may take"
            self._end(now)
        elif free < self._all * _LEAST_MEMORY:
            self.why = f"memory: it was ended when only {size(free)} were left"
            self._end(now)

    def load(self, measured: Load | None) -> dict[str, float]:
        """Others' work as share of all processors, all work as share of those that we may use,
        and the memory it took, in bytes.

        `measured`: what the run itself has seen of others. Once all processes are gone, those that
        nobody has waited for are missing, and would count as others' work.
        """
        now = reading(os.getpid())
        others = measured or now.load_since(self._began)
        processors = len(available_processors())
        passed = max(now.at - self._began.at, 1e-9)
        return {
            "others": others.others / (os.cpu_count() or 1),
            "busy": max(0.0, now.not_idle - self._began.not_idle) / passed / processors,
            "memory_used": float(max(0, self._before - self._least)),
        }

    def disturbed(self, measured: Load | None) -> bool:
        """Whether others disturbed it: by what the run itself has seen or, if it did not come that
        far, by what is known to be others' work, as all processes of it are gone by now."""
        if measured is not None:
            return judged(measured) == "disturbed"
        return reading(os.getpid()).load_since(self._began).at_least > tolerated()

    def _end(self, now: float) -> None:
        self._told = now
        self._child.ask_to_end(signal.SIGINT)
