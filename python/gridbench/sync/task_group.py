"""The tasks of one host: a remote object that starts and holds them, releases them at the agreed
instant, and reports how they ended.

There is one on each host, so that nothing of gridbench runs beside the tasks but one thread, which
waits for their ends.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from gridbench.formats import as_given
from gridbench.sync.host_counters import CounterSampler
from gridbench.sync.record import KEPT, PROGRAM, HoldPoint, HostUse, TaskRun
from gridbench.sync.reports import reported
from gridrpc._native import EndedTask, HeldTask, wait_for_held

_READ = 8 << 20
"""Bytes at the end of a task's output that are searched for its report."""
_TO_DIE = 10.0
"""Seconds to wait for a killed process: one that hangs in the kernel may never end."""


@dataclass(frozen=True, slots=True)
class TaskHostFacts:
    """A host."""

    host: str
    """The name that it has for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOrder:
    """A task to start and hold."""

    worker: int
    host: str
    rank: int
    """Number among the workers of its host, from 0."""
    program: str
    """A file, a name on the PATH, or gridbench.sync.record.PROGRAM."""
    arguments: tuple[str, ...]
    directory: str
    """The folder that it runs in; made if missing."""
    environment: dict[str, str] = field(default_factory=dict)
    """Additional variables."""


@dataclass(frozen=True, slots=True)
class HostOutcome:
    """A round on one host."""

    late: int
    """Nanoseconds from the instant until the tasks were released, if that was too late."""
    tasks: tuple[TaskRun, ...]
    """With times after the instant by this host's clock."""
    printed: dict[int, tuple[bytes, bytes]]
    """The last part of standard output and standard error, by worker."""
    use: HostUse | None


class _Held(NamedTuple):
    order: TaskOrder
    start: HoldPoint
    task: HeldTask

    @property
    def over(self) -> bool:
        """Whether it has ended, or cannot be executed."""
        try:
            return self.task.ended is not None
        except OSError:
            return True


class TaskGroup:
    """Holds the tasks of a round from `prepare` to the end of `run`."""

    def __init__(self, watched: Sequence[str] = ()) -> None:
        """`watched`: names of programs whose processor time is recorded."""
        self._folder = Path(tempfile.mkdtemp(prefix="gridbench-sync-"))
        self._held: list[_Held] = []
        self._sampler = CounterSampler(platform.node())
        self._watched = tuple(watched)
        self._sampler.watch(self._watched)

    def facts(self) -> TaskHostFacts:
        """The host."""
        return TaskHostFacts(platform.node())

    def why_not(self, program: str, directory: str) -> str:
        """Why this host cannot run the program; empty if it can."""
        try:
            path = _file_of(program, directory)
        except OSError as error:
            return str(error)
        if not path.is_file():
            return "there is no such file"
        return "" if os.access(path, os.X_OK) else "it may not be executed"

    def clock(self) -> int:
        """The time."""
        return time.monotonic_ns()

    def prepare(self, orders: Sequence[TaskOrder], start: HoldPoint) -> dict[int, str]:
        """Start and hold these tasks; why some cannot be started, by worker. Tasks that are still
        held are ended first."""
        self._held.clear()
        reasons = {order.worker: self._hold(order, start) for order in orders}
        return {worker: why for worker, why in reasons.items() if why}

    def run(self, at: int, timeout: float) -> HostOutcome:
        """Release all held tasks at this time and wait for their ends. Kill those that still run
        after `timeout` seconds."""
        self._sampler.begin(at / 1e9, self._watched)
        tasks = [held.task for held in self._held]
        for task in tasks:
            task.release(at)
        late = max(0, time.monotonic_ns() - at)
        killed = list[_Held]()
        if not wait_for_held(tasks, at + late + round(timeout * 1e9)):
            killed = [held for held in self._held if not held.over]
        for held in killed:
            held.task.kill()
        wait_for_held(tasks, time.monotonic_ns() + round(_TO_DIE * 1e9))
        use = self._sampler.finish()
        text = f"it was ended after {as_given(timeout)}"
        printed = {held.order.worker: self._printed(held.order.worker) for held in self._held}
        runs = tuple(
            self._run_of(held, at, late, printed[held.order.worker], text if held in killed else "")
            for held in self._held
        )
        self._held.clear()
        stored = {worker: (out[-KEPT:], err[-KEPT:]) for worker, (out, err) in printed.items()}
        return HostOutcome(late, runs, stored, use)

    def close(self) -> None:
        """End held tasks and remove the files."""
        self._held.clear()
        self._sampler.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _hold(self, order: TaskOrder, start: HoldPoint) -> str:
        """Start a task; why it cannot be, or nothing."""
        environment = {**os.environ, **order.environment}
        try:
            os.makedirs(order.directory, exist_ok=True)
            program = _file_of(order.program, order.directory)
            where = order.arguments, [*environment.items()], order.directory
            files = self._out(order.worker), self._errors(order.worker)
            if start == "entry":
                with contextlib.suppress(ValueError):  # this program cannot be held there
                    held = HeldTask(program, *where, *files, True)
                    self._held.append(_Held(order, "entry", held))
                    return ""
            self._held.append(_Held(order, "exec", HeldTask(program, *where, *files, False)))
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _run_of(
        self, held: _Held, at: int, late: int, printed: tuple[bytes, bytes], over_time: str
    ) -> TaskRun:
        order = held.order
        run = TaskRun(
            worker=order.worker,
            host=order.host,
            rank=order.rank,
            status="lost",
            start=held.start,
            late=late / 1e9,
        )
        try:
            ended = held.task.ended
        except OSError as error:
            return replace(run, why=f"it cannot be executed: {error.strerror or error}")
        if ended is None:
            return replace(run, status="timeout", why=f"{over_time}, and still has not ended")
        output, errors = printed
        report = reported(output)
        why = over_time or _why(ended, errors) or report.why
        return replace(
            run,
            status="timeout" if over_time else "failed" if why else "ok",
            began=None if ended.began is None else (ended.began - at) / 1e9,
            ended=(ended.ended - at) / 1e9,
            exit=ended.status,
            why=why,
            user=ended.user,
            system=ended.system,
            memory=ended.memory,
            phases=report.phases,
        )

    def _printed(self, worker: int) -> tuple[bytes, bytes]:
        return _end_of(self._out(worker), _READ), _end_of(self._errors(worker), KEPT)

    def _out(self, worker: int) -> Path:
        return self._folder / f"{worker}.out"

    def _errors(self, worker: int) -> Path:
        return self._folder / f"{worker}.err"


def _file_of(program: str, directory: str) -> Path:
    """The file of a program: a name on the PATH, or a path relative to a folder. OSError if it is
    not found."""
    if program == PROGRAM:
        from gridbench.native import task_program

        return task_program()
    if os.sep in program:
        return Path(directory, program)
    found = shutil.which(program)
    if found is None:
        raise OSError(0, f"no folder of PATH has a program `{program}`")
    return Path(found)


def _why(ended: EndedTask, errors: bytes) -> str:
    """The reason of a failure, with the last line of standard error."""
    if ended.status == 0:
        return ""
    last = errors.decode(errors="replace").strip().rpartition("\n")[2][:300]
    said = f": {last}" if last else ""
    if ended.status < 0:
        return f"signal {-ended.status} ended it{said}"
    return f"exit status {ended.status}{said}"


def _end_of(path: Path, most: int) -> bytes:
    with contextlib.suppress(OSError), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - most))
        return file.read(most)
    return b""
