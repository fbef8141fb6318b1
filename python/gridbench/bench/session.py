"""Runs one session: starts its client process, has it measure item by item, and cleans up."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from gridbench.bench.plan import Item, Session
from gridbench.bench.points import Point
from gridbench.formats import as_given
from gridbench.machine.load import Load
from gridbench.machine.orphan_cpu import Unwaited
from gridbench.machine.rule import judged
from gridbench.process.child import Child, Ended
from gridbench.process.inside import GRACE
from gridbench.process.launch import Launch
from gridbench.process.leftovers import Leftovers, told
from gridbench_testbed.links.owners import remove_leftovers

_REPEATS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds after which something is given up, and how long quantities are to be measured."""

    start: float
    """For the process, and for the engine to come up."""
    item: float
    """For each item beside."""
    close: float = 20.0
    """For the engine to end, after which it is ended."""
    budget: float = 0.0
    """Seconds that one quantity may take, about."""


@dataclass(slots=True)
class Repeats:
    """How much time may still go into repeating what was disturbed."""

    seconds: float

    def allow(self, seconds: float) -> bool:
        """Whether another so many seconds may be spent."""
        return seconds <= self.seconds

    def spend(self, seconds: float) -> None:
        """So many were spent."""
        self.seconds -= seconds


class Runner:
    """Runs sessions one after the other; what they found goes to `save`, point by point."""

    def __init__(
        self,
        limits: Limits,
        leftovers: Leftovers,
        repeats: Repeats,
        *,
        save: Callable[[Point], object],
        check: Callable[[], object],
    ) -> None:
        """`check` is called ten times a second, and raises Stopped when the user wants an end."""
        self._limits = limits
        self._leftovers = leftovers
        self._repeats = repeats
        self._save = save
        self._check = check

    def run(self, session: Session, items: list[Item], launch: Launch, number: int) -> None:
        """Measure the items of the session in round `number`. Raises Stopped.

        When an item gets stuck, the process is ended, and another one goes on with the rest.
        """
        attempts: dict[int, int] = {}
        left = list(range(len(items)))
        while left:
            began = time.monotonic()
            process = _Process(session, [items[n] for n in left], launch, self._limits)
            try:
                done, again = self._serve(process, [(n, items[n]) for n in left], number)
            finally:
                behind = process.end(self._leftovers)
            if attempts:
                self._repeats.spend(time.monotonic() - began)
            left = [n for n in left if n not in done]
            for n in again:  # what one process cannot measure twice is left to another
                attempts[n] = attempts.get(n, 0) + 1
                if attempts[n] <= _REPEATS and self._repeats.allow(session.seconds):
                    left.append(n)
            self._note_leftovers(session, number, behind)

    def _serve(
        self, process: _Process, items: list[tuple[int, Item]], number: int
    ) -> tuple[set[int], list[int]]:
        """Which items need not be looked at again, and which were disturbed and cannot repeat."""
        done: set[int] = set()
        again: list[int] = []
        attempts = [0] * len(items)
        disturbed = False
        family = Unwaited(os.getpid())
        before = family.reading()
        parts: dict[str, float] = {}
        position = 0

        def check() -> None:
            self._check()
            family.look_if_due()

        try:
            for message in process.messages(check):
                if "ready" in message:
                    position = message["ready"]
                    item = items[position][1]
                    due = attempts[position] == 0 or (
                        disturbed
                        and item.repeatable
                        and attempts[position] <= _REPEATS
                        and self._repeats.allow(item.seconds)
                    )
                    attempts[position] += due
                    process.answer("measure" if due else "pass")
                    before = family.reading()
                    parts = {}
                elif "part" in message:
                    parts |= message["part"]
                elif "item" in message:
                    load = family.reading().load_since(before)
                    if attempts[position] > 1:
                        self._repeats.spend(message["seconds"])
                    disturbed = judged(load) != "undisturbed"
                    index, item = items[position]
                    done.add(index)
                    if disturbed and not item.repeatable and message["status"] == "ok":
                        again.append(index)
                    self._save(_point(item, number, message, parts, load))
                    if message.get("over"):
                        self._give_up(items[position + 1 :], number, message["why"], load, done)
        except _Failed as failure:
            if position < len(items) and items[position][0] not in done:
                index, item = items[position]
                done.add(index)
                load = family.reading().load_since(before)
                self._save(
                    replace(
                        _failure(item, number, str(failure)),
                        values=parts,
                        at_limit=failure.at_limit,
                        **_meanwhile(load),
                        seconds=round(load.seconds, 3),
                    )
                )
                if process.before_first:
                    self._give_up(items[position + 1 :], number, str(failure), load, done)
        return done, again

    def _give_up(
        self, items: list[tuple[int, Item]], number: int, why: str, load: Load, done: set[int]
    ) -> None:
        """Keep for the rest what became of the first, and what others did during that."""
        for index, item in items:
            done.add(index)
            self._save(replace(_failure(item, number, why), **_meanwhile(load)))

    def _note_leftovers(self, session: Session, number: int, behind: list[str]) -> None:
        if behind:
            self._save(
                Point(
                    workload="leftovers",
                    engine=session.label,
                    parameters={"session": session.name},
                    round=number,
                    values={"processes": len(behind)},
                    why=told(behind),
                    at=_now(),
                )
            )


class _Failed(Exception):
    """The client process gave no result, and why."""

    def __init__(self, why: str, *, at_limit: bool = False) -> None:
        super().__init__(why)
        self.at_limit = at_limit


class _Process:
    """The client process of a session, and the messages to and from it."""

    def __init__(self, session: Session, items: list[Item], launch: Launch, limits: Limits) -> None:
        self.before_first = True
        """Nothing has been measured yet: the engine may not even have come up."""
        self._limits = limits
        self._unwinds = not session.engine
        self._closing = False
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
            "items": [{"measure": item.measure, "arguments": item.arguments} for item in items],
        }
        self._child = Child(
            "gridbench.bench.child", [json.dumps(description, default=os.fspath)], launch=launch
        )

    def messages(self, check: Callable[[], object]) -> Iterator[dict[str, Any]]:
        """What the process sends, until it ends. Raises _Failed, and what `check` raises."""
        limit = self._limits.start
        until = time.monotonic() + limit
        try:
            while "closing" not in (message := self._child.receive(until, check)):
                if "ready" in message:
                    # The first one may have to bring up the engine.
                    limit = self._limits.item + (self._limits.start if self.before_first else 0.0)
                    until = time.monotonic() + limit
                yield message
                if "item" in message:
                    self.before_first = False
            self._closing = True
        except TimeoutError:
            raise _Failed(f"gave no result in {as_given(limit)}", at_limit=True) from None
        except Ended:
            how = f"the client process {self._child.ending()}"
            raise _Failed(": ".join([how, *self._child.last_lines(1)])) from None

    def answer(self, wish: str) -> None:
        """Tell the process what to do."""
        self._child.send(wish)

    def end(self, leftovers: Leftovers) -> list[str]:
        """Wait for the process to end, or end it; processes that it left behind."""
        if not self._unwinds or self._closing:
            self.answer("end")
            return self._child.end(leftovers, patience=self._limits.close)
        if not self._child.wait(0):
            self._child.ask_to_end(signal.SIGTERM)
        in_time = self._child.wait(GRACE)
        behind = self._child.end(leftovers)
        if not in_time and os.geteuid() == 0:
            remove_leftovers()
        return behind


def _point(
    item: Item, number: int, message: dict[str, Any], parts: dict[str, float], load: Load
) -> Point:
    values = parts | message.get("values", {})
    if any(not math.isfinite(value) for value in values.values()):
        return _failure(item, number, "gave a value that is not a number")
    return replace(
        _failure(item, number, message.get("why", "")),
        values=values,
        samples=message.get("samples", {}),
        status=message["status"],
        at_limit=message.get("at_limit", False),
        **_meanwhile(load),
        seconds=round(message["seconds"], 3),
        version=message.get("version", ""),
    )


def _meanwhile(load: Load) -> dict[str, Any]:
    """What other programs did, as fields of a point."""
    return {
        "disturbed": judged(load) != "undisturbed",
        "load": {"others_cpu": round(load.others, 3), "stolen_cpu": round(load.stolen, 3)},
    }


def _failure(item: Item, number: int, why: str) -> Point:
    return Point(
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
