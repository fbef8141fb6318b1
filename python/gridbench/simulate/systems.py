"""A system that can be simulated: its parameters, start-up, and the memory of its manager."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.errors import InputError
from gridbench.formats import percent, size
from gridbench.model.pipeline import (
    Link,
    Manager,
    PipelineCase,
    PipelineParameters,
    Stamps,
    TaskWatch,
    stamps_of,
)
from gridbench.model.profiles import SourcedFigure
from gridrpc import _native


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """A scheduler that looks at its queue now and then, and starts some workers each time."""

    first: float
    """Seconds until the first worker, which is there before the others."""
    second: float
    """Seconds until the second."""
    step: float
    """Seconds from one wave of further workers to the next."""
    most_at_once: float = math.inf
    """Workers of a wave."""

    def ready(self, workers: int) -> Floats:
        """Seconds until each worker has started, shape (workers,)."""
        times = np.full(workers, self.first)
        if workers > 1:
            times[1] = self.second
            wave = np.floor(np.arange(workers - 2) / self.most_at_once) + 1
            times[2:] = self.second + self.step * wave
        return times


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch system that hands over all workers together, later the more there are."""

    constant: float
    per_worker: float

    def ready(self, workers: int) -> Floats:
        """Seconds until each worker has started, shape (workers,)."""
        return np.full(workers, self.constant + self.per_worker * workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneByOne:
    """Workers that come one after another."""

    constant: float
    per_worker: float

    def ready(self, workers: int) -> Floats:
        """Seconds until each worker has started, shape (workers,)."""
        return self.constant + self.per_worker * np.arange(1, workers + 1, dtype=np.float64)


StartUp = Waves | Batch | OneByOne
KINDS: dict[str, type[StartUp]] = {"waves": Waves, "batch": Batch, "one by one": OneByOne}
"""What they are called in files."""


NEAR = 0.7
"""Share from which on the report warns: of what the client's link gives, and of the memory with
which a manager begins to throttle."""
SEEN = 0.78
"""Of the link, that tasks asked for in the run with the least of those whose manager was short of
memory (docs/simulate.md); in those whose manager was not, 21 % at most."""


class Level(IntEnum):
    """How short of memory the manager is."""

    NORMAL = 0
    PROACTIVE = 1
    SEVERE = 2
    CRITICAL = 3
    HALT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """When a manager takes which step; the steps are shares of its memory that are in use."""

    memory: float
    """Bytes."""
    disk: float
    """Bytes per second, written or read."""
    slower: float = 2.0
    """Factor by which a new request takes longer, in each of the first two steps."""
    proactive: float = 0.5
    severe: float = 0.6
    critical: float = 0.75
    halt: float = 0.85
    until_done: bool = False
    """A task's data is kept until the manager has its result, not only until a worker has it."""

    def __post_init__(self) -> None:
        steps = self.steps
        if not (self.memory > 0 and self.disk > 0 and self.slower >= 1):
            raise InputError("throttling needs memory and disk above 0, and `slower` of 1 or more")
        if not all(0 < low <= high for low, high in itertools.pairwise(steps)):
            raise InputError("the four steps of throttling must rise, and be above 0")

    @property
    def steps(self) -> tuple[float, float, float, float]:
        """The shares, in order."""
        return self.proactive, self.severe, self.critical, self.halt

    def level(self, used: float) -> Level:
        """The step to be taken with so many bytes in use."""
        return Level(sum(used >= share * self.memory for share in self.steps))


@dataclass(slots=True)
class Pressure:
    """What became of the manager's memory in a run."""

    most: float = 0.0
    """Bytes, the most that were held at one time."""
    paged: int = 0
    """Tasks whose data was written to disk."""
    disk_busy: float = 0.0
    """Seconds."""
    worst: Level = Level.NORMAL


def follow_throttled(
    case: PipelineCase,
    parameters: PipelineParameters,
    throttling: Throttling,
    watch: TaskWatch | None = None,
) -> tuple[Stamps, Pressure]:
    """Follow all tasks of the case through a manager whose memory has bounds."""
    if parameters.manager is None or parameters.ahead:
        raise InputError(
            "only a manager can throttle, and only one that sends no tasks ahead",
            remedy="leave throttling out of the profile, or give it a manager",
        )
    arrays, pressure = _native.follow_pipeline(case, parameters, throttling, watch)
    assert pressure is not None
    most, paged, disk_busy, worst = pressure
    return stamps_of(arrays), Pressure(most, paged, disk_busy, Level(worst))


def cautions(
    case: PipelineCase,
    parameters: PipelineParameters,
    throttling: Throttling,
    pressure: Pressure | None,
) -> tuple[str, ...]:
    """What a reader must know of a run in which the manager throttles, or comes near to it: as
    sentences. What tasks ask of the client's link tells that too, in runs that were seen to be
    short of memory, though the model does not know why."""
    found = []
    requested = _asked_of_link(case, parameters)
    if requested >= NEAR:
        how = percent(requested, 0) if math.isfinite(requested) else "all"
        found.append(
            f"Tasks ask for {how} of what the client's link gives: where it was"
            f" {percent(SEEN, 0)} and more, managers were seen to throttle, also with memory left,"
            " and the run may take longer than predicted."
        )
    begins = throttling.proactive * throttling.memory
    if pressure and pressure.most >= NEAR * begins:
        found.append(
            f"The manager holds up to {size(pressure.most)},"
            f" {percent(pressure.most / begins, 0)}"
            f" of the {size(begins)} with which it begins to throttle."
        )
    return tuple(found)


def _asked_of_link(case: PipelineCase, parameters: PipelineParameters) -> float:
    """What the workers' tasks move in the time of a task, as share of what the link between client
    and manager moves meanwhile, in the busier direction."""
    manager, time = parameters.manager, float(case.sleep.mean())
    if manager is None or not (case.bytes_in or case.bytes_out):
        return 0.0
    count = min(len(case.ready), len(case.sleep))
    share = max(case.bytes_in / manager.inward.rate, case.bytes_out / manager.outward.rate)
    return count * share / time if time > 0 else math.inf


GIGABIT = 1e9
"""Bits per second, of the links of those days."""
ASSUMPTION = "assumption"
"""How the source of what nobody has measured begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """How a system behaves on a network, and where that is known from."""

    name: str
    title: str
    parameters: PipelineParameters
    start_up: StartUp
    link: float = GIGABIT
    """Bits per second of the network's links at which the rates hold; with others they are as large
    a part of them."""
    one_host: bool = False
    """There are no links: client and workers are on one machine."""
    files_per_task: bool = False
    """The shared data goes with every task, not once to each worker."""
    resolution: float = 0.0
    """Seconds: stamps are known to so much only. 0: exactly."""
    throttling: Throttling | None = None
    """How its manager defends its memory."""
    measured_cores: int | None = None
    """The most cores with which its parameters were measured; None: not known."""
    given: tuple[SourcedFigure, ...] = ()
    """The figures that it is made of, with their sources."""

    def on_link(self, link: float) -> System:
        """The same on a network whose links have so many bits per second. InputError if it knows
        none."""
        self._refuse_links()
        factor = link / self.link
        known = self.parameters
        manager = known.manager and Manager(
            inward=_faster(known.manager.inward, factor),
            outward=_faster(known.manager.outward, factor),
        )
        parameters = replace(
            known,
            to_workers=_faster(known.to_workers, factor),
            from_workers=_faster(known.from_workers, factor),
            manager=manager,
            shared_rate=known.shared_rate * factor,
        )
        return replace(self, parameters=parameters, link=link)

    def behind(self, node_link: float) -> System:
        """The same with workers whose own links have so many bits per second. InputError if there
        are none."""
        self._refuse_links()
        known, each = self.parameters, node_link / 8
        parameters = replace(
            known,
            to_workers=replace(known.to_workers, each=each),
            from_workers=replace(known.from_workers, each=each),
        )
        return replace(self, parameters=parameters)

    def _refuse_links(self) -> None:
        if self.one_host:
            raise InputError(
                f"{self.name} was measured on one machine, where there are no links",
                remedy="leave out --link and --node-link, or take another profile",
            )


def _faster(link: Link, factor: float) -> Link:
    return replace(link, rate=link.rate * factor)
