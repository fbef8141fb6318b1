"""The tasks of one host: a remote object that starts and holds them, releases them at the agreed
instant, and reports how they ended.

There is one on each host, so that nothing of gridbench runs beside the tasks but one thread, which
waits for their ends. Times in its messages are nanoseconds of that host's monotonic clock.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gridbench.formats import as_given
from gridbench.sync.host_counters import CounterSampler
from gridbench.sync.record import KEPT, PROGRAM, HoldPoint, HostUse, Phase, Status
from gridbench.sync.reports import reported
from gridrpc._native import EndedTask, HeldTask, processors, wait_for_held

_READ = 8 << 20
"""Bytes at the end of a task's output that are searched for its report."""
_TO_DIE = 10.0
"""Seconds to wait for a killed process: one that hangs in the kernel may never end."""


@dataclass(frozen=True, slots=True)
class TaskHostFacts:
    """A host."""

    host: str
    """The name that it has for itself."""
    cores: int
    python: str
    """The version."""


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """A task to start and hold."""

    worker: int
    program: str
    """A file, a name on the PATH, or gridbench.sync.record.PROGRAM."""
    arguments: tuple[str, ...]
    directory: str
    """The folder that it runs in; made if missing."""
    environment: dict[str, str] = field(default_factory=dict)
    """Additional variables."""


@dataclass(frozen=True, slots=True)
class HeldReply:
    """Whether a task is held."""

    worker: int
    start: HoldPoint
    why_not: str = ""
    """Empty: it is held."""


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """How a task ended."""

    worker: int
    start: HoldPoint
    status: Status
    began: int | None = None
    ended: int | None = None
    exit: int | None = None
    why: str = ""
    user: float = 0.0
    system: float = 0.0
    memory: int = 0
    phases: tuple[Phase, ...] = ()
    output: bytes = b""
    """The last part of its standard output."""
    errors: bytes = b""


@dataclass(frozen=True, slots=True)
class HostOutcome:
    """A round on one host."""

    late: int
    """Nanoseconds from the instant until the tasks were released, if that was too late."""
    outcomes: tuple[TaskOutcome, ...]
    use: HostUse | None


class TaskGroup:
    """Holds the tasks of a round from `prepare` to the end of `run`."""

    def __init__(self, watched: Sequence[str] = ()) -> None:
        """`watched`: names of programs whose processor time is recorded."""
        self._folder = Path(tempfile.mkdtemp(prefix="gridbench-sync-"))
        self._held: dict[int, tuple[HeldTask, HoldPoint]] = {}
        self._sampler = CounterSampler(platform.node())
        self._watched = tuple(watched)
        self._sampler.watch(self._watched)

    def facts(self) -> TaskHostFacts:
        """Name, cores and Python of the host."""
        return TaskHostFacts(platform.node(), processors(), platform.python_version())

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

    def prepare(self, orders: Sequence[TaskOrder], start: HoldPoint) -> list[HeldReply]:
        """Start and hold these tasks. Tasks that are still held are ended first."""
        self._held.clear()
        return [self._hold(order, start) for order in orders]

    def run(self, at: int, timeout: float) -> HostOutcome:
        """Release all held tasks at this time and wait for their ends. Kill those that still run
        after `timeout` seconds."""
        self._sampler.begin(at / 1e9, self._watched)
        for task, _ in self._held.values():
            task.release(at)
        late = max(0, time.monotonic_ns() - at)
        tasks = [task for task, _ in self._held.values()]
        until = at + late + round(timeout * 1e9)
        over_time = set[int]()
        if not wait_for_held(tasks, until):
            over_time = {w for w, (task, _) in self._held.items() if not _over(task)}
        for worker in over_time:
            self._held[worker][0].kill()
        wait_for_held(tasks, time.monotonic_ns() + round(_TO_DIE * 1e9))
        use = self._sampler.finish()
        told = f"it was ended after {as_given(timeout)}"
        outcomes = [self._outcome(w, told if w in over_time else "") for w in self._held]
        self._held.clear()
        return HostOutcome(late, tuple(outcomes), use)

    def close(self) -> None:
        """End held tasks and remove the files."""
        self._held.clear()
        self._sampler.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _hold(self, order: TaskOrder, start: HoldPoint) -> HeldReply:
        environment = {**os.environ, **order.environment}
        try:
            os.makedirs(order.directory, exist_ok=True)
            program = _file_of(order.program, order.directory)
            where = order.arguments, [*environment.items()], order.directory
            files = self._out(order.worker), self._errors(order.worker)
            if start == "entry":
                with contextlib.suppress(ValueError):  # this program cannot be held there
                    self._held[order.worker] = HeldTask(program, *where, *files, True), "entry"
                    return HeldReply(order.worker, "entry")
            self._held[order.worker] = HeldTask(program, *where, *files, False), "exec"
        except OSError as error:
            return HeldReply(order.worker, start, error.strerror or str(error))
        return HeldReply(order.worker, "exec")

    def _outcome(self, worker: int, over_time: str) -> TaskOutcome:
        task, start = self._held[worker]
        try:
            ended = task.ended
        except OSError as error:
            return TaskOutcome(
                worker, start, "lost", why=f"it cannot be executed: {error.strerror or error}"
            )
        if ended is None:
            return TaskOutcome(
                worker, start, "timeout", why=f"{over_time}, and still has not ended"
            )
        output, errors = _end_of(self._out(worker), _READ), _end_of(self._errors(worker), KEPT)
        report = reported(output)
        why = over_time or _why(ended, errors) or report.why
        return TaskOutcome(
            worker,
            start,
            "timeout" if over_time else "failed" if why else "ok",
            began=ended.began,
            ended=ended.ended,
            exit=ended.status,
            why=why,
            user=ended.user,
            system=ended.system,
            memory=ended.memory,
            phases=report.phases,
            output=output[-KEPT:],
            errors=errors,
        )

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


def _over(task: HeldTask) -> bool:
    try:
        return task.ended is not None
    except OSError:
        return True


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
