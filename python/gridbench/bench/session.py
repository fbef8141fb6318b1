"""Sessions: client processes that measure items, one after the other.

A session starts an engine at most once. In each round it runs in a fresh process.
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from gridbench.bench.points import DataPoint
from gridbench.engines.servers import Servers
from gridbench.formats import as_given
from gridbench.machine.judgement import judged
from gridbench.machine.load import Load, OrphanCpu
from gridbench.process.child import Child, Ended
from gridbench.process.children import Leftovers, PythonLaunch, describe
from gridbench.process.inside import GRACE
from gridbench_testbed.links.network import remove_leftovers

_REPEATS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One quantity, or a few that are found together, of one engine: it gives a point."""

    workload: str
    engine: str = ""
    """The name shown for it; one session can have several."""
    measure: str
    """MODULE:FUNCTION."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Distinguish it from other items of its workload."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """For the function."""
    seconds: float
    """Estimate."""
    repeatable: bool = True
    """Whether the same process can measure it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One client process."""

    name: str
    engine: str = ""
    """Whose environment it runs in. Without one, functions get their arguments only, not an
    `EngineClient`, and SIGTERM lets them clean up."""
    label: str = ""
    """The engine as it is shown."""
    place: str = ""
    """MODULE:CLASS of the driver; empty without one."""
    workers: int = 0
    servers: Servers | None = None
    """With the workers; None: this machine."""
    imports: tuple[str, ...] = ()
    """Modules to load before measuring."""
    items: tuple[Item, ...]
    start_seconds: float = 0.0
    """Estimate for the process and the engine to start and end."""
    rounds: int = 1
    left_out: str = ""
    """Why it does not run in a run of this size; empty if it does."""

    @property
    def seconds(self) -> float:
        """Estimate."""
        return self.seconds_of(self.items)

    def seconds_of(self, items: Sequence[Item]) -> float:
        """Estimate for these of its items."""
        return self.start_seconds + sum(item.seconds for item in items) if items else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time limits of a session in seconds, and how long to measure a quantity."""

    start: float
    """For the process, and for the engine to come up."""
    item: float
    """For each item."""
    close: float = 20.0
    """For the engine to end, before it is killed."""
    budget: float = 0.0
    """Seconds that one quantity may take, about."""


@dataclass(slots=True)
class RepeatBudget:
    """Time left for repeating disturbed measurements."""

    seconds: float

    def allows(self, seconds: float) -> bool:
        """Whether this much time is left."""
        return seconds <= self.seconds

    def spend(self, seconds: float) -> None:
        """Take this much of it."""
        self.seconds -= seconds


class Runner:
    """Measures items; those of one session and round share a client process.

    A process that gets stuck is ended, and a new one measures the rest. If the engine does not
    start, all further items of the session fail for the same reason.
    """

    def __init__(
        self,
        limits: Limits,
        leftovers: Leftovers,
        repeats: RepeatBudget,
        *,
        note: Callable[[DataPoint], object],
        check: Callable[[], object],
    ) -> None:
        """`note` gets a point for processes that a session left behind. `check` is called ten
        times a second, and raises Stopped when the user wants to stop."""
        self._limits = limits
        self._leftovers = leftovers
        self._repeats = repeats
        self._note = note
        self._check = check
        self._session: tuple[Session, int] | None = None
        self._process: _SessionProcess | None = None
        self._not_started: DataPoint | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_process()

    def measure(self, session: Session, item: Item, launch: PythonLaunch, number: int) -> DataPoint:
        """The point of an item in round `number`: the least disturbed of its repetitions. Raises
        Stopped."""
        if self._session != (session, number):
            self._end_process()
            self._session, self._not_started = (session, number), None
        best = self._attempt(session, item, launch, number)
        cost = item.seconds if item.repeatable else session.seconds_of([item])
        for _ in range(_REPEATS):
            if not best.disturbed or self._process is None or not self._repeats.allows(cost):
                break
            if not item.repeatable:
                if best.status != "ok":
                    break
                self._end_process()
            began = time.monotonic()
            best = min(
                best, self._attempt(session, item, launch, number), key=lambda point: point.rank
            )
            self._repeats.spend(time.monotonic() - began)
        return best

    def _attempt(
        self, session: Session, item: Item, launch: PythonLaunch, number: int
    ) -> DataPoint:
        if self._not_started is not None:
            failed = self._not_started
            return replace(
                _failure(item, number, failed.why), disturbed=failed.disturbed, load=failed.load
            )
        if self._process is None:
            self._process = _SessionProcess(session, launch, self._limits)
        process = self._process
        point, over = process.measure(item, number, self._check)
        if over:
            self._not_started = point
        if process.failed:
            self._end_process()
        return point

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None or self._session is None:
            return
        session, number = self._session
        if behind := process.end(self._leftovers):
            self._note(
                DataPoint(
                    workload="leftovers",
                    engine=session.label,
                    parameters={"session": session.name},
                    round=number,
                    values={"processes": len(behind)},
                    why=describe(behind),
                    at=_now(),
                )
            )


class _Failure(Exception):
    """The client process gave no result, and why."""

    def __init__(self, why: str, *, at_limit: bool = False) -> None:
        super().__init__(why)
        self.at_limit = at_limit


class _SessionProcess:
    """The client process of a session, and the messages to and from it."""

    def __init__(self, session: Session, launch: PythonLaunch, limits: Limits) -> None:
        self.failed = False
        """Whether it can measure no more."""
        self._session = session
        self._limits = limits
        self._family = OrphanCpu(os.getpid())
        self._measured = 0
        self._is_idle = True
        description = {
            "client": session.engine
            and {
                "name": session.engine,
                "place": session.place,
                "workers": session.workers,
                "budget": limits.budget,
                "patience": limits.start,
                "servers": session.servers and asdict(session.servers),
            },
            "imports": session.imports,
            "items": [
                {"measure": item.measure, "arguments": item.arguments} for item in session.items
            ],
        }
        self._child = Child(
            "gridbench.bench.child", [json.dumps(description, default=os.fspath)], launch=launch
        )

    def measure(
        self, item: Item, number: int, check: Callable[[], object]
    ) -> tuple[DataPoint, bool]:
        """The point of an item, and whether nothing else of the session can be measured. Raises
        what `check` raises."""
        position = self._session.items.index(item)
        parts: dict[str, float] = {}
        before = self._family.reading()
        self._is_idle = False

        def look() -> None:
            check()
            self._family.look_if_due()

        try:
            self._reach(position, look)
            before = self._family.reading()
            self._child.send("measure")
            limit = self._limits.item + (0.0 if self._measured else self._limits.start)
            until = time.monotonic() + limit
            while "item" not in (message := self._receive(until, limit, look)):
                parts |= message.get("part", {})
        except _Failure as failure:
            self.failed = True
            load = self._family.reading().load_since(before)
            point = replace(
                _failure(item, number, str(failure)),
                values=parts,
                at_limit=failure.at_limit,
                **_load_during(load),
                seconds=round(load.seconds, 3),
            )
            return point, not self._measured
        self._is_idle = True
        self._measured += 1
        load = self._family.reading().load_since(before)
        over = bool(message.get("over"))
        self.failed = over
        return _point(item, number, message, parts, load), over

    def _reach(self, position: int, look: Callable[[], object]) -> None:
        """Pass items until the process is ready for this one."""
        limit = self._limits.item if self._measured else self._limits.start
        until = time.monotonic() + limit
        while True:
            message = self._receive(until, limit, look)
            if message.get("ready") == position:
                return
            self._child.send("pass")

    def _receive(self, until: float, limit: float, look: Callable[[], object]) -> dict[str, Any]:
        try:
            message: dict[str, Any] = self._child.receive(until, look)
        except TimeoutError:
            raise _Failure(f"gave no result in {as_given(limit)}", at_limit=True) from None
        except Ended:
            how = f"the client process {self._child.ending()}"
            raise _Failure(": ".join([how, *self._child.last_lines(1)])) from None
        return message

    def end(self, leftovers: Leftovers) -> list[str]:
        """Wait for the process to end, or end it; the processes that it left behind."""
        if self._session.engine or self._is_idle:
            self._child.send("end")
            return self._child.end(leftovers, patience=self._limits.close)
        # What it has made is taken down first.
        if not self._child.wait(0):
            self._child.ask_to_end(signal.SIGTERM)
        in_time = self._child.wait(GRACE)
        behind = self._child.end(leftovers)
        if not in_time and os.geteuid() == 0:
            remove_leftovers()
        return behind


def _point(
    item: Item, number: int, message: dict[str, Any], parts: dict[str, float], load: Load
) -> DataPoint:
    values = parts | message.get("values", {})
    if any(not math.isfinite(value) for value in values.values()):
        return _failure(item, number, "gave a value that is not a number")
    return replace(
        _failure(item, number, message.get("why", "")),
        values=values,
        samples=message.get("samples", {}),
        status=message["status"],
        at_limit=message.get("at_limit", False),
        **_load_during(load),
        seconds=round(message["seconds"], 3),
        version=message.get("version", ""),
    )


def _load_during(load: Load) -> dict[str, Any]:
    """What other programs did, as fields of a point."""
    return {
        "disturbed": judged(load) != "undisturbed",
        "load": {"others_cpu": round(load.others, 3), "stolen_cpu": round(load.stolen, 3)},
    }


def _failure(item: Item, number: int, why: str) -> DataPoint:
    return DataPoint(
        workload=item.workload,
        engine=item.engine,
        parameters=item.parameters,
        round=number,
        status="failed",
        why=why,
        at=_now(),
    )


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
