"""Memory of processes, counted so that pages they share are counted once."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

_GONE = (FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess)


def tree(pid: int) -> list[int]:
    """A process and all that descend from it, itself first."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    return []


def footprint(pids: list[int]) -> int:
    """Bytes that these processes hold together: their PSS (proportional set size).

    A page that n processes map counts 1/n in the PSS of each. Anonymous shared memory that is
    held by a descriptor but mapped by none of them would escape; so what is larger is taken:
    the PSS of shared memory, or what is allocated in the segments they have open. Processes
    that end meanwhile count nothing.
    """
    private = shared = 0
    segments: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(*_GONE):
            parts = _rollup(pid)
            private += parts["Pss"] - parts["Pss_Shmem"]
            shared += parts["Pss_Shmem"]
            segments.update(_open_segments(pid))
    return private + max(shared, sum(segments.values()))


def _rollup(pid: int) -> dict[str, int]:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    parts = {"Pss": 0, "Pss_Shmem": 0}
    for line in text.splitlines()[1:]:
        name, _, value = line.partition(":")
        if name in parts:
            parts[name] = int(value.split()[0]) << 10
    return parts


def _open_segments(pid: int) -> dict[tuple[int, int], int]:
    """Allocated bytes of the memory files that the process has open, by device and number."""
    segments: dict[tuple[int, int], int] = {}
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):  # closed meanwhile
            path = f"{folder}/{name}"
            if os.readlink(path).startswith("/memfd:"):
                status = os.stat(path)
                segments[status.st_dev, status.st_ino] = status.st_blocks * 512
    return segments
