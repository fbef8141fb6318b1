"""A place where tasks wait for each other, so that each of them must be in another worker."""

from __future__ import annotations

import os
import socket
import struct
import time

_ARRIVAL = struct.Struct("=d")  # when a task came, in seconds of the monotonic clock


class Meeting:
    """Made by the client; `place` goes to the tasks, which call `meet` with it."""

    def __init__(self, patience: float) -> None:
        """`patience`: seconds that `gather` waits for the next task."""
        # Not for the workers, which import this file to meet.
        import tempfile

        self._folder = tempfile.TemporaryDirectory(prefix="gridbench-")
        self.place = os.path.join(self._folder.name, "meeting")
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.bind(self.place)
        self._door.listen(1024)
        self._door.settimeout(patience)
        self._guests: list[socket.socket] = []

    def gather(self, expected: int) -> list[float]:
        """When each of the tasks came, on the monotonic clock, once all are there.

        They stay until `end`. Raises TimeoutError.
        """
        arrivals: list[float] = []
        for _ in range(expected):
            try:
                guest, _ = self._door.accept()
            except TimeoutError:
                raise TimeoutError(
                    f"only {len(arrivals)} of {expected} workers came to a meeting"
                ) from None
            self._guests.append(guest)
            arrivals.append(_ARRIVAL.unpack(guest.recv(_ARRIVAL.size, socket.MSG_WAITALL))[0])
        return arrivals

    def end(self) -> None:
        """Let all go."""
        for guest in self._guests:
            guest.close()
        self._guests.clear()

    def __enter__(self) -> Meeting:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()
        self._door.close()
        self._folder.cleanup()


def meet(place: str) -> int:
    """In a worker: tell the client that it is there, and stay until all may go; the process id."""
    arrived = time.monotonic()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(place)
        connection.sendall(_ARRIVAL.pack(arrived))
        connection.recv(1)
    return os.getpid()
