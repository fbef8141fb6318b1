"""The client of an engine: who starts it, hands it tasks, and takes and stamps what comes back."""

from __future__ import annotations

import abc
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

from gridbench.engines.base import Bytes, Engine
from gridbench.engines.python_tasks import one_line
from gridbench.formats import as_given
from gridbench.run.checksums import digest_inspector, inspect_length
from gridbench.run.exchange import Exchange, Returned
from gridbench.run.plan import Plan
from gridbench.run.rows import OK, Row
from gridbench.workload.body import keeps_time

GLANCE = 0.1  # seconds between looks at signals and the display


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What has to be known of an engine before it is started."""

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
    def take(self, wait: float) -> list[Row]:
        """What has come back since the last time; takes up to `wait` seconds.

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

    def take(self, wait: float) -> list[Row]:
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
        asked = time.monotonic()
        self._engine.start(plan.workers)
        if plan.warm:
            status.doing = "waiting until all workers have answered"
            self._engine.wait_ready()
            status.ready_seconds = time.monotonic() - asked
        status.start = time.monotonic() if plan.warm else asked
        status.doing = "giving it the shared data"
        before = time.monotonic()
        self._shared = self._engine.share(shared)
        status.share_seconds = time.monotonic() - before
        status.doing = ""
        return self._shared

    def _row(self, item: Returned) -> Row:
        assert self._data is not None
        outcome, start = item.outcome, self.status.start
        return Row(
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
