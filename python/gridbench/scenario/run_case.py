"""Runs one case on one engine in a process of its own, with limits of time and memory."""

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
from gridbench.process.children import Leftovers
from gridbench.records import RecordError, from_record
from gridbench.run.client import EngineFacts
from gridbench.run.machine import available_memory
from gridbench.workload.body import SLEEP

RUNS_CASES = "gridbench.scenario.child"
"""The module of the process."""
_LEAST_MEMORY = 0.06  # share of the machine's memory: with less left, a case is ended
_NO_MEMORY = 0.02  # the same: it is ended at once
_PATIENCE = 60.0  # seconds for a case to end after the request
_TAIL = 3  # lines of output that explain a failure


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOrder:
    """One case on one engine."""

    engine: str
    setup: Path
    folder: Path
    """Of the run: an empty folder."""
    time_scale: float
    body: str = SLEEP
    """See `gridbench.workload.body`."""
    warm: bool
    check: bool
    start_timeout: float
    facts: EngineFacts
    """The engine's description of itself."""
    namespaces: tuple[str, ...] = ()
    """Network namespaces for the workers, in turn; without any, they are beside the client."""
    began: ClockReading | None = None
    """The machine's clocks before the process started, or earlier."""
    analysed: bool = True
    """Whether the process analyses the run."""
    servers: Servers | None = None
    """Servers with the workers. A case uses as many workers as it has cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswer:
    """The result of a case, from its process."""

    status: Literal["done", "failed", "invalid", "interrupted"]
    reason: str = ""
    total_s: float | None = None
    ideal_s: float | None = None
    returned: int = 0
    """Tasks that came back."""
    figures: dict[str, float] = field(default_factory=dict)
    load: Load | None = None
    """Other programs' load during the measurement; None if there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """The result of a case, as its parent process knows it."""

    answer: CaseAnswer
    began: ClockReading
    """The machine's clocks when it began."""
    took: float
    """Seconds."""
    load: dict[str, float]
    """Of the machine meanwhile; see `_Watch.load`."""
    ended_for: str = ""
    """The limit at which it was ended: time or memory."""
    disturbed: bool = False
    """Whether other programs used the machine meanwhile, also if the case failed."""


def run_case(
    order: CaseOrder,
    *,
    leftovers: Leftovers,
    limit: float | None,
    stopped: Callable[[], bool],
    glance: Callable[[], None],
    start: Callable[[], Child] = lambda: Child(RUNS_CASES),
) -> CaseOutcome:
    """Run a case for at most `limit` seconds. `glance` is called several times a second, `start`
    makes the process. The load of other programs counts from `order.began`, if that is given."""
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
        text = "; ".join(child.last_lines(_TAIL))
        return CaseAnswer(status="failed", reason=f"{how}: {text}" if text else how)


class _Watch:
    """Ends the process at the request of the user, or at a limit of time or memory."""

    def __init__(self, child: Child, began: ClockReading, limit: float | None) -> None:
        self.why = ""
        self._child = child
        self._began = began
        self._limit = limit
        self._end_requested = 0.0  # when it was requested to end
        self._all = psutil.virtual_memory().total
        self._before = self._least = available_memory()

    def look(self, *, stopped: bool) -> None:
        """Look at the clock and the memory."""
        now, free = time.monotonic(), available_memory()
        self._least = min(self._least, free)
        if free < self._all * _NO_MEMORY:
            self.why = self.why or f"memory: it was ended at once when only {size(free)} were left"
            self._child.ask_to_end(signal.SIGKILL)
        elif self._end_requested:
            if now > self._end_requested + _PATIENCE:
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
        """Others' work as a share of all processors, all work as a share of the available ones,
        and the memory used, in bytes.

        `measured`: the load that the run itself has seen. After its end, the work of processes that
        nobody has waited for would count as others'.
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
        """Whether others disturbed it: by the load that the run itself has seen or, if it ended too
        early, by the load that is certainly others', as all its processes are gone by now."""
        if measured is not None:
            return judged(measured) == "disturbed"
        return reading(os.getpid()).load_since(self._began).at_least > tolerated()

    def _end(self, now: float) -> None:
        self._end_requested = now
        self._child.ask_to_end(signal.SIGINT)
