"""The client of an engine: starts it, hands it tasks, and takes and stamps what comes back.

A client may be in a process of its own (host.py, hosting.py); the messages between them are plain
objects, as the two need not have the same packages.
"""

from __future__ import annotations

import abc
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gridbench.engines.base import Bytes, Engine, Outcome, Task
from gridbench.engines.functions import one_line
from gridbench.formats import as_given
from gridbench.run.exchange import Exchange, Returned
from gridbench.run.journal import OK, TimelineRow
from gridbench.workload.body import SLEEP, keeps_time
from gridbench.workload.task import DIGEST_BYTES, digests, pattern

if TYPE_CHECKING:
    from gridbench.workload.workload import Seconds


DATA_SEED = 20
"""Seed of the task data and the shared data, so that runs of one set-up carry the same bytes."""
GLANCE = 0.1  # seconds between looks at signals and the display


@dataclass(frozen=True, slots=True)
class Plan:
    """A workload, and how it is to be run. Sizes are in bytes."""

    workers: int
    warm: bool
    """All workers have answered before t = 0; else starting them counts."""
    sleeps: Seconds
    """Seconds to sleep, scaled, shape (ntasks,)."""
    task_bytes: int
    shared_bytes: int
    output_bytes: int
    most_outstanding: int
    """At most so many tasks are in the engine's hands at one time."""
    start_timeout: float
    """Seconds that the engine may take to start."""
    body: str = SLEEP
    """What tasks do for their time: see `gridbench.workload.body`."""

    def make_data(self) -> tuple[Bytes, Bytes]:
        """The data of every task and the shared data: random bytes that no engine can compress.

        Read-only. One buffer is passed with every task, to spare the memory of the client.
        Engines do not know that it is the same, and must move it each time.
        """
        generator = np.random.default_rng(DATA_SEED)
        return (
            np.frombuffer(generator.bytes(self.task_bytes), dtype=np.uint8),
            np.frombuffer(generator.bytes(self.shared_bytes), dtype=np.uint8),
        )

    def tasks(self, data: Bytes, *, check: bool) -> Iterator[Task]:
        """The tasks in order, made as they are requested; with `check`, those of the checksum
        pass, which do not sleep."""
        for tid, sleep in enumerate(self.sleeps, start=1):
            yield Task(
                tid=tid,
                sleep=0.0 if check else float(sleep),
                data=data,
                output_bytes=self.output_bytes,
                check=check,
                body=self.body,
            )


# Every byte is checked in an untimed pass. In the timed one tasks only touch the pages of their
# data, so that checking does not become what is measured.


def inspect_length(task: Task, outcome: Outcome) -> str:
    """For the timed pass: what is wrong if the output has not the length asked for."""
    got = 0 if outcome.output is None else outcome.output.nbytes
    if got == task.output_bytes:
        return ""
    return f"returned {got:,} bytes of output instead of {task.output_bytes:,}"


def digest_inspector(data: Bytes, shared: Bytes, size: int) -> Callable[[Task, Outcome], str]:
    """For the checksum pass: data arrived unchanged, and so did the output of `size` bytes."""
    head = digests(data, shared)
    expected = zlib.crc32(pattern(size).tobytes())

    def inspect(task: Task, outcome: Outcome) -> str:
        del task
        if outcome.output is None or outcome.output.nbytes != DIGEST_BYTES + size:
            got = 0 if outcome.output is None else outcome.output.nbytes
            return f"returned {got:,} bytes instead of digests and output, {DIGEST_BYTES + size:,}"
        whole = outcome.output.data.cast("B")
        for what, part in (("task data", slice(0, 4)), ("shared data", slice(4, DIGEST_BYTES))):
            if whole[part] != head[part]:
                return f"the {what} did not arrive as it was sent"
        if zlib.crc32(whole[DIGEST_BYTES:]) != expected:
            return "the output did not arrive as it should be"
        return ""

    return inspect


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """Facts about an engine that are needed before its start."""

    description: dict[str, Any]
    """Its `Description`."""
    shared_copies: int
    uses_shared_memory: bool
    bodies: tuple[str, ...] | None = None
    """What its tasks can do; None: anything. See `gridbench.workload.body`."""


def facts_of(
    engine: Engine, description: dict[str, Any], workers: int, *, warm: bool
) -> EngineFacts:
    """The facts of an engine, as it would run on so many workers."""
    return EngineFacts(
        description,
        engine.shared_copies(workers, warm=warm),
        engine.uses_shared_memory,
        None if engine.bodies is None else tuple(sorted(engine.bodies)),
    )


@dataclass(slots=True)
class Status:
    """How far a run has come."""

    doing: str = "starting its workers"
    """A part of the start that is still under way; empty from the first task on."""
    submitted: int = 0
    """Tasks handed over in this pass."""
    start: float = float("nan")
    """t = 0, in seconds of CLOCK_MONOTONIC."""
    ready_seconds: float | None = None
    share_seconds: float | None = None


class Client(abc.ABC):
    """One run: a pass of timed tasks and, if wanted, one of checked tasks on the same workers."""

    def __init__(self) -> None:
        self.status = Status()
        self.collected = 0
        """Tasks taken in this pass."""
        self.finished = False
        """All tasks of this pass have been taken."""

    @abc.abstractmethod
    def begin(self, plan: Plan, *, check: bool) -> None:
        """Begin a pass; the first one starts the workers. Returns at once."""

    @abc.abstractmethod
    def take(self, wait: float) -> list[TimelineRow]:
        """Results since the last call; waits up to `wait` seconds.

        Raises EngineFailure when all that came before has been taken.
        """

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """The engine's description; between passes it knows more than at the beginning."""

    @abc.abstractmethod
    def close(self, patience: float) -> str:
        """End the workers; what went wrong, if anything. Takes little more than `patience` s."""


class LocalClient(Client):
    """A client in this process."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine
        self._data: tuple[Bytes, Bytes] | None = None
        self._shared: Any = None  # what the engine gave for the shared data
        self._exchanges: list[Exchange] = []

    def begin(self, plan: Plan, *, check: bool) -> None:
        """See `Client`."""
        data, shared = self._data or plan.make_data()
        first = self._data is None
        self._data = (data, shared)
        self.collected, self.finished = 0, False
        self._exchanges.append(
            Exchange(
                self._engine,
                begin=(lambda: self._start(plan, shared)) if first else (lambda: self._shared),
                tasks=plan.tasks(data, check=check),
                count=len(plan.sleeps),
                most_outstanding=plan.most_outstanding,
                inspect=digest_inspector(data, shared, plan.output_bytes)
                if check
                else inspect_length,
            )
        )
        self._exchanges[-1].start()

    def take(self, wait: float) -> list[TimelineRow]:
        """See `Client`."""
        exchange = self._exchanges[-1]
        try:
            returned = exchange.take(wait)
        finally:
            self.status.submitted = exchange.submitted
        self.collected, self.finished = exchange.collected, exchange.finished
        return [self._row(item) for item in returned]

    def describe(self) -> dict[str, Any]:
        """See `Client`."""
        return asdict(self._engine.describe())

    def close(self, patience: float) -> str:
        """In a thread of its own, so that a second Ctrl-C still gets through."""
        for exchange in self._exchanges:
            exchange.stop()
        failures: list[Exception] = []

        def end() -> None:
            try:
                self._engine.close()
            except Exception as error:  # an engine is foreign code: it can fail in any way
                failures.append(error)

        closer = threading.Thread(target=end, name="close", daemon=True)
        closer.start()
        deadline = time.monotonic() + patience
        while closer.is_alive() and time.monotonic() < deadline:
            closer.join(GLANCE)
        stuck = closer.is_alive()
        for exchange in self._exchanges:
            exchange.join(GLANCE)
        if stuck:
            return f"the engine did not end its workers within {as_given(patience)}"
        return f"the engine failed to close: {one_line(failures[0])}" if failures else ""

    def _start(self, plan: Plan, shared: Bytes) -> Any:
        """Start the workers and give the shared data; t = 0 lies before or after the start."""
        status = self.status
        self._engine.patience = plan.start_timeout
        self._engine.prepare(plan.workers)
        requested = time.monotonic()
        self._engine.start(plan.workers)
        if plan.warm:
            status.doing = "waiting until all workers have answered"
            self._engine.wait_ready()
            status.ready_seconds = time.monotonic() - requested
        status.start = time.monotonic() if plan.warm else requested
        status.doing = "giving it the shared data"
        before = time.monotonic()
        self._shared = self._engine.share(shared)
        status.share_seconds = time.monotonic() - before
        status.doing = ""
        return self._shared

    def _row(self, item: Returned) -> TimelineRow:
        assert self._data is not None
        outcome, start = item.outcome, self.status.start
        return TimelineRow(
            tid=item.task.tid,
            sleep=item.task.sleep if keeps_time(item.task.body) else float("nan"),
            slept=float(outcome.slept),
            submit=item.submit - start,
            queued=float(outcome.queued) - start,
            calc_in=float(outcome.calc_in) - start,
            calc_out=float(outcome.calc_out) - start,
            retrieve=item.retrieve - start,
            worker=str(outcome.worker),
            host=str(outcome.host),
            bytes_in=item.task.data.nbytes,
            bytes_shared=self._data[1].nbytes,
            bytes_out=item.output_bytes,
            status=" ".join(outcome.error.split()) or OK,
            clock_error=float(outcome.clock_error),
        )


# ---- Messages between gridbench and the process of a client


@dataclass(frozen=True, slots=True)
class Pass:
    """To the host: begin a pass."""

    plan: Plan
    check: bool


@dataclass(frozen=True, slots=True)
class Close:
    """To the host: end the workers, and yourself."""


@dataclass(frozen=True, slots=True)
class News:
    """From the host: rows that are new, and how far it is."""

    rows: list[TimelineRow]
    status: Status
    description: dict[str, Any] | None
    """At the end of a pass: that of the engine, which may know more now."""


@dataclass(frozen=True, slots=True)
class Failed:
    """From the host: the engine failed or, if `refused`, does not take what it was given."""

    what: str
    refused: bool = False
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """From the host: the workers have been ended, or it was tried."""

    problem: str
