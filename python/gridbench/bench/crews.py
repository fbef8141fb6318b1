"""Workers of each kind behind the calls that they have in common."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import gridrpc
from gridbench.engines.meeting import Meeting, meet

PYTHON = "gridrpc-python"
NATIVE = "gridrpc-native"
POOL = "process-pool"

NULL: dict[str, Any] = {PYTHON: time.monotonic, NATIVE: "builtin/null", POOL: time.monotonic}
"""A function that does next to nothing, and needs no import that a worker has not made."""
SLEEP: dict[str, Any] = {PYTHON: time.sleep, NATIVE: "builtin/sleep", POOL: time.sleep}

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
