"""Messages over a socket: lines of JSON, or Python objects.

It imports next to nothing: some of the processes that use it measure how long imports take.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

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
