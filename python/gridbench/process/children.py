"""Processes that a driver starts: where their files go, finding them, waiting for their end.

With the standard library alone, as the environments of engines hold little else.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path


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
