"""Running the program as a real process, and waiting for what processes do."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-m", "gridbench")

DEADLINE = 300.0  # seconds until what does not happen is a failure

Run = Callable[..., "subprocess.CompletedProcess[str]"]
MakeSetup = Callable[..., Path]


def until(condition: Callable[[], object]) -> None:
    """Wait for something that a process will do, and fail if it does not."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether the process runs."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def cmdline(process: psutil.Process) -> list[str]:
    """The words that it was started with; none if it has ended."""
    try:
        return list(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []
