"""Processes that an engine leaves behind: they are found by descent, and ended by their ids.

Engines start daemons that detach from whoever started them. Linux gives orphans to the nearest
ancestor that has asked for them (a *child subreaper*), so that none is lost from sight.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from gridbench.process.children import ChildProcess, children_of, descendants_of

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
            # Its descendants first, as they would be told to end by a parent that is gone.
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


def told(names: list[str]) -> str:
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
