"""Running the program as a real process, and waiting for what processes do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from gridbench_testbed.daemons import rest_from

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-m", "gridbench")
BENCHMARKS = (sys.executable, "-m", "benchmarks")

DEADLINE = 300.0  # seconds until what does not happen is a failure

Run = Callable[..., "subprocess.CompletedProcess[str]"]
MakeSetup = Callable[..., Path]


_STRANGER = """
import os, select
parent = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == parent:  # so long it descends from who has started that
    pass
print(os.getpid(), flush=True)
while not select.select([0], [], [], 0)[0]:
    for _ in range(100_000):
        pass
"""


@contextmanager
def stranger(
    *command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> Iterator[int]:
    """A process that keeps a processor busy and descends from nobody here; its id. `command`: what
    runs it, if not Python does so by itself."""
    with subprocess.Popen(
        command or (sys.executable, "-c", _STRANGER), env=env, cwd=cwd,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        yield int(process.stdout.readline())


def went_well(record: dict[str, Any]) -> bool:
    """Whether nothing is wrong with a run but what other programs did meanwhile."""
    reasons = record["invalid_because"]
    return record["status"] == "complete" and reasons in ([], [record["load"]["told"]])


def accept(folder: Path) -> None:
    """Have the runs in and below a folder count although other programs disturbed them."""
    for path in folder.rglob("run.json"):
        record = json.loads(path.read_text())
        assert went_well(record)
        path.write_text(json.dumps(record | {"valid": True, "invalid_because": []}))


def until(condition: Callable[[], object]) -> None:
    """Wait for something that a process will do, and fail if it does not."""
    end = time.monotonic() + DEADLINE
    while True:
        requested = time.monotonic()
        if condition():
            return
        assert time.monotonic() < end, "it did not happen"
        rest_from(requested)


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
