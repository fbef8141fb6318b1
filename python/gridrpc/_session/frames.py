"""What programs and the process of a session send each other, over a Unix socket.

A message is its length, 8 bytes, and a pickle. Both ends are of one user, and of one version: the
first message each way is JSON, which tells the versions.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gridrpc._session.places import SOCKET

_LENGTH = struct.Struct("<Q")
#: Connections that wait to be accepted; the next one waits before it connects.
BACKLOG = 64
_TIME = struct.Struct("ll")


class Gone(Exception):
    """The other end of a connection is gone."""


class Silent(Gone):
    """The other end has not answered in time."""


class Frames:
    """One end of a connection. Raises Gone."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = connection.makefile("rb")

    def limit(self, seconds: float | None) -> None:
        """Raise Silent when a read or a message that is sent takes longer than this. None: wait."""
        with suppress(OSError):  # it is closed here
            self._connection.settimeout(seconds)

    def send(self, message: Any) -> None:
        """Send a message."""
        self._send(pickle.dumps(message, 5))

    def receive(self) -> Any:
        """The next message."""
        return pickle.loads(self._receive())

    def send_versions(self, **told: Any) -> None:
        """Send the first message."""
        self._send(json.dumps(told).encode())

    def receive_versions(self) -> dict[str, Any]:
        """The first message."""
        told = json.loads(self._receive())
        return told if isinstance(told, dict) else {}

    def _send(self, contents: bytes) -> None:
        try:
            self._connection.sendall(_LENGTH.pack(len(contents)))
            self._connection.sendall(contents)
        except TimeoutError as error:
            raise Silent from error
        except OSError as error:
            raise Gone from error

    def _receive(self) -> bytes:
        try:
            head = self._reader.read(_LENGTH.size)
            if len(head) < _LENGTH.size:
                raise Gone
            (length,) = _LENGTH.unpack(head)
            contents = self._reader.read(length)
        except TimeoutError as error:
            raise Silent from error
        except (OSError, ValueError) as error:  # ValueError: it is closed here
            raise Gone from error
        if len(contents) < length:
            raise Gone
        return contents

    def close(self) -> None:
        """End the connection, also for a thread that waits for a message."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._reader.close()
        self._connection.close()


def listen(folder: Path) -> socket.socket:
    """The socket of a session, to which only its user can connect."""
    (folder / SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _short(folder) as path:
        listener.bind(path)
    listener.listen(BACKLOG)
    return listener


def connect(folder: Path, seconds: int) -> Frames:
    """A connection to the session of that folder, within that time.

    Raises OSError, and BlockingIOError if the session has not accepted earlier connections.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Python's own timeout would not wait for room in the backlog.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIME.pack(seconds, 0))
        with _short(folder) as path:
            connection.connect(path)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIME.pack(0, 0))
    except OSError:
        connection.close()
        raise
    return Frames(connection)


def user_of(connection: socket.socket) -> int:
    """The user at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("iII", credentials)
    return int(uid)


@contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A path of the socket that is short enough for one, wherever the folder is."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)
