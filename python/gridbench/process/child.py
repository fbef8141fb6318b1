"""Our side of a process that is talked to: starting, waiting, ending.

One that runs a module of gridbench's is given the descriptor of a socket as its first argument
(`gridbench.process.inside`).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from gridbench.process.children import PYTHON, AdoptedProcess, ChildProcess, Leftovers, PythonLaunch
from gridbench.process.copying import PID
from gridbench.process.inside import LineChannel, ObjectChannel

_WIDTH = 300  # characters of a line that are shown


class OutputFile:
    """An unnamed file for the output of a process."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`

    def last_lines(self, count: int) -> list[str]:
        """The last lines that are not empty, cut to what fits into a message."""
        self.file.seek(0)
        text = self.file.read().decode(errors="replace")
        return [line.strip()[:_WIDTH] for line in text.splitlines() if line.strip()][-count:]

    def close(self) -> None:
        """Forget it."""
        self.file.close()


def ending(status: int) -> str:
    """How a process ended, to follow a word for it: "ended with exit status 2"."""
    if status < 0:
        return f"was ended by signal {-status} ({signal.strsignal(-status)})"
    return f"ended with exit status {status}"


LOOK = 0.1
"""Seconds between looks at whether the user wants an end, and at the display."""
_EXIT = 5.0  # seconds from the end of the socket to that of the process


class Ended(Exception):
    """The process has ended, or closed its socket, and all that it had sent was taken."""


class Child:
    """A process with a socket to it, in a session of its own: Ctrl-C in a terminal reaches us
    alone, and what it prints is kept."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str] = (),
        *,
        launch: PythonLaunch | None = None,
        channel: type[LineChannel] | type[ObjectChannel] = LineChannel,
    ) -> None:
        """`launch`: the Python that has the module; None: this one. `channel`: what messages are;
        the module uses the same."""
        launch = launch or PythonLaunch([*PYTHON], dict(os.environ))

        def command(theirs: int) -> list[str]:
            return [*launch.command, "-m", module, str(theirs), *arguments]

        self._start(command, launch.variables, channel)

    @classmethod
    def of_program(
        cls, command: Sequence[str], variables: Mapping[str, str], *, folder: Path
    ) -> Self:
        """A program that is not of gridbench's, in this folder: it has the socket as its standard
        input and output, with a line of JSON for each message. OSError if it cannot be executed."""
        child = cls.__new__(cls)
        child._start(lambda _: list(command), variables, LineChannel, folder=folder)
        return child

    @classmethod
    def started_by(cls, start: Callable[[int, int], ChildProcess]) -> Self:
        """A process that `start` makes of the descriptors of its socket and of its output. What
        that raises, this does."""
        child = cls.__new__(cls)
        child._begin(start, LineChannel)
        return child

    def _start(
        self,
        command: Callable[[int], list[str]],
        variables: Mapping[str, str],
        channel: type[LineChannel] | type[ObjectChannel],
        *,
        folder: Path | None = None,
    ) -> None:
        """`command`: of the descriptor of its socket. `folder`: of a program, which has the socket
        as its standard input and output."""
        standard = folder is not None

        def start(theirs: int, output: int) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                command(theirs),
                env=variables,
                cwd=folder,
                stdin=theirs if standard else subprocess.DEVNULL,
                stdout=theirs if standard else output,
                stderr=output,
                pass_fds=() if standard else [theirs],
                start_new_session=True,
            )

        self._begin(start, channel)

    def _begin(
        self,
        start: Callable[[int, int], ChildProcess],
        channel: type[LineChannel] | type[ObjectChannel],
    ) -> None:
        self._log = OutputFile()
        ours, theirs = socket.socketpair()
        self._channel = channel(ours.detach())
        with theirs:
            try:
                self.process = start(theirs.fileno(), self._log.file.fileno())
            except OSError:
                self._channel.close()
                self._log.close()
                raise
        self._exit = os.pidfd_open(self.process.pid)

    @property
    def descriptors(self) -> tuple[int, int]:
        """To wait for: that of its messages, and that of its end."""
        return self._channel.fileno(), self._exit

    def send(self, message: Any) -> None:
        """Send a message; that the process has ended is noticed by who receives."""
        with contextlib.suppress(OSError):
            self._channel.send(message)

    def receive(self, until: float, glance: Callable[[], object] = lambda: None) -> Any:
        """The next message; `glance` is called ten times a second meanwhile, and may raise.

        Raises Ended, and TimeoutError if there is none by `until` (of the monotonic clock).
        """
        while (message := self._channel.take()) is None:
            glance()
            left = until - time.monotonic()
            # Processes that it forked may keep the socket open after its end.
            ready, _, _ = select.select(
                [self._channel, self._exit], [], [], min(max(left, 0.0), LOOK)
            )
            if self._channel in ready:
                try:
                    self._channel.read()
                except EOFError:
                    raise Ended from None
            elif ready:
                raise Ended
            elif left <= 0:
                raise TimeoutError
        return message

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by itself, within these seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is not None

    def ask_to_end(self, number: signal.Signals) -> None:
        """Send it a signal that it understands as the wish for a clean end."""
        self.process.send_signal(number)

    def end(self, leftovers: Leftovers, *, patience: float = 0.0) -> list[str]:
        """End it, and all that it has started; those that were left behind by it.

        `patience`: seconds that it may take to end by itself.
        """
        try:
            self.wait(patience)
            return leftovers.end(self.process)
        finally:
            self.close()

    def close(self) -> None:
        """Close the socket, which ends a process that still runs, and forget the output."""
        self._channel.close()
        os.close(self._exit)
        self._log.close()

    def last_lines(self, count: int) -> list[str]:
        """The last lines that it has printed."""
        return self._log.last_lines(count)

    def ending(self) -> str:
        """How it ended, after the words for it; it is given a moment to do so."""
        if not self.wait(_EXIT):
            return "has closed the connection"
        return ending(self.process.wait())


class ProcessTemplate:
    """A process that has imported a module, for children that run it (`gridbench.process.copying`).

    With `arguments`, it has called the module's `prepare` with them as well.

    It has to be made before `Leftovers` is active, which would take it for one of them, and is used
    while that is: copies are adopted.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._module = module
        self._requests, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [
                    *PYTHON,
                    "-m",
                    "gridbench.process.copying",
                    str(number),
                    module,
                    *arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[number],
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._requests.close()
        self._process.wait()

    def child(self) -> Child:
        """A copy; a new process, if there can be no copy any more."""
        with contextlib.suppress(OSError):
            return Child.started_by(self._copy)
        return Child(self._module)

    def _copy(self, theirs: int, output: int) -> AdoptedProcess:
        socket.send_fds(self._requests, [b"1"], [theirs, output])
        pid = self._requests.recv(PID, socket.MSG_WAITALL)
        if len(pid) < PID:
            raise OSError(f"process {self._process.pid} of {self._module} has ended")
        return AdoptedProcess(int.from_bytes(pid, sys.byteorder))
