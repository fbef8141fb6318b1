"""Messages over a socket that are Python objects: many at a time, in little time.

Both ends know their classes; what they hold is plain, as the two need not have the same packages.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any


class Objects:
    """One end of the socket, which it owns; see `gridbench.process.lines.Lines`."""

    def __init__(self, descriptor: int) -> None:
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
