"""Runs one session: starts its client process, has it measure item by item, and cleans up."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from gridbench.engines.leftovers import Leftovers, told
from gridbench.machine.load import Load, reading
from gridbench.machine.rule import judged
from gridbench.micro.launch import Launch
from gridbench.micro.plan import Item, Session
from gridbench.micro.points import Point
from gridbench.micro.sizes import Sizes

_POLL = 0.1  # seconds between looks at whether the user wants an end
_CLOSING = 20.0  # seconds for an engine to end, after which it is ended
_REPEATS = 2


class Stopped(Exception):
    """The user wants an end."""


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
        stopped: Callable[[], bool],
    ) -> None:
        self._sizes = sizes
        self._leftovers = leftovers
        self._repeats = repeats
        self._save = save
        self._stopped = stopped

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
            for message in process.messages(self._stopped):
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
    """The client process of a session, and the lines to and from it."""

    def __init__(self, session: Session, items: list[Item], launch: Launch, sizes: Sizes) -> None:
        self.before_first = True
        """Nothing has been measured yet: the engine may not even have come up."""
        self._sizes = sizes
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        reports, there = os.pipe()
        here, commands = os.pipe()
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
        try:
            # A group of its own: Ctrl-C in the terminal reaches us alone.
            self._popen = subprocess.Popen(
                [*launch.command, "-m", "gridbench.micro.child",
                 str(there), str(here), json.dumps(description)],
                env=launch.variables,
                stdin=subprocess.PIPE,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=(there, here),
                process_group=0,
            )  # fmt: skip
        finally:
            os.close(there)
            os.close(here)
        self._reports = reports
        self._commands = os.fdopen(commands, "w")

    def messages(self, stopped: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        """What the process writes, until it ends. Raises _Failed, Stopped."""
        pending = b""
        limit = self._sizes.start_limit
        until = time.monotonic() + limit
        while True:
            if stopped():
                raise Stopped
            if time.monotonic() > until:
                raise _Failed(f"gave no result in {limit:g} s")
            if not select.select([self._reports], [], [], _POLL)[0]:
                continue
            data = os.read(self._reports, 1 << 20)
            if not data:
                self._check_end()
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                message: dict[str, Any] = json.loads(line)
                if "closing" in message:
                    return
                # The first one may have to bring up the engine.
                limit = self._sizes.item_limit + self.before_first * self._sizes.start_limit
                until = time.monotonic() + limit
                yield message
                if "item" in message:
                    self.before_first = False

    def answer(self, line: str) -> None:
        """Tell the process what to do; one that has ended is noticed elsewhere."""
        with contextlib.suppress(BrokenPipeError):
            self._commands.write(line + "\n")
            self._commands.flush()

    def end(self, leftovers: Leftovers) -> list[str]:
        """Wait for the process to end, or end it; processes that it left behind."""
        with contextlib.suppress(BrokenPipeError):
            self._commands.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(_CLOSING)
        names = leftovers.end(self._popen)
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        os.close(self._reports)
        self._errors.close()
        return names

    def _check_end(self) -> None:
        status = self._popen.wait()
        if status != 0:
            self._errors.seek(0)
            text = self._errors.read().decode(errors="replace")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            last = f"{lines[-1][:300]} " if lines else ""
            raise _Failed(f"{last}(the client process ended with {how})")


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
