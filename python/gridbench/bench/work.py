"""What the workers run in the measurements. Imports little, as each worker loads it by name."""

from __future__ import annotations

import os
import struct
import time
from typing import Any

PAGE = 4096
ARRIVAL = struct.Struct("=d")
"""What a task tells at a meeting: when it came, in seconds of the monotonic clock."""


def stand(seconds: float) -> tuple[float, int]:
    """Sleep; returns when the work began, on the monotonic clock, and the process id."""
    began = time.monotonic()
    time.sleep(seconds)
    return began, os.getpid()


def read(data: Any) -> int:
    """Sum of one byte of each page of an array of bytes, which brings all of it here."""
    return int(data[::PAGE].sum(dtype="u8"))


def meet(place: str) -> None:
    """Tell the client that this worker is there, and stay until it lets all go."""
    _wait(place, time.monotonic())


def read_and_meet(data: Any, place: str) -> int:
    """Read the data, tell when that was done, and stay until all have."""
    total = read(data)
    _wait(place, time.monotonic())
    return total


def _wait(place: str, arrived: float) -> None:
    # Here, as what only sleeps or reads should not have to load it in every worker.
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(place)
        connection.sendall(ARRIVAL.pack(arrived))
        connection.recv(1)
