"""Child processes: the Python that starts them, finding them, and waiting for their end.

With the standard library alone, as the environments of engines hold little else.
"""

from __future__ import annotations

import contextlib
import ctypes
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


def processor_time(processes: Iterable[int]) -> float:
    """Seconds that these processes have computed so far, all threads. Those that have ended count
    nothing."""
    found = 0.0
    for process in processes:
        with contextlib.suppress(OSError):
            # The clock of clock_getcpuclockid(3): exact, where /proc counts in hundredths.
            found += time.clock_gettime(~process << 3 | 2)
    return found


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


# ---- Orphans

_SET_CHILD_SUBREAPER = 36  # of prctl(2)
_FIRST_POLL, _POLL = 0.001, 0.02  # seconds between looks, at first and at most
_GRACE = 3.0  # seconds from SIGTERM to SIGKILL
_PYTHONS_HELPERS = b"from multiprocessing."  # as in resource_tracker: they serve us, and go with us


class Leftovers:
    """While active, this process adopts orphans of those it has started."""

    def __init__(self) -> None:
        self._before: set[int] = set()

    def __enter__(self) -> Leftovers:
        _adopt_orphans(True)
        self._before = children_of(os.getpid())
        return self

    def __exit__(self, *_: object) -> None:
        _adopt_orphans(False)

    def end(self, started: ChildProcess | None = None, *, patience: float = 5.0) -> list[str]:
        """End all that has come to descend from this process since it became active.

        `started`, if it still runs, is given no time and does not count. The others have `patience`
        seconds to end by themselves. Returns those that did not, each by its name and id.
        """
        if started is not None and started.poll() is None:
            # Its descendants first: once it is gone, nobody can find them.
            _signal(descendants_of(started.pid), signal.SIGTERM)
            started.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(_GRACE)
            started.kill()
            started.wait()
        self._wait(patience)
        behind = self._those_left()
        names = [name for process in sorted(behind) if (name := _name(process))]
        _signal(behind, signal.SIGTERM)
        self._wait(_GRACE if behind else 0)
        # What is killed may just have started another.
        while left := self._those_left():
            _signal(left, signal.SIGKILL)
            time.sleep(_POLL)
        return names

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        pause = _FIRST_POLL  # most end at once
        while self._those_left() and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, _POLL)

    def _those_left(self) -> set[int]:
        """All that descend from this process by now, but for those before; takes in the dead."""
        left: set[int] = set()
        for child in children_of(os.getpid()) - self._before:
            if _PYTHONS_HELPERS in _read(child, "cmdline"):
                continue
            left |= {process for process in descendants_of(child) if _alive(process)}
            with contextlib.suppress(ChildProcessError):  # taken in by whoever has started it
                if os.waitpid(child, os.WNOHANG) == (0, 0):
                    left.add(child)
        return left


def end_descendants_of(pid: int) -> None:
    """Kill all processes that descend from `pid`, but not itself."""
    while left := [process for process in descendants_of(pid) if _alive(process)]:
        _signal(left, signal.SIGKILL)
        time.sleep(_POLL)


def describe(names: list[str]) -> str:
    """One line about processes that had to be ended; nothing if there were none."""
    if not names:
        return ""
    few = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    are = "1 process, which was" if len(names) == 1 else f"{len(names)} processes, which were"
    return f"it left behind {are} ended: {few}"


def _signal(processes: Iterable[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _alive(process: int) -> bool:
    # Behind the name, which may hold anything: the state, Z or X for what has ended.
    state = _read(process, "stat").rpartition(b") ")[2][:1]
    return state not in (b"", b"Z", b"X")


def _name(process: int) -> str:
    name = _read(process, "comm").decode(errors="replace").strip()
    return f"{name} (process {process})" if name else ""


def _read(process: int, what: str) -> bytes:
    """A file of /proc, or nothing if the process has gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/{what}").read_bytes()
    return b""


def _adopt_orphans(wanted: bool) -> None:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    if prctl(_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot adopt orphans: {os.strerror(number)}")
