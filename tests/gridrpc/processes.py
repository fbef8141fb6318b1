"""Running scripts as users do, and looking for what they leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from gridbench_testbed.daemons import rest_from

#: Bound on any wait: only a hang takes so long.
LONG = 60.0

HERE = Path(__file__).parent


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HERE)}


def run_script(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script of its own to its end."""
    script = write_script(folder, source)
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True, text=True, timeout=LONG, env=environment(), cwd=folder, check=False,
    )  # fmt: skip


def write_script(folder: Path, source: str) -> Path:
    script = folder / "script.py"
    script.write_text(textwrap.dedent(source), encoding="utf-8")
    return script


def start_script(folder: Path, source: str) -> subprocess.Popen[str]:
    """Start a script in a process group of its own, as a shell does."""
    return subprocess.Popen(
        [sys.executable, str(write_script(folder, source))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(), cwd=folder,
        process_group=0,
    )  # fmt: skip


def until(condition: Callable[[], bool], seconds: float = LONG) -> bool:
    """Wait for something to become true. Returns whether it did."""
    end = time.monotonic() + seconds
    while True:
        requested = time.monotonic()
        if condition():
            return True
        if time.monotonic() > end:
            return False
        rest_from(requested, 0.005)


def descendants(pid: int | None = None) -> set[int]:
    """Process ids of all that stem from a process."""
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def alive(pids: set[int]) -> set[int]:
    """Those that still exist, zombies included."""
    return {pid for pid in pids if psutil.pid_exists(pid)}


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of that size in a folder."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder]
    made = subprocess.run(command, capture_output=True, check=False)
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def running(pids: set[int]) -> set[int]:
    """Those that still run: a zombie waits only for its parent, which may not be ours."""

    def runs(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    return {pid for pid in pids if runs(pid)}


def fill(file: Path) -> None:
    """Writes to a file until its file system is full."""
    with file.open("wb", 0) as opened_file, suppress(OSError):
        while True:
            opened_file.write(bytes(4096))
