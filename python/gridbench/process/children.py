"""Child processes: the Python that starts them, finding them, and waiting for their end.

With the standard library alone, as the environments of engines hold little else.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PYTHON = (sys.executable, "-P")
"""This Python, to be followed by arguments: it imports nothing from the current folder."""


@dataclass(frozen=True, slots=True)
class PythonLaunch:
    """A Python, and the variables for its processes."""

    command: list[str]
    """To be followed by arguments."""
    variables: dict[str, str]


class AdoptedProcess:
    """A child of this process that another one has started: what `subprocess.Popen` offers for
    those that it starts itself."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        """As of `subprocess.Popen`: None while it runs, minus the signal that has ended it."""

    def poll(self) -> int | None:
        """Look whether it has ended."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # taken in by who ends what was left behind
                self.returncode = 0
            else:
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; subprocess.TimeoutExpired if it has not after `timeout` s."""
        if self.poll() is None:
            end = os.pidfd_open(self.pid)
            try:
                select.select([end], [], [], timeout)
            finally:
                os.close(end)
            self.poll()
        if self.returncode is None:
            raise subprocess.TimeoutExpired([f"process {self.pid}"], timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


ChildProcess = subprocess.Popen[bytes] | AdoptedProcess
"""A child of this process, whoever has started it."""


def children_of(process: int) -> set[int]:
    """Ids of the processes that `process` has started, or adopted; none if it has ended."""
    found: set[int] = set()
    threads: list[Path] = []
    with contextlib.suppress(OSError):  # the process has ended
        threads.extend(Path(f"/proc/{process}/task").iterdir())
    for thread in threads:
        with contextlib.suppress(OSError):  # that thread has ended
            found.update(int(child) for child in (thread / "children").read_text().split())
    return found


def descendants_of(process: int) -> set[int]:
    """Ids of the children of `process`, and of theirs."""
    children = children_of(process)
    return children.union(*(descendants_of(child) for child in children))


def end(processes: Iterable[int], patience: float) -> None:
    """Return when none of the processes runs; those that do after `patience` seconds are killed."""
    processes = tuple(processes)
    until = time.monotonic() + patience
    running: set[int] = set()
    with contextlib.ExitStack() as stack:
        poll = select.poll()
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                descriptor = os.pidfd_open(process)
                stack.callback(os.close, descriptor)
                poll.register(descriptor, select.POLLIN)
                running.add(descriptor)
        while running:
            seconds = max(0.0, until - time.monotonic())
            for descriptor, _ in poll.poll(seconds * 1000):
                poll.unregister(descriptor)
                running.discard(descriptor)
            if time.monotonic() >= until:
                for descriptor in running:
                    with contextlib.suppress(ProcessLookupError):
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                until = time.monotonic() + 1.0
    for process in processes:
        with contextlib.suppress(ChildProcessError):  # it is not a child of this process
            os.waitpid(process, os.WNOHANG)


@contextlib.contextmanager
def temporary_files_in(folder: str) -> Iterator[None]:
    """What is started meanwhile has its temporary files in a folder, which its driver removes."""
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before
