"""A run as tasks on their way: client, link, perhaps a manager, workers, and back.

    client -> (link -> manager) -> link -> worker: take, sleep, answer -> link (-> link) -> client

Each of these can do only so much at a time, and all of them work at once: that is what overlaps.
On one machine, client and workers also share its processors. `evaluate` follows every task through
them and returns its stamps. Nothing is drawn at random.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gridbench.analysis.columns import Floats, Integers
from gridbench.errors import InputError
from gridbench.model.spreading import Spreading
from gridbench.model.stages import Clock, Evenly, Freely, InTurn, Stage, Then, Through

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
    each: float = math.inf
    """Bytes per second of one message at most: as much as a worker's own link takes."""

    def work(self, size: float) -> float:
        """Seconds that a message of `size` bytes takes when there is no other."""
        return self.per_message + size / min(self.rate, self.each)

    @property
    def at_once(self) -> float:
        """So many messages fill it, if all go at once; in turn it is one."""
        evenly = self.sharing == "evenly" and self.each < self.rate
        return self.rate / self.each if evenly else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """What takes all tasks and gives them to free workers: a node of its own, or, with links that
    take no time, a runtime in the client."""

    inward: Link = field(default_factory=Link)
    """From the client."""
    outward: Link = field(default_factory=Link)
    """To the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What something does with a message, in processor time."""

    fixed: float = 0.0
    """Seconds for each message."""
    per_byte: float = 0.0
    """Seconds for each of its bytes: copying it, or making the memory for it."""

    def of(self, size: float) -> float:
        """Seconds for a message of `size` bytes."""
        return self.fixed + self.per_byte * size


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How workers come up once they have been asked for, at the time their case gives."""

    constant: float = 0.0
    """Seconds before the first is made; besides, for each worker, `prepare`."""
    prepare: float = 0.0
    serial: float = 0.0
    """Processor time of each in the process that makes one after the other."""
    parallel: float = 0.0
    """Each worker's own processor time, before it can take a task."""
    adopt: float = 0.0
    """The client's own work for each worker that has come up, in turn with taking results."""
    all_first: bool = False
    """No task is given out before all workers have been made."""


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
    """Bytes per second of shared data, which each host gets with its first task."""
    chained_from: float = math.inf
    """Bytes of shared data from which on hosts hand it on to each other, so that only the first
    gets it by `to_workers`."""
    submit_cost: float = 0.0
    """The client's own work to submit a task; so too the next."""
    submit_per_byte: float = 0.0
    retrieve_cost: float = 0.0
    """The client's own work to take a result."""
    start_latency: float = 0.0
    """From the arrival of a task's data until it computes; keeps nobody else waiting."""
    return_latency: float = 0.0
    """From the arrival of a result until the client can take it; keeps nobody else waiting."""

    # What a run on one machine has besides. All of it takes processor time.
    start: Start | None = None
    """None: workers are ready at the times that their case gives."""
    share: Effort = field(default_factory=Effort)
    """The client's own work to prepare the shared data, before the first task."""
    take_shared: Effort = field(default_factory=Effort)
    """A worker's to take it, before its first task."""
    take: Effort = field(default_factory=Effort)
    """A worker's to take a task, before it computes."""
    map_input: Effort = field(default_factory=Effort)
    """The same, besides, where the data lies in memory that this worker has not seen before."""
    make: Effort = field(default_factory=Effort)
    """A worker's to wake up and to make its output, at the end of computing."""
    new_input: Effort = field(default_factory=Effort)
    """The client's own, besides, where a task's data needs memory that no earlier one has left."""
    new_output: Effort = field(default_factory=Effort)
    """A worker's, the same for its output."""
    map_output: Effort = field(default_factory=Effort)
    """The client's own to take a result, besides, where it lies in memory that is new."""
    last_used_first: bool = False
    """A task goes to the worker that has become idle last, whose memory is warm, and to one that
    has never been used only if there is no other; else to the one that has been idle longest."""
    kept_from: float = 0.0
    """Bytes from which on data has memory of its own; less goes within messages."""
    most_left: float = math.inf
    """Pieces of memory of earlier tasks' data that the client keeps; the others go."""
    processors: float = math.inf
    """That client and workers have together."""
    client_lock: bool = False
    """The client's threads submit and take results one at a time, as under an interpreter's lock;
    they copy data for tasks at the same time. With a manager only."""
    ahead: int = 0
    """Tasks that a worker is sent before it has answered those it has; with a manager only."""
    most_waiting_bytes: float = math.inf
    """Data of tasks that wait for a worker; the client submits no more beyond it. With a manager
    only; so too the next."""
    most_outstanding: float = math.inf
    """Tasks that the client has submitted and not taken."""

    def __post_init__(self) -> None:
        managed = self.ahead or self.start or self.share != Effort() or self.client_lock
        if self.manager is None and managed:
            raise InputError(
                "a system without a manager has no tasks sent ahead, no start-up of its own, no"
                " lock between its client's threads, and prepares no shared data",
                remedy="give it a manager; its links need not take time",
            )


@dataclass(frozen=True, slots=True)
class Case:
    """A workload on workers."""

    sleep: Floats
    """Seconds of each task, in the order of submission, shape (tasks,)."""
    ready: Floats
    """When each worker has started, shape (workers,), seconds; or when it is asked for, in a system
    with a `Start`."""
    bytes_in: float = 0.0
    """Bytes of each task's data; so too the two below."""
    bytes_out: float = 0.0
    bytes_shared: float = 0.0
    host: Integers | None = None
    """Number of each worker's host, shape (workers,); None: each has one of its own."""

    def __post_init__(self) -> None:
        if self.host is not None and self.host.shape != self.ready.shape:
            raise InputError("a case must have a host for each worker, or for none")
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
    run = Run(case, parameters)
    run.clock.run()
    return run.stamps()


class Run:
    """What goes on in one evaluation. Each method is something that happens to a task or worker."""

    def __init__(self, case: Case, parameters: Parameters) -> None:
        self.case = case
        self.parameters = parameters
        self.clock = Clock()
        tasks, workers = len(case.sleep), len(case.ready)
        hosts = range(workers) if case.host is None else case.host.tolist()
        chained = case.bytes_shared >= parameters.chained_from
        self.spreading = Spreading(self.clock, hosts, chained=chained)
        self.submit, self.calc_in = [math.nan] * tasks, [math.nan] * tasks
        self.calc_out, self.retrieve = [math.nan] * tasks, [math.nan] * tasks
        self.worker = [-1] * tasks
        self.sleep = case.sleep.tolist()
        self.waiting: deque[int] = deque()
        self.idle: deque[int] = deque()
        self.spare: deque[int] = deque()
        """Workers that are busy and may be sent a task ahead, each as often as it may."""
        self.inbox: list[deque[int]] = [deque() for _ in range(workers)]
        """Tasks whose data is with a worker that does another."""
        self.busy = [False] * workers
        self.kept = case.bytes_in > 0 and case.bytes_in >= parameters.kept_from
        """Each task's data has a piece of memory of its own, until its result is there."""
        self.pieces = 0
        self.piece = [-1] * tasks
        self.left: list[int] = []
        """Those that earlier tasks have left to the client: the last is used next."""
        self.seen: list[set[int]] = [set() for _ in range(workers)]
        """Pieces that each worker has read from."""
        self.left_outputs = [0] * workers
        """Pieces of memory that earlier outputs have left to each worker."""
        self.unseen_output = [False] * tasks
        """The output lies in memory that the client has not seen."""
        self.unmade = workers
        self.submitted = 0
        self.outstanding = 0
        self.submitting = False
        self._make_stages()
        if parameters.manager:
            self.client.add(self._share_work(), self.shared, 0)
        else:
            self.waiting.extend(range(tasks))
        for worker, time in enumerate(case.ready.tolist()):
            if parameters.start is None:
                self.clock.at(time, self.worker_free, worker)
            else:
                self.clock.at(time + self._before_start(), self.wanted, worker)

    def stamps(self) -> Stamps:
        """Of all tasks, when nothing is left to happen."""
        return Stamps(
            submit=np.array(self.submit),
            calc_in=np.array(self.calc_in),
            calc_out=np.array(self.calc_out),
            retrieve=np.array(self.retrieve),
            worker=np.array(self.worker, dtype=np.int64),
        )

    def _make_stages(self) -> None:
        parameters = self.parameters
        self.processors: Stage = Freely(self.clock)
        if math.isfinite(parameters.processors):
            self.processors = Evenly(self.clock, parameters.processors)
        # With shared data a link that takes no time for tasks may take some.
        self.to_workers = self._stage(parameters.to_workers)
        if math.isfinite(parameters.shared_rate) and isinstance(self.to_workers, Through):
            self.to_workers = InTurn(self.clock)
        self.from_workers = self._stage(parameters.from_workers)
        self.maker = InTurn(self.clock, self.processors)
        self.client = InTurn(self.clock, self.processors)
        # With a manager one thread of the client submits, another takes results.
        self.collector = self.client
        self.lock = InTurn(self.clock, self.processors) if parameters.client_lock else None
        if manager := parameters.manager:
            self.collector = InTurn(self.clock, self.processors)
            self.inward, self.outward = self._stage(manager.inward), self._stage(manager.outward)

    def _stage(self, link: Link) -> Stage:
        if link.work(1.0) == 0:
            return Through()
        if link.sharing == "evenly":
            return Evenly(self.clock, link.at_once)
        return InTurn(self.clock)

    def _before_start(self) -> float:
        start = self.parameters.start
        return start.constant + start.prepare * len(self.case.ready) if start else 0.0

    def _share_work(self) -> float:
        size = self.case.bytes_shared
        return self.parameters.share.of(size) if size else 0.0

    # Workers start.

    def wanted(self, worker: int) -> None:
        """It is to be made."""
        assert self.parameters.start is not None
        self.maker.add(self.parameters.start.serial, self.made, worker)

    def made(self, worker: int) -> None:
        """Its process is there, and starts up."""
        start = self.parameters.start
        assert start is not None
        self.unmade -= 1
        self.processors.add(start.parallel, self.came_up, worker)
        if start.all_first and not self.unmade:
            self.dispatch()

    def came_up(self, worker: int) -> None:
        """It is ready, and the client gets to know of it."""
        assert self.parameters.start is not None
        self.collector.add(self.parameters.start.adopt, self.adopted, worker)

    def adopted(self, worker: int) -> None:
        """It can take its first task. Of those that are idle it is the last to be chosen."""
        self.idle.append(worker)
        if self.parameters.last_used_first:
            self.idle.rotate()
        self.spare.extend([worker] * self.parameters.ahead)
        self.dispatch()

    # The client submits.

    def shared(self, _: int) -> None:
        """The shared data has been prepared."""
        self.submit_next()

    def submit_next(self) -> None:
        """The client begins to submit another task, if there is one and room for it."""
        parameters, case = self.parameters, self.case
        if self.submitting or self.submitted == len(self.sleep):
            return
        full = self.waiting and (
            (len(self.waiting) + 1) * case.bytes_in > parameters.most_waiting_bytes
        )
        if full or self.outstanding >= parameters.most_outstanding:
            return
        self.submitting = True
        task = self.submitted
        self.client.add(parameters.submit_cost, self.copies, task, on=self.lock)
        self.submitted += 1
        self.outstanding += 1

    def copies(self, task: int) -> None:
        """The client copies its data."""
        if work := self._copy_work(task):
            self.client.add(work, self.leaves_client, task)
        else:
            self.leaves_client(task)

    def _copy_work(self, task: int) -> float:
        parameters, size = self.parameters, self.case.bytes_in
        work = parameters.submit_per_byte * size
        if self.kept:
            if self.left:
                self.piece[task] = self.left.pop()
            else:
                self.piece[task] = self.pieces
                self.pieces += 1
                work += parameters.new_input.of(size)
        return work

    def leaves_client(self, task: int) -> None:
        """The client has done its part to submit it."""
        if manager := self.parameters.manager:
            self.inward.add(manager.inward.work(self.case.bytes_in), self.reaches_manager, task)
            self.submitting = False
            self.submit_next()
        else:
            self.submit[task] = self.clock.now
            self.send(task)

    def reaches_manager(self, task: int) -> None:
        """Its data is there."""
        self.submit[task] = self.clock.now
        self.waiting.append(task)
        self.dispatch()

    # Tasks meet workers.

    def worker_free(self, worker: int) -> None:
        """It can take a task."""
        self.idle.append(worker)
        self.spare.extend([worker] * self.parameters.ahead)
        self.dispatch()

    def dispatch(self) -> None:
        """Give waiting tasks, in the order in which they came, to idle workers."""
        start = self.parameters.start
        if start and start.all_first and self.unmade:
            return
        while self.waiting and (self.idle or self.spare):
            task = self.waiting.popleft()
            last = self.idle and self.parameters.last_used_first
            self.worker[task] = self.idle.pop() if last else (self.idle or self.spare).popleft()
            if self.parameters.manager:
                self.send(task)
                self.submit_next()
            else:
                # A client that has taken a result first makes use of the worker, and then takes
                # the next one.
                work = self.parameters.submit_cost + self._copy_work(task)
                self.client.add(work, self.leaves_client, task, urgent=True)

    def send(self, task: int) -> None:
        """Its data starts on its way to its worker."""
        to_workers, shared = self.parameters.to_workers, self.case.bytes_shared
        work = to_workers.work(self.case.bytes_in)
        alone = shared / min(self.parameters.shared_rate, to_workers.each)
        if not shared:
            self.to_workers.add(work, self.reaches_worker, task)
        elif self.spreading.goes_along(self.worker[task], alone):
            self.to_workers.add(work + alone, self.shared_reaches_host, task)
        else:
            self.to_workers.add(work, self.reaches_host, task)

    # The worker does one.

    def shared_reaches_host(self, task: int) -> None:
        """Its data is there, and the shared data."""
        self.spreading.came(self.worker[task])
        self.reaches_host(task)

    def reaches_host(self, task: int) -> None:
        """Its data is there, and needs the shared data."""
        self.spreading.when_there(self.worker[task], self.has_shared, task)

    def has_shared(self, task: int) -> None:
        """Its host has the shared data, which its worker takes if this is its first task."""
        if self.spreading.takes(self.worker[task]):
            work = self.parameters.take_shared.of(self.case.bytes_shared)
            self._do(work, self.reaches_worker, task)
        else:
            self.reaches_worker(task)

    def reaches_worker(self, task: int) -> None:
        """Its data is there."""
        worker = self.worker[task]
        if self.busy[worker]:
            self.inbox[worker].append(task)
            return
        self.busy[worker] = True
        parameters, size = self.parameters, self.case.bytes_in
        work = parameters.take.of(size)
        if self.kept and self.piece[task] not in self.seen[worker]:
            self.seen[worker].add(self.piece[task])
            work += parameters.map_input.of(size)
        self._do(work, self.taken, task)

    def taken(self, task: int) -> None:
        """The worker has it, and is about to compute."""
        begin = self.clock.now + self.parameters.start_latency
        self.calc_in[task] = begin
        self.clock.at(begin + self.sleep[task], self.slept, task)

    def slept(self, task: int) -> None:
        """What is left is its output."""
        parameters, size, worker = self.parameters, self.case.bytes_out, self.worker[task]
        work = parameters.make.of(size)
        if size and size >= parameters.kept_from:
            if self.left_outputs[worker]:
                self.left_outputs[worker] -= 1
            else:
                work += parameters.new_output.of(size)
                self.unseen_output[task] = True
        self._do(work, self.computed, task)

    def computed(self, task: int) -> None:
        """Its result starts on its way back."""
        self.calc_out[task] = self.clock.now
        work = self.parameters.from_workers.work(self.case.bytes_out)
        self.from_workers.add(work, self.leaves_worker, task)

    def leaves_worker(self, task: int) -> None:
        """Its result is with the manager, or at the client's door."""
        worker = self.worker[task]
        self.busy[worker] = False
        if self.kept and len(self.left) < self.parameters.most_left:
            self.left.append(self.piece[task])
        if manager := self.parameters.manager:
            if self.inbox[worker]:
                self.reaches_worker(self.inbox[worker].popleft())
            self.slot_free(worker)
            self.outward.add(manager.outward.work(self.case.bytes_out), self.reaches_client, task)
        else:
            self.reaches_client(task)

    def slot_free(self, worker: int) -> None:
        """It can be sent one more task."""
        (self.spare if self.busy[worker] else self.idle).append(worker)
        self.dispatch()

    def _do(self, work: float, then: Then, task: int) -> None:
        """A worker works."""
        if work:
            self.processors.add(work, then, task)
        else:
            then(task)

    # The client takes results.

    def reaches_client(self, task: int) -> None:
        """Its result waits until the client takes it."""
        if latency := self.parameters.return_latency:
            self.clock.at(self.clock.now + latency, self.noticed, task)
        else:
            self.noticed(task)

    def noticed(self, task: int) -> None:
        """The client begins to take it when it has done what it was asked before."""
        parameters = self.parameters
        work = parameters.retrieve_cost
        if self.unseen_output[task]:
            work += parameters.map_output.of(self.case.bytes_out)
        self.collector.add(work, self.retrieved, task, on=self.lock)

    def retrieved(self, task: int) -> None:
        """It is in the client's hand."""
        self.retrieve[task] = self.clock.now
        self.left_outputs[self.worker[task]] += 1
        if self.parameters.manager:
            self.outstanding -= 1
            self.submit_next()
        else:
            self.slot_free(self.worker[task])
