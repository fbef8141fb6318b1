"""The twin of a manager that runs short of memory: see gridbench.simulate.systems."""

from __future__ import annotations

from collections import deque

from gridbench.model.pipeline import PipelineCase, PipelineParameters
from gridbench.simulate.systems import Level, Pressure, Throttling
from pipeline_reference.run import Run
from pipeline_reference.stages import Fifo


class ThrottledRun(Run):
    """A run through a manager whose memory has bounds."""

    def __init__(
        self, case: PipelineCase, parameters: PipelineParameters, throttling: Throttling
    ) -> None:
        self.throttling = throttling
        self.pressure = Pressure()
        self.used = 0.0
        self.level = Level.NORMAL
        self.at_door: deque[int] = deque()
        """Tasks that the client has submitted, and the manager has not begun to take."""
        self.taking = False
        self.in_memory: list[int] = []
        """Tasks that wait there, and some that do so no more; the newest last."""
        self.waits: set[int] = set()
        """Those that wait in memory indeed."""
        self.sent_off: list[int] = []
        """Tasks whose data is kept, and some for which it is so no more; the newest last."""
        self.recoverable: set[int] = set()
        """Those whose data is kept indeed."""
        self.on_disk: set[int] = set()
        self.held_results: deque[int] = deque()
        super().__init__(case, parameters)
        self.disk = Fifo(self.clock)
        self.writing = False
        self.disk_work = case.bytes_in / throttling.disk

    # Tasks come in, one after the other.

    def leaves_client(self, task: int) -> None:
        """The client has done its part; whether the manager takes it is another matter."""
        self.at_door.append(task)
        self.submitting = False
        self.take_next()
        self.submit_next()

    def take_next(self) -> None:
        """The manager begins to take another task, unless it cannot afford that."""
        if self.taking or not self.at_door or self.level >= Level.CRITICAL:
            return
        assert self.parameters.manager is not None
        self.taking = True
        work = self.parameters.manager.inward.work(self.case.bytes_in)
        work *= self.throttling.slower ** int(self.level)
        self.inward.add(work, self.reaches_manager, self.at_door.popleft())

    def reaches_manager(self, task: int) -> None:
        """See `Run`."""
        self.taking = False
        self.in_memory.append(task)
        self.waits.add(task)
        self.hold(self.case.bytes_in)
        super().reaches_manager(task)
        self.page()
        self.take_next()

    # What is only kept goes to disk first, then what waits, the newest first: the oldest will be
    # needed soon.

    def page(self) -> None:
        """Write the data of another task to disk, if memory is short."""
        if self.writing or self.level == Level.NORMAL or not self.case.bytes_in:
            return
        while self.sent_off or self.in_memory:
            task = (self.sent_off or self.in_memory).pop()
            if task in self.waits or task in self.recoverable:
                self.writing = True
                self.pressure.disk_busy += self.disk_work
                self.disk.add(self.disk_work, self.written, task)
                return

    def written(self, task: int) -> None:
        """It need not be kept in memory, unless it was sent meanwhile."""
        self.writing = False
        if task in self.waits or task in self.recoverable:
            if task in self.waits:
                self.on_disk.add(task)
            self.waits.discard(task)
            self.recoverable.discard(task)
            self.pressure.paged += 1
            self.hold(-self.case.bytes_in)
        self.page()

    # Tasks go out.

    def dispatch(self) -> None:
        """See `Run`."""
        if self.level < Level.HALT:
            super().dispatch()

    def send(self, task: int) -> None:
        """See `Run`; what is on disk has to be read first."""
        if task in self.on_disk:
            self.on_disk.discard(task)
            self.pressure.disk_busy += self.disk_work
            self.disk.add(self.disk_work, self.read_back, task, urgent=True)
        else:
            self.waits.discard(task)
            self.keep(task)
            super().send(task)

    def keep(self, task: int) -> None:
        """Its data, which is in memory, is about to be sent."""
        if self.throttling.until_done:
            self.sent_off.append(task)
            self.recoverable.add(task)

    def read_back(self, task: int) -> None:
        """Its data is in memory again."""
        self.keep(task)
        self.hold(self.case.bytes_in)
        super().send(task)

    def reaches_worker(self, task: int) -> None:
        """See `Run`."""
        super().reaches_worker(task)
        if not self.throttling.until_done:
            self.hold(-self.case.bytes_in)

    # Results go back.

    def computed(self, task: int) -> None:
        """See `Run`; a manager that has halted takes no result."""
        if self.level == Level.HALT:
            self.calc_out[task] = self.clock.now
            self.held_results.append(task)
        else:
            super().computed(task)

    def leaves_worker(self, task: int) -> None:
        """See `Run`."""
        self.hold(self.case.bytes_out)
        if task in self.recoverable:
            self.recoverable.discard(task)
            self.hold(-self.case.bytes_in)
        super().leaves_worker(task)

    def reaches_client(self, task: int) -> None:
        """See `Run`."""
        super().reaches_client(task)
        self.hold(-self.case.bytes_out)

    # Memory is taken and given back.

    def hold(self, size: float) -> None:
        """So many bytes more, or less, are held; what that allows continues."""
        if not size:
            return
        self.used += size
        before, self.level = self.level, self.throttling.level(self.used)
        self.pressure.most = max(self.pressure.most, self.used)
        self.pressure.worst = max(self.pressure.worst, self.level)
        if before == Level.HALT and self.level < Level.HALT:
            self.resume()
        if before >= Level.CRITICAL > self.level:
            self.take_next()
        self.page()

    def resume(self) -> None:
        """What had to wait while everything stood still continues."""
        while self.held_results:
            task = self.held_results.popleft()
            work = self.parameters.from_workers.work(self.case.bytes_out)
            self.from_workers.add(work, self.leaves_worker, task)
        self.dispatch()
