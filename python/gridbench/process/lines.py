"""Messages over a socket, each a line of JSON.

It imports next to nothing: some of the processes that use it measure how long imports take.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_AT_ONCE = 1 << 20  # bytes


class Lines:
    """One end of the socket, which it owns."""

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
