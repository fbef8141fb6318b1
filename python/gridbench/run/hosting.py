"""A client in another process, for an engine that has a Python environment of its own."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import tempfile
import time
from importlib.metadata import EntryPoint
from multiprocessing.connection import Connection
from typing import Any

from gridbench.engines.environments import launch_of
from gridbench.errors import InputError
from gridbench.run.client import GLANCE, Client, Facts
from gridbench.run.exchange import EngineFailure
from gridbench.run.messages import Close, Closed, Failed, News, Pass
from gridbench.run.plan import Plan
from gridbench.run.rows import Row

_TAIL = 15  # lines of what the process has printed that are shown when it fails
_EXIT = 5.0  # seconds for the process to end after its engine has


class HostedClient(Client):
    """The client of the engine at `point`, in the Python of its environment.

    InputError if that environment cannot be used.
    """

    def __init__(self, point: EntryPoint, *, workers: int, warm: bool) -> None:
        super().__init__()
        self._point = point
        self._facts: Facts | None = None
        self._description: dict[str, Any] = {}
        self._count = 0
        self._closed: Closed | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        command, variables = launch_of(point.name)
        ours, theirs = socket.socketpair()
        with theirs:
            start = "warm" if warm else "cold"
            arguments = (str(theirs.fileno()), point.name, point.value, str(workers), start)
            # In a session of its own: Ctrl-C in the terminal reaches us alone.
            self.process = subprocess.Popen(
                [*command, "-m", "gridbench.run.host", *arguments],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())

    def facts(self, patience: float) -> Facts:
        """What the engine says of itself. EngineFailure if that takes longer, or it fails."""
        deadline = time.monotonic() + patience
        while self._facts is None:
            self._receive(GLANCE)
            if time.monotonic() > deadline:
                raise EngineFailure(f"loading it has taken more than {patience:g} s")
        return self._facts

    def begin(self, plan: Plan, *, check: bool) -> None:
        """See `Client`."""
        self.collected, self.finished = 0, False
        self._count = len(plan.sleeps)
        with contextlib.suppress(OSError):  # it is gone, and `take` says how
            self._connection.send(Pass(plan, check))

    def take(self, wait: float) -> list[Row]:
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
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_EXIT if self._closed else 0)
        finally:
            self._connection.close()
            self._log.close()
        return problem

    def _ask_to_close(self, patience: float) -> str:
        if self.process.poll() is not None:
            return ""  # it has failed, which was told
        deadline = time.monotonic() + patience
        try:
            self._connection.send(Close())
            while self._closed is None and time.monotonic() < deadline:
                with contextlib.suppress(_Told):
                    self._receive(GLANCE)
        except (EngineFailure, OSError) as error:
            return f"the engine failed to close: {error}"
        if self._closed is None:
            return f"the engine did not end its workers within {patience:g} s"
        return self._closed.problem

    def _receive(self, wait: float) -> list[Row]:
        """The next message, if one comes within `wait` seconds; the rows that it brings."""
        try:
            if not self._connection.poll(wait):
                if self.process.poll() is None or self._connection.poll(0):
                    return []
                raise EOFError
            message = self._connection.recv()
        except (EOFError, OSError) as error:
            raise EngineFailure(self._how_it_ended()) from error
        if isinstance(message, News):
            self.status = message.status
            self._description = message.description or self._description
            return message.rows
        if isinstance(message, Facts):
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
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_EXIT)
        status = self.process.returncode
        if status is None:
            how = "its process has closed the connection"
        elif status < 0:
            how = f"its process was ended by signal {-status} ({signal.strsignal(-status)})"
        else:
            how = f"its process ended with exit status {status}"
        self._log.seek(0)
        text = self._log.read().decode(errors="replace")
        lines = [line[:300] for line in text.splitlines() if line.strip()][-_TAIL:]
        return how + "".join(f"\n    {line}" for line in lines)


class _Told(EngineFailure):
    """The engine failed, and its process is there to say so."""
