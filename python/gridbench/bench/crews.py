"""Workers of each kind behind the calls that they have in common, and meetings of all of them."""

from __future__ import annotations

import socket
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gridrpc
from gridbench.bench.work import ARRIVAL, meet

PYTHON = "gridrpc-python"
NATIVE = "gridrpc-native"
POOL = "process-pool"

NULL: dict[str, Any] = {PYTHON: time.monotonic, NATIVE: "builtin/null", POOL: time.monotonic}
"""A function that does next to nothing, and needs no import that a worker has not made."""
SLEEP: dict[str, Any] = {PYTHON: time.sleep, NATIVE: "builtin/sleep", POOL: time.sleep}

_PATIENCE = 60.0  # seconds to wait for a worker at a meeting

Crew = gridrpc.Grid | ProcessPoolExecutor


def crew(kind: str, workers: int) -> Crew:
    """A grid or a process pool, with nothing set that its users would not set."""
    if kind == POOL:
        return ProcessPoolExecutor(workers, mp_context=get_context("fork"))
    return gridrpc.Grid(workers, worker="native" if kind == NATIVE else "python")


def warm_up(kind: str, running: Crew, workers: int) -> None:
    """Return when every worker has answered; Python workers have then all met."""
    if isinstance(running, gridrpc.Grid):
        running.wait_until_ready()
    if kind != NATIVE:
        with Meeting() as meeting:
            calls = [running.submit(meet, meeting.place) for _ in range(workers)]
            meeting.gather(workers)
            meeting.end()
            for call in calls:
                call.result()


class Meeting:
    """A place where tasks wait for each other: so each of them must be in another worker."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gridbench-")
        self.place = str(Path(self._folder.name, "meeting"))
        """To be passed to the tasks."""
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.bind(self.place)
        self._door.listen(1024)
        self._door.settimeout(_PATIENCE)
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
            arrivals.append(ARRIVAL.unpack(guest.recv(ARRIVAL.size, socket.MSG_WAITALL))[0])
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
