"""A run as tasks on their way: client, link, perhaps a manager, workers, and back.

    client -> (link -> manager) -> link -> worker: start, sleep -> link (-> link) -> client

Each of these can do only so much at a time, and all of them work at once: that is what overlaps.
`evaluate` follows every task through them and returns its stamps. Nothing is drawn at random.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gridbench.analysis.columns import Floats, Integers
from gridbench.errors import InputError
from gridbench.model.stages import Clock, Evenly, InTurn, Stage

Sharing = Literal["in turn", "evenly"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A way for data, shared by all messages in one direction."""

    rate: float = math.inf
    """Bytes per second, of all messages together."""
    per_message: float = 0.0
    """Seconds that each message takes of it besides its bytes."""
    sharing: Sharing = "in turn"
    """One message after the other, or all at once with equal shares."""

    def work(self, size: float) -> float:
        """Seconds that a message of `size` bytes takes when there is no other."""
        return self.per_message + size / self.rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """A node between client and workers that takes all tasks and gives them to free workers."""

    inward: Link
    """From the client."""
    outward: Link
    """To the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How a system behaves; times in seconds."""

    to_workers: Link
    """To all workers together: from the manager if there is one, else from the client."""
    from_workers: Link
    manager: Manager | None = None
    """With one, the client submits all tasks at once; without, a task leaves the client when a
    worker is free for it."""
    shared_rate: float = math.inf
    """Bytes per second of shared data, which each worker gets with its first task."""
    submit_cost: float = 0.0
    """The client's own work to submit a task."""
    retrieve_cost: float = 0.0
    """The client's own work to take a result."""
    start_latency: float = 0.0
    """From the arrival of a task's data until it computes; keeps nobody else waiting."""
    return_latency: float = 0.0
    """From the arrival of a result until the client can take it; keeps nobody else waiting."""


@dataclass(frozen=True, slots=True)
class Case:
    """A workload on workers."""

    sleep: Floats
    """Seconds of each task, in the order of submission, shape (tasks,)."""
    ready: Floats
    """When each worker has started, shape (workers,), seconds."""
    bytes_in: float = 0.0
    """Bytes of each task's data; so too the two below."""
    bytes_out: float = 0.0
    bytes_shared: float = 0.0

    def __post_init__(self) -> None:
        for name, values in (("task times", self.sleep), ("start-up times", self.ready)):
            if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)):
                raise InputError(
                    f"the {name} of a case must be finite numbers, at least one",
                    remedy="leave out tasks and workers without known times",
                )
            if values.min() < 0:
                raise InputError(f"the {name} of a case must not be below 0: {values.min():g} s")
        for size in (self.bytes_in, self.bytes_out, self.bytes_shared):
            if not 0 <= size < math.inf:
                raise InputError(f"not a data size in bytes: {size:g}")


@dataclass(frozen=True, slots=True)
class Stamps:
    """The stamps of all tasks in the order of submission, shape (tasks,) each; seconds."""

    submit: Floats
    """When the client had handed the task over: with a manager, when its data had arrived there;
    without, when its data started on its way to the worker."""
    calc_in: Floats
    calc_out: Floats
    retrieve: Floats
    worker: Integers
    """Number of the worker that computed it."""

    @property
    def total(self) -> float:
        """From t = 0 until the last result is in the client's hand."""
        return float(self.retrieve.max())


def evaluate(case: Case, parameters: Parameters) -> Stamps:
    """Follow all tasks of the case through the system: 10,000 of them take about 0.1 s."""
    run = _Run(case, parameters)
    run.clock.run()
    return run.stamps


class _Run:
    """What goes on in one evaluation. Each method is something that happens to a task or worker."""

    def __init__(self, case: Case, parameters: Parameters) -> None:
        self.case = case
        self.parameters = parameters
        self.clock = Clock()
        tasks = len(case.sleep)
        self.stamps = Stamps(
            submit=np.full(tasks, math.nan),
            calc_in=np.full(tasks, math.nan),
            calc_out=np.full(tasks, math.nan),
            retrieve=np.full(tasks, math.nan),
            worker=np.full(tasks, -1, dtype=np.int64),
        )
        self.sleep = case.sleep.tolist()
        self.waiting: deque[int] = deque()
        self.idle: deque[int] = deque()
        self.has_shared: set[int] = set()
        self.to_workers = self._stage(parameters.to_workers)
        self.from_workers = self._stage(parameters.from_workers)
        self.client = InTurn(self.clock)
        # With a manager one thread of the client submits, another takes results.
        self.collector = self.client
        if manager := parameters.manager:
            self.collector = InTurn(self.clock)
            self.inward, self.outward = self._stage(manager.inward), self._stage(manager.outward)
            for task in range(tasks):
                self.client.add(parameters.submit_cost, self.leaves_client, task)
        else:
            self.waiting.extend(range(tasks))
        for worker, time in enumerate(case.ready.tolist()):
            self.clock.at(time, self.worker_free, worker)

    def _stage(self, link: Link) -> Stage:
        return Evenly(self.clock) if link.sharing == "evenly" else InTurn(self.clock)

    def leaves_client(self, task: int) -> None:
        """The client has done its part to submit it."""
        if manager := self.parameters.manager:
            self.inward.add(manager.inward.work(self.case.bytes_in), self.reaches_manager, task)
        else:
            self.stamps.submit[task] = self.clock.now
            self.send(task)

    def reaches_manager(self, task: int) -> None:
        """Its data is there."""
        self.stamps.submit[task] = self.clock.now
        self.waiting.append(task)
        self.dispatch()

    def worker_free(self, worker: int) -> None:
        """It can take a task."""
        self.idle.append(worker)
        self.dispatch()

    def dispatch(self) -> None:
        """Give waiting tasks to idle workers, both in the order in which they came."""
        while self.waiting and self.idle:
            task = self.waiting.popleft()
            self.stamps.worker[task] = self.idle.popleft()
            if self.parameters.manager:
                self.send(task)
            else:
                # A client that has taken a result first makes use of the worker, and then takes
                # the next one.
                cost = self.parameters.submit_cost
                self.client.add(cost, self.leaves_client, task, urgent=True)

    def send(self, task: int) -> None:
        """Its data starts on its way to its worker."""
        work = self.parameters.to_workers.work(self.case.bytes_in)
        worker = int(self.stamps.worker[task])
        if worker not in self.has_shared:
            self.has_shared.add(worker)
            work += self.case.bytes_shared / self.parameters.shared_rate
        self.to_workers.add(work, self.reaches_worker, task)

    def reaches_worker(self, task: int) -> None:
        """Its data is there."""
        begin = self.clock.now + self.parameters.start_latency
        self.stamps.calc_in[task] = begin
        self.clock.at(begin + self.sleep[task], self.computed, task)

    def computed(self, task: int) -> None:
        """Its result starts on its way back."""
        self.stamps.calc_out[task] = self.clock.now
        work = self.parameters.from_workers.work(self.case.bytes_out)
        self.from_workers.add(work, self.leaves_worker, task)

    def leaves_worker(self, task: int) -> None:
        """Its result is with the manager, or at the client's door."""
        if manager := self.parameters.manager:
            self.worker_free(int(self.stamps.worker[task]))
            self.outward.add(manager.outward.work(self.case.bytes_out), self.reaches_client, task)
        else:
            self.reaches_client(task)

    def reaches_client(self, task: int) -> None:
        """Its result waits until the client takes it."""
        self.clock.at(self.clock.now + self.parameters.return_latency, self.noticed, task)

    def noticed(self, task: int) -> None:
        """The client begins to take it when it has done what it was asked before."""
        self.collector.add(self.parameters.retrieve_cost, self.retrieved, task)

    def retrieved(self, task: int) -> None:
        """It is in the client's hand."""
        self.stamps.retrieve[task] = self.clock.now
        if not self.parameters.manager:
            self.worker_free(int(self.stamps.worker[task]))
