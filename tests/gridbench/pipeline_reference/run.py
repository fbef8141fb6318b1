"""The pipeline in plain Python, as it can be read: what the one in Rust is held against.

Each method is something that happens to a task or worker. It notes when each task's data started on
its way, too.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from gridbench.model.pipeline import Link, PipelineCase, PipelineParameters, Stamps
from pipeline_reference.spreading import Spreading
from pipeline_reference.stages import Clock, Fifo, Freely, ProcessorSharing, Stage, Then, Through


class Run:
    """What happens in one evaluation. Each method is something that happens to a task or worker."""

    def __init__(self, case: PipelineCase, parameters: PipelineParameters) -> None:
        self.case = case
        self.parameters = parameters
        self.clock = Clock()
        tasks, workers = len(case.sleep), len(case.ready)
        hosts = range(workers) if case.host is None else case.host.tolist()
        chained = case.bytes_shared >= parameters.chained_from
        self.spreading = Spreading(self.clock, hosts, chained=chained)
        self.sent = [math.nan] * tasks
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
            sent=np.array(self.sent),
            calc_in=np.array(self.calc_in),
            calc_out=np.array(self.calc_out),
            retrieve=np.array(self.retrieve),
            worker=np.array(self.worker, dtype=np.int64),
        )

    def _make_stages(self) -> None:
        parameters = self.parameters
        self.processors: Stage = Freely(self.clock)
        if math.isfinite(parameters.processors):
            self.processors = ProcessorSharing(self.clock, parameters.processors)
        # With shared data a link that takes no time for tasks may take some.
        self.to_workers = self._stage(parameters.to_workers)
        if math.isfinite(parameters.shared_rate) and isinstance(self.to_workers, Through):
            self.to_workers = Fifo(self.clock)
        self.from_workers = self._stage(parameters.from_workers)
        self.maker = Fifo(self.clock, self.processors)
        self.client = Fifo(self.clock, self.processors)
        # With a manager one thread of the client submits, another takes results.
        self.collector = self.client
        self.lock = Fifo(self.clock, self.processors) if parameters.client_lock else None
        if manager := parameters.manager:
            self.collector = Fifo(self.clock, self.processors)
            self.inward, self.outward = self._stage(manager.inward), self._stage(manager.outward)

    def _stage(self, link: Link) -> Stage:
        if link.work(1.0) == 0:
            return Through()
        if link.sharing == "evenly":
            return ProcessorSharing(self.clock, link.at_once)
        return Fifo(self.clock)

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
        self.sent[task] = self.clock.now
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
        if self.case.bytes_out:
            work += parameters.take_output.of(self.case.bytes_out)
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
