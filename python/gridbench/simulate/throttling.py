"""A manager that runs short of memory, and takes four steps against it.

The bytes that it holds are the data of tasks that have come to it and have not reached a worker,
and results that have not reached the client. One that sends a task again when its worker is lost
keeps its data until it has the result. From a share of its memory on

- *proactive*: new requests are taken more slowly, and data is written to disk: what is only kept
  first, then what waits, which has to be read again before it can be sent;
- *severe*: still more slowly, tasks that wait come first;
- *critical*: new tasks are held back, results go out first;
- *halt*: nothing is taken, sent or accepted from workers until there is room again; what is on
  its way arrives, results leave, and writing to disk goes on.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from enum import IntEnum

from gridbench.errors import InputError
from gridbench.formats import percent, size
from gridbench.model.pipeline import PipelineCase, PipelineParameters, Stamps, TaskWatch, stamps_of
from gridrpc import _native

NEAR = 0.7
"""Share from which on a reader is told: of what the client's link gives, and of the memory with
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
    asked = _asked_of_link(case, parameters)
    if asked >= NEAR:
        how = percent(asked, 0) if math.isfinite(asked) else "all"
        found.append(
            f"Tasks ask for {how} of what the client's link gives: where it was"
            f" {percent(SEEN, 0)} and more, managers were seen to throttle, also with memory left,"
            " and the run may take longer than is told here."
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
