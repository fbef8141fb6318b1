"""The side of a process that `gridbench.process.child` has started: messages, and a common end.

It imports next to nothing before it has to: some of these processes measure how long imports take.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
from contextlib import suppress

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

OPEN_FILES = 256
"""Open files that a program has room for which bash has started: that has one with number 255."""


def make_room_for_files(files: int = OPEN_FILES) -> None:
    """Have room for so many open files: as many as the script of a user who starts it in a shell.

    A process that another program has started, or that is a copy of one, has room for 64. Beyond
    that the kernel makes more in steps, and a process with threads stands still at each, until none
    of them can use the old table any more: its workers would seem to start later than those of a
    user's script do. To be called before there are threads.
    """
    with suppress(OSError):  # there may not be so many
        os.close(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, files - 1))


LOOKOUT = "gridbench look"
"""The name of the process that looks out for the parent's end, as `ps -o comm` shows it."""
GRACE = 40.0
"""Seconds that a process may take to end what it has made, if it does so itself."""


def serve(descriptor: str, *, unwinds: bool = False) -> int:
    """The socket to who has started this process; when that one is gone, this process ends. It has
    room for as many open files as a user's script.

    It is ended with all that descends from it. One that `unwinds` gets SIGTERM before, to
    take down what it has made. Another process looks out for it, which is no child of this one. A
    thread would be measured as well: grids do not fork clients that have threads.
    """
    number = int(descriptor)
    # It is not for the processes that this one starts.
    os.set_inheritable(number, False)
    make_room_for_files()
    served = os.getpid()
    if started := os.fork():
        os.waitpid(started, 0)
        return number
    if not os.fork():
        _look_out(served, number, unwinds=unwinds)
    os._exit(0)


def end_now(process: int | None = None) -> None:
    """End a process, this one by default, at once, with all that descends from it."""
    from gridbench.process.children import end_descendants_of

    process = process or os.getpid()
    end_descendants_of(process)
    os.kill(process, signal.SIGKILL)


def _look_out(served: int, number: int, *, unwinds: bool) -> None:
    with open("/proc/self/comm", "w", encoding="ascii") as name:
        name.write(LOOKOUT)
    end = os.pidfd_open(served)
    poll = select.poll()
    poll.register(end, select.POLLIN)
    poll.register(number, select.POLLRDHUP)  # the other end of the socket has been closed
    if end in dict(poll.poll()):
        return
    if unwinds:
        signal.pidfd_send_signal(end, signal.SIGTERM)
        if select.select([end], [], [], GRACE)[0]:
            return
    end_now(served)


# ---- Messages: lines of JSON, or Python objects

_AT_ONCE = 1 << 20  # bytes


class LineChannel:
    """One end of a socket, which it owns; each message is a line of JSON."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._begun = b""
        self._whole: list[bytes] = []

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def send(self, message: Any) -> None:
        """Write a message. Raises OSError when the other end is closed."""
        line = json.dumps(message, default=os.fspath).encode() + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]

    def receive(self) -> Any:
        """The next message, for which it waits. Raises EOFError when there will be none."""
        while not self._whole:
            self.read()
        return self.take()

    def take(self) -> Any | None:
        """The next message that has been read, if there is one."""
        return json.loads(self._whole.pop(0)) if self._whole else None

    def read(self) -> None:
        """Read what has come; waits if nothing has. Raises EOFError at the end."""
        try:
            part = os.read(self._descriptor, _AT_ONCE)
        except ConnectionResetError:
            part = b""
        if not part:
            raise EOFError
        *whole, self._begun = (self._begun + part).split(b"\n")
        self._whole += whole

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)


class ObjectChannel:
    """The same for Python objects: many at a time, in little time.

    Both ends know their classes. What they hold is plain, as the two may have other packages.
    """

    def __init__(self, descriptor: int) -> None:
        from multiprocessing.connection import Connection

        self._connection = Connection(descriptor)
        self._whole: list[Any] = []

    def fileno(self) -> int:
        """The descriptor."""
        return self._connection.fileno()

    def send(self, message: Any) -> None:
        """Write a message. Raises OSError when the other end is closed."""
        self._connection.send(message)

    def receive(self) -> Any:
        """The next message, for which it waits. Raises EOFError when there will be none."""
        self.read()
        return self.take()

    def take(self) -> Any | None:
        """The next message that has been read, if there is one."""
        return self._whole.pop(0) if self._whole else None

    def read(self) -> None:
        """Read the next message; waits if there is none. Raises EOFError at the end."""
        try:
            self._whole.append(self._connection.recv())
        except ConnectionResetError:
            raise EOFError from None

    def close(self) -> None:
        """Close it."""
        self._connection.close()
