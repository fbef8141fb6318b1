"""A user's work, what its tasks need of the machine, and how it is divided among tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from gridbench.advise.uneven import Recorded, Uneven
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.model.observation import Situation
from gridbench.quantities import UNITS, parse_bytes, parse_seconds, parse_size
from gridbench.workload.body import SLEEP
from gridbench.workload.numbers import LARGEST_KB, MOST_CORES, MOST_TASKS, shown

MOST_TRAFFIC = float(1 << 60)
"""Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Requirements of a task, and resources of a machine. InputError for what makes no sense.

    Work takes as long as its computing takes on the processors, or as the data that it moves takes
    through the memory, whichever is longer.
    """

    threads: int = 1
    """Of each task."""
    traffic: float = 0.0
    """Bytes that the whole work moves between processors and memory."""
    processors: int = 0
    """That all threads share; 0: each has one of its own."""
    bandwidth: float = 0.0
    """Bytes per second of the machine's memory, for all processors together; 0: not known."""

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= MOST_CORES:
            raise InputError(f"the number of threads must be from 1 to {MOST_CORES:,}")
        if not 0 <= self.traffic <= MOST_TRAFFIC:
            raise InputError(f"memory traffic of {as_given(self.traffic, 'bytes')} makes no sense")

    def at_full_speed(self, processors: int) -> int:
        """How many tasks can run at once on so many processors with none slower for the others; at
        least one, whose threads share processors if there are too few."""
        return max(1, processors // self.threads)

    def by_processors(self, count: int) -> float:
        """How many times as long `count` tasks at once take as one that has a processor for each of
        its threads."""
        return max(1.0, count * self.threads / self.processors) if self.processors else 1.0

    def by_memory(self, seconds: float, count: int) -> float:
        """The same of the time that their data takes through the memory, if the whole work takes
        `seconds`, one task after the other."""
        return count * self.traffic / (seconds * self.bandwidth) if self.bandwidth else 0.0

    def factor(self, seconds: float, count: int) -> float:
        """The longer of both."""
        return max(self.by_processors(count), self.by_memory(seconds, count))


def parse_roofline(*, threads: int | None, traffic: str | None, body: str) -> Roofline:
    """What tasks need of the machine. InputError for what does not go with work of that body."""
    if body == SLEEP:
        for option, value in (("--threads-per-task", threads), ("--memory-traffic", traffic)):
            if value is not None:
                raise InputError(
                    f"{option} is for work that computes, and with --task {SLEEP} it waits",
                    remedy="leave one of them out",
                )
    return Roofline(
        threads=threads or 1,
        traffic=0.0 if traffic is None else _traffic("--memory-traffic", traffic),
    )


def parse_bandwidth(text: str | None, traffic: str | None) -> float | None:
    """Bytes per second of the memory, from `20GB/s` or `20GB`; None: it was not given. InputError
    if tasks have no memory traffic."""
    if text is None:
        return None
    if traffic is None:
        raise InputError(
            "--memory-bandwidth is for work that moves data through memory",
            remedy="add --memory-traffic, such as 20GB",
        )
    option = "--memory-bandwidth"
    return _above_0(option, text, parse_size(option, text.removesuffix("/s")))


def _traffic(option: str, text: str) -> float:
    return _above_0(option, text, parse_bytes(option, text, MOST_TRAFFIC, "an exabyte"))


def _above_0(option: str, text: str, value: int) -> float:
    if not value:
        raise InputError(
            f"{option}: `{shown(text)}` is not above 0", remedy="give a size such as 20GB"
        )
    return float(value)


LONGEST = 1e9
"""Seconds; about 30 years of one core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DivisibleWork:
    """The work. Sizes are in bytes."""

    seconds: float
    """That it takes on one core."""
    cores: int
    """That there are; it can use fewer."""
    bytes_in: float = 0.0
    """Input of the whole work, divided with it."""
    bytes_in_each: float = 0.0
    """Input that each task gets, however many there are."""
    bytes_shared: float = 0.0
    """Data that is common to all tasks."""
    bytes_out: float = 0.0
    """Output of the whole work, divided with it."""
    bytes_out_each: float = 0.0
    """Output of each task, however many there are."""
    warm: bool = False
    """Workers are there already when the time begins."""
    most_tasks: int = 100_000
    """Into more it cannot be divided."""
    body: str = SLEEP
    """What its tasks do: see `gridbench.workload.body`."""
    cores_asked: int = 0
    """`cores` of them have a processor; 0: all of them have, or need none."""
    roofline: Roofline = field(default_factory=Roofline)
    """What its tasks need of the machine beside a core each, and what that has."""

    uneven: Uneven | Recorded | None = None
    """How far the times of its tasks differ; None: they are alike."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.seconds) and 0 < self.seconds <= LONGEST):
            raise InputError(
                f"work of {as_given(self.seconds)} makes no sense",
                remedy=f"give a time above 0 and up to {as_given(LONGEST)} of one core",
            )
        if not 1 <= self.cores <= MOST_CORES:
            raise InputError(f"the number of cores must be from 1 to {MOST_CORES:,}")
        if not 1 <= self.most_tasks <= MOST_TASKS:
            raise InputError(f"the number of tasks must be from 1 to {MOST_TASKS:,}")
        if self.uneven and 0 < self.uneven.pieces < self.most_tasks:
            raise InputError(
                f"work of {self.uneven.pieces:,} pieces cannot be divided into"
                f" {self.most_tasks:,} tasks",
                remedy="give at most as many --most-tasks as --pieces",
            )
        for size in self.sizes:
            if not 0 <= size <= LARGEST_KB * 1024:
                raise InputError(f"not a size in bytes: {as_given(size, '')}")

    @property
    def sizes(self) -> tuple[float, ...]:
        """All of them."""
        return (
            self.bytes_in,
            self.bytes_in_each,
            self.bytes_shared,
            self.bytes_out,
            self.bytes_out_each,
        )

    @property
    def units(self) -> str:
        """What there have to be more of for it to run on more cores."""
        known = self.roofline
        more = 2 * self.cores * known.threads > known.processors > 0
        return "processors" if self.cores_asked or more else "cores"

    @property
    def unit(self) -> str:
        """What runs one task: a processor, if more cores were requested than there are."""
        if self.roofline.threads > 1:
            return "worker"
        return "processor" if self.cores_asked else "core"

    @property
    def computes(self) -> bool:
        """Whether its tasks need processors, rather than wait."""
        return self.body != SLEEP

    @property
    def alone(self) -> float:
        """Seconds that it takes with one task at a time."""
        return self.seconds * self.roofline.factor(self.seconds, 1)

    @property
    def processors(self) -> int:
        """That are busy with all cores, as far as the machine has them."""
        wanted = self.cores * self.roofline.threads
        return min(wanted, self.roofline.processors or wanted)

    def limited_by_memory(self, count: int) -> bool:
        """Whether `count` tasks at once wait for the memory rather than for processors."""
        known = self.roofline
        return known.by_memory(self.seconds, count) > known.by_processors(count)

    def on_processors(self, processors: int) -> DivisibleWork:
        """The work on no more cores than have a processor for each thread of their task, if it
        computes; one of them may have too few."""
        if not self.computes:
            return self
        cores = min(self.cores, self.roofline.at_full_speed(processors))
        return replace(
            self,
            cores=cores,
            cores_asked=self.cores if cores < self.cores else 0,
            roofline=replace(self.roofline, processors=processors),
        )

    def doubled(self) -> DivisibleWork:
        """The work with twice as many cores, and twice as many processors if it has no more."""
        known = self.roofline
        processors = max(known.processors, 2 * self.processors) if known.processors else 0
        roofline = replace(known, processors=processors)
        return replace(self, cores=2 * self.cores, roofline=roofline)

    def drawn(self, tasks: int, cores: int) -> list[Situation]:
        """The work as that many tasks, on that many cores, for each draw of their times; one if
        all of them take as long."""
        situation, uneven = self.divided(tasks, cores), self.uneven
        if uneven is None:
            return [situation]
        # Of tasks that differ, others run at once until the end: all are as slow.
        seconds = self.seconds * self.roofline.factor(self.seconds, min(tasks, cores))
        return [
            replace(situation, sleep=uneven.times(seconds, tasks, draw))
            for draw in range(uneven.draws(tasks))
        ]

    def divided(self, tasks: int, cores: int) -> Situation:
        """The work as that many tasks of equal length, on that many cores. They take longer the
        more of them run at once, as far as the machine has too little of what they share: those
        of the last round, which are fewer, less than others."""
        sleep = np.full(tasks, self.seconds / tasks)
        full, last = divmod(tasks, cores)
        sleep[: full * cores] *= self.roofline.factor(self.seconds, cores)
        sleep[full * cores :] *= self.roofline.factor(self.seconds, last)
        return Situation(
            cores=cores,
            sleep=sleep,
            bytes_in=self.bytes_in / tasks + self.bytes_in_each,
            bytes_shared=self.bytes_shared,
            bytes_out=self.bytes_out / tasks + self.bytes_out_each,
            warm=self.warm,
        )


def parse_time(option: str, text: str) -> float:
    """Seconds of work, as `gridbench.quantities` reads them. InputError names `option`."""
    value = parse_seconds(option, text)
    if not 0 < value <= LONGEST:
        raise InputError(
            f"{option}: {shown(text)} is not above 0 and up to {as_given(LONGEST)}",
            remedy=f"give a time such as 100s; units are {', '.join(UNITS)}",
        )
    return value
