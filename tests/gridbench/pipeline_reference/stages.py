"""The stages that tasks go through: each has work to do, and says when it is done.

A clock holds what happens next. A stage serves its jobs in turn, or all of them evenly, each at
its share of the speed, as connections share a network and processes the processors of a machine.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

Then = Callable[[int], None]
"""What happens next, to the task or worker of this number."""
_BETWEEN_LOOKS = 10_000
"""Events between two calls of what watches: about 20 ms."""


class Clock:
    """Simulated time: runs what was put down for later, in the order of time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._number = 0
        self._waiting: list[tuple[float, int, Then, int]] = []

    def at(self, time: float, then: Then, which: int) -> None:
        """Have `then(which)` called at `time`; of equal times, in the order of these calls."""
        self._number += 1
        heapq.heappush(self._waiting, (time, self._number, then, which))

    def run(self, watch: Callable[[], None] | None = None) -> None:
        """Continue until nothing is left to happen. `watch` is called every now and then, and may
        raise."""
        waiting, pop = self._waiting, heapq.heappop
        while waiting:
            if watch:
                watch()
            for _ in range(_BETWEEN_LOOKS):
                self.now, _, then, which = pop(waiting)
                then(which)
                if not waiting:
                    break


class Stage(Protocol):
    """Something of limited speed that tasks pass."""

    def add(self, work: float, then: Then, which: int) -> None:
        """From now on do `work` (seconds, if there were no other), and then call `then(which)`."""


class Freely:
    """Every job at once and at full speed: nobody waits for anybody."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def add(self, work: float, then: Then, which: int) -> None:
        """See `Stage`."""
        self._clock.at(self._clock.now + work, then, which)


class Through:
    """Nothing to be done: a job is done at once."""

    def add(self, work: float, then: Then, which: int) -> None:
        """See `Stage`; `work` is 0."""
        del work
        then(which)


class Fifo:
    """One job at a time, in the order in which they come; none while there are urgent ones.

    `on` is the stage that does its work, for one that is itself a job among others: a thread on
    the processors of its machine. Without it the work takes as long as it is. A single job may be
    done on another: what a thread does under a lock.
    """

    def __init__(self, clock: Clock, on: Stage | None = None) -> None:
        self._on = on or Freely(clock)
        self._now: Then | None = None
        """What follows the job under way."""
        self._urgent: deque[tuple[float, Then, int, Stage]] = deque()
        self._others: deque[tuple[float, Then, int, Stage]] = deque()

    def add(
        self,
        work: float,
        then: Then,
        which: int,
        *,
        urgent: bool = False,
        on: Stage | None = None,
    ) -> None:
        """See `Stage`."""
        on = on or self._on
        if self._now is None:
            self._now = then
            on.add(work, self._finish, which)
        else:
            (self._urgent if urgent else self._others).append((work, then, which, on))

    def _finish(self, which: int) -> None:
        # What follows from this job may be urgent, and so has to be known before the next begins.
        assert self._now is not None
        self._now(which)
        self._now = None
        if self._urgent or self._others:
            work, self._now, which, on = (self._urgent or self._others).popleft()
            on.add(work, self._finish, which)


class ProcessorSharing:
    """All jobs at once, each at an equal share of the speed.

    There are `servers` of full speed, and none helps another with the same job: up to so many jobs
    continue at full speed. A link has one, a machine as many as it has processors.

    What counts is the work that a job would have got if it had been there all the time: a job is
    done when that has grown by the job's own. So nothing has to be recomputed for each of them
    when their number changes.
    """

    def __init__(self, clock: Clock, servers: float = 1) -> None:
        self._clock = clock
        self._servers = servers
        self._given = 0.0
        self._since = 0.0
        self._jobs: list[tuple[float, int, Then, int]] = []
        self._number = 0
        self._plan = 0
        self._planned = math.inf
        """When the next job was found to be done; too early if others have come since."""
        self._changed = False
        """Others have come since."""

    def add(self, work: float, then: Then, which: int) -> None:
        """See `Stage`."""
        jobs = self._jobs
        self._go_on()
        self._number += 1
        heapq.heappush(jobs, (self._given + work, self._number, then, which))
        end = self._end()
        if end < self._planned:
            self._plan_for(end)
        else:
            self._changed = True

    # Most of the time of an evaluation goes by in what follows, so it calls little.

    def _go_on(self) -> None:
        now, jobs = self._clock.now, len(self._jobs)
        if jobs > self._servers:
            self._given += (now - self._since) * (self._servers / jobs)
        elif jobs:
            self._given += now - self._since
        self._since = now

    def _end(self) -> float:
        """When the next job is done if no other comes; there is one."""
        left, jobs = self._jobs[0][0] - self._given, len(self._jobs)
        if left <= 0:
            return self._clock.now
        if jobs > self._servers:
            left *= jobs / self._servers
        return self._clock.now + left

    def _plan_for(self, end: float) -> None:
        # A plan that was made before is void.
        self._plan += 1
        self._planned = end
        self._changed = False
        self._clock.at(end, self._finish, self._plan)

    def _finish(self, plan: int) -> None:
        if plan != self._plan:
            return
        if self._changed:
            self._go_on()
            end = self._end()
            if end > self._clock.now:
                self._plan_for(end)
                return
        # Set, not added up: rounding must not leave a rest of the job.
        self._given, _, then, which = heapq.heappop(self._jobs)
        self._since = self._clock.now
        if self._jobs:
            self._plan_for(self._end())
        else:
            self._planned = math.inf
        then(which)
