"""A client in another process, for an engine that has a Python environment of its own."""

from __future__ import annotations

import contextlib
import time
from importlib.metadata import EntryPoint
from typing import Any

from gridbench.engines.environments import launch_of
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.process.child import Child, Ended
from gridbench.process.children import ChildProcess
from gridbench.process.inside import ObjectChannel
from gridbench.run.client import (
    GLANCE,
    Client,
    Close,
    Closed,
    EngineFacts,
    Failed,
    News,
    Pass,
    Plan,
)
from gridbench.run.exchange import EngineFailure
from gridbench.run.journal import TimelineRow

_TAIL = 15  # lines of what the process has printed that are shown when it fails
_EXIT = 5.0  # seconds for the process to end after its engine has


class HostedClient(Client):
    """The client of the engine at `point`, in the Python of its environment.

    InputError if that environment cannot be used.
    """

    def __init__(self, point: EntryPoint, *, workers: int, warm: bool) -> None:
        super().__init__()
        self._point = point
        self._facts: EngineFacts | None = None
        self._description: dict[str, Any] = {}
        self._count = 0
        self._closed: Closed | None = None
        arguments = (point.name, point.value, str(workers), "warm" if warm else "cold")
        self._child = Child(
            "gridbench.run.host", arguments, launch=launch_of(point.name), channel=ObjectChannel
        )

    @property
    def process(self) -> ChildProcess:
        """The process in which the client is."""
        return self._child.process

    def facts(self, patience: float) -> EngineFacts:
        """What the engine says of itself. EngineFailure if that takes longer, or it fails."""
        deadline = time.monotonic() + patience
        while self._facts is None:
            self._receive(GLANCE)
            if time.monotonic() > deadline:
                raise EngineFailure(f"loading it has taken more than {as_given(patience)}")
        return self._facts

    def begin(self, plan: Plan, *, check: bool) -> None:
        """See `Client`."""
        self.collected, self.finished = 0, False
        self._count = len(plan.sleeps)
        self._child.send(Pass(plan, check))

    def take(self, wait: float) -> list[TimelineRow]:
        """See `Client`."""
        rows = self._receive(wait)
        self.collected += len(rows)
        self.finished = self.collected == self._count
        return rows

    def describe(self) -> dict[str, Any]:
        """See `Client`."""
        return self._description

    def close(self, patience: float) -> str:
        """See `Client`. What the process then leaves is for `Leftovers` to end."""
        problem = ""
        try:
            problem = self._ask_to_close(patience)
            self._child.wait(_EXIT if self._closed else 0)
        finally:
            self._child.close()
        return problem

    def _ask_to_close(self, patience: float) -> str:
        if self.process.poll() is not None:
            return ""  # it has failed, which was reported
        deadline = time.monotonic() + patience
        self._child.send(Close())
        try:
            while self._closed is None and time.monotonic() < deadline:
                with contextlib.suppress(_Told):
                    self._receive(GLANCE)
        except EngineFailure as error:
            return f"the engine failed to close: {error}"
        if self._closed is None:
            return f"the engine did not end its workers within {as_given(patience)}"
        return self._closed.problem

    def _receive(self, wait: float) -> list[TimelineRow]:
        """The next message, if one comes within `wait` seconds; the rows that it brings."""
        try:
            message = self._child.receive(time.monotonic() + wait)
        except TimeoutError:
            return []
        except Ended as error:
            raise EngineFailure(self._how_it_ended()) from error
        if isinstance(message, News):
            self.status = message.status
            self._description = message.description or self._description
            return message.rows
        if isinstance(message, EngineFacts):
            self._facts = message
            self._description = message.description
        elif isinstance(message, Closed):
            self._closed = message
        elif isinstance(message, Failed):
            refusal = InputError(message.what, remedy=message.remedy) if message.refused else None
            raise _Told(message.what) from refusal
        return []

    def _how_it_ended(self) -> str:
        """Why nothing more can come, with the last lines that the process has printed."""
        lines = [f"its process {self._child.ending()}", *self._child.last_lines(_TAIL)]
        return "\n    ".join(lines)


class _Told(EngineFailure):
    """The engine failed, and its process is there to say so."""
