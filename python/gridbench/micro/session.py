"""Runs one session: starts its client process, has it measure item by item, and cleans up."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gridbench.machine.load import Load, reading
from gridbench.machine.rule import judged
from gridbench.micro.plan import Item, Session
from gridbench.micro.points import Point
from gridbench.micro.sizes import Sizes
from gridbench.process.child import Child, Ended
from gridbench.process.launch import Launch
from gridbench.process.leftovers import Leftovers, told

_CLOSING = 20.0  # seconds for an engine to end, after which it is ended
_REPEATS = 2


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
        sizes: Sizes,
        leftovers: Leftovers,
        repeats: Repeats,
        *,
        save: Callable[[Point], object],
        check: Callable[[], object],
    ) -> None:
        """`check` is called ten times a second, and raises Stopped when the user wants an end."""
        self._sizes = sizes
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
            process = _Process(session, [items[n] for n in left], launch, self._sizes)
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
        before = None
        position = 0
        try:
            for message in process.messages(self._check):
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
                    before = reading(os.getpid())
                elif "item" in message:
                    assert before is not None
                    load = reading(os.getpid()).load_since(before)
                    if attempts[position] > 1:
                        self._repeats.spend(message["seconds"])
                    disturbed = judged(load) != "undisturbed"
                    index, item = items[position]
                    done.add(index)
                    if disturbed and not item.repeatable and message["status"] == "ok":
                        again.append(index)
                    self._save(_point(item, number, message, load))
                    if message.get("over"):
                        self._give_up(items[position + 1 :], number, message["why"], done)
        except _Failed as failure:
            if position < len(items) and items[position][0] not in done:
                index, item = items[position]
                done.add(index)
                self._save(_failure(item, number, str(failure)))
                if process.before_first:
                    self._give_up(items[position + 1 :], number, str(failure), done)
        return done, again

    def _give_up(
        self, items: list[tuple[int, Item]], number: int, why: str, done: set[int]
    ) -> None:
        for index, item in items:
            done.add(index)
            self._save(_failure(item, number, why))

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


class _Process:
    """The client process of a session, and the messages to and from it."""

    def __init__(self, session: Session, items: list[Item], launch: Launch, sizes: Sizes) -> None:
        self.before_first = True
        """Nothing has been measured yet: the engine may not even have come up."""
        self._sizes = sizes
        description = {
            "client": {
                "name": session.engine,
                "place": session.place,
                "workers": session.workers,
                "budget": sizes.budget,
                "patience": sizes.start_limit,
            },
            "items": [{"measure": item.measure, "arguments": item.arguments} for item in items],
        }
        self._child = Child("gridbench.micro.child", [json.dumps(description)], launch=launch)

    def messages(self, check: Callable[[], object]) -> Iterator[dict[str, Any]]:
        """What the process sends, until it ends. Raises _Failed, and what `check` raises."""
        limit = self._sizes.start_limit
        until = time.monotonic() + limit
        try:
            while "closing" not in (message := self._child.receive(until, check)):
                # The first one may have to bring up the engine.
                limit = self._sizes.item_limit + self.before_first * self._sizes.start_limit
                until = time.monotonic() + limit
                yield message
                if "item" in message:
                    self.before_first = False
        except TimeoutError:
            raise _Failed(f"gave no result in {limit:g} s") from None
        except Ended:
            how = f"the client process {self._child.ending()}"
            raise _Failed(": ".join([how, *self._child.last_lines(1)])) from None

    def answer(self, wish: str) -> None:
        """Tell the process what to do."""
        self._child.send(wish)

    def end(self, leftovers: Leftovers) -> list[str]:
        """Wait for the process to end, or end it; processes that it left behind."""
        self.answer("end")
        return self._child.end(leftovers, patience=_CLOSING)


def _point(item: Item, number: int, message: dict[str, Any], load: Load) -> Point:
    values = message.get("values", {})
    if any(not math.isfinite(value) for value in values.values()):
        return _failure(item, number, "gave a value that is no number")
    return Point(
        workload=item.workload,
        engine=item.engine,
        parameters=item.parameters,
        round=number,
        values=values,
        samples=message.get("samples", {}),
        status=message["status"],
        why=message.get("why", ""),
        disturbed=judged(load) != "undisturbed",
        load={"others_cpu": round(load.others, 3), "stolen_cpu": round(load.stolen, 3)},
        seconds=round(message["seconds"], 3),
        at=_now(),
        version=message.get("version", ""),
    )


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
