"""Two systems as the report on the financial grid benchmark measured them.

Every parameter is a figure of the report or its slides, or follows from one by the arithmetic
shown here; none is fitted to the totals that the profiles are compared with. Some are rows of
tables whose other rows are predicted: their sources say so. The profiles leave out Symphony's
throttling when its manager runs out of memory, and the clocks of the nodes, whose offsets are
unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.analysis.transfer import MEGABYTE, bytes_per_second
from gridbench.model.pipeline import Link, Manager, MessageCost, PipelineParameters


@dataclass(frozen=True, slots=True)
class SourcedFigure:
    """A figure that a profile is made of."""

    name: str
    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A system: its parameters, where they are from, and how its workers start."""

    name: str
    parameters: PipelineParameters
    given: tuple[SourcedFigure, ...]
    ready: Callable[[float, int], Floats]
    """When each worker has started, shape (workers,), from the measured start-up time of the run
    (seconds) and the number of workers."""


# Platform Symphony. All data goes through the management node, by two hops that work at the same
# time. The node sends to one compute node after the other, as the report concludes from calc-in
# times; the client submits in one thread and takes results in another.

WHOLE_RUN = SourcedFigure(
    "client to management node", 513.0, "Mbit/s", "text of 5.5.4: 1,200 tasks of 100 KB in 1.87 s"
)
"""What counts for a total, as that adds up all transfers with all that disturbs them."""
WHOLE_RUN_SLIDES = SourcedFigure(
    "client to management node", 519.0, "Mbit/s", "slides: 300 tasks of 10 MB in 46.2 s"
)
SMALLEST_STEP = SourcedFigure(
    "client to management node", 570.0, "Mbit/s", "text of 5.5.4: smallest steps of submit times"
)
"""Of single transfers that nothing disturbed."""
_OUTPUT_MBPS = 570.0
_MANAGER_MBPS = 830.0
_SHARED_MBPS = 880.0
_FIRST_INSTANCE = 0.479117
_SCHEDULING_STEP = 0.5
_SUBMIT_COST = (0.010433 - 0.001650) / 24
_DISPATCH_COST = 0.008294 / 100
_RESULT_COST = 0.060 / 400
_OUTPUT_COST = (1.199 - 0.060) / 400 - _RESULT_COST
"""The rows of 100 KB, where the link would need 1.4 ms, are 2.1 to 6.7 ms for each result."""


def symphony(client: SourcedFigure = WHOLE_RUN) -> Profile:
    """Platform Symphony, with one of the rates that are given for the client's link."""
    return Profile(
        name="symphony",
        parameters=PipelineParameters(
            manager=Manager(
                inward=Link(rate=bytes_per_second(client.value)),
                outward=Link(rate=bytes_per_second(_OUTPUT_MBPS)),
            ),
            to_workers=Link(rate=bytes_per_second(_MANAGER_MBPS), per_message=_DISPATCH_COST),
            from_workers=Link(rate=bytes_per_second(_MANAGER_MBPS)),
            shared_rate=bytes_per_second(_SHARED_MBPS),
            submit_cost=_SUBMIT_COST,
            retrieve_cost=_RESULT_COST,
            take_output=MessageCost(fixed=_OUTPUT_COST),
        ),
        given=(
            client,
            SourcedFigure("management node to client", _OUTPUT_MBPS, "Mbit/s", "text of 5.5.5"),
            SourcedFigure(
                "management node to nodes, and back", _MANAGER_MBPS, "Mbit/s", "text of 5.5.4"
            ),
            SourcedFigure("shared data to nodes", _SHARED_MBPS, "Mbit/s", "text of 5.5.7"),
            SourcedFigure(
                "client submits a task", _SUBMIT_COST, "s", "log in 5.4.1: tasks 1 to 25"
            ),
            SourcedFigure(
                "manager dispatches a task", _DISPATCH_COST, "s", "5.5.4-2: 0 KB, 100 tasks"
            ),
            SourcedFigure("client takes a result", _RESULT_COST, "s", "5.5.5-1: 0 KB, 400 tasks"),
            SourcedFigure(
                "the same with data, besides", _OUTPUT_COST, "s", "5.5.5-1: 100 KB, 400 tasks"
            ),
            SourcedFigure(
                "start-up of the first instance", _FIRST_INSTANCE, "s", "5.5.6-2: 1 task"
            ),
            SourcedFigure(
                "from second to later instances", _SCHEDULING_STEP, "s", "text of 5.4.1 (6)"
            ),
        ),
        ready=_instances_start,
    )


def _instances_start(start_up: float, workers: int) -> Floats:
    """The first at once, the second after the balance interval, all others a step after it.

    `start_up` is when the last task of the first block began without data.
    """
    ready = np.full(workers, start_up)
    if workers > 1:
        ready[0] = min(_FIRST_INSTANCE, start_up)
        ready[1] = max(ready[0], start_up - _SCHEDULING_STEP)
    return ready


# Ninf-G + Grid Engine. The client gives a task straight to a worker that is free. All transfers of
# the first block go at the same time and take equally long (5.5.4), so they share the link evenly.
# The report explains the costs per task by concentration: 0.4 s when 100 tasks start or end at the
# same time, 0.2 s later. Two things concentrate: messages on the link, and results at the client,
# which takes one at a time.

_NINFG_MBPS = 835.0
_BLOCK = 100
_START_FIRST, _START_LATER = 0.15, 0.09
_RETURN_FIRST = 0.25
_DONE_SPAN = 0.35
"""From the first to the last result of a block, with no data (5.5.5-2); the same pace, 3.6 ms, is
that of later submissions (5.5.4-4)."""
_DONE_PER_BYTE = (12.28 - _DONE_SPAN) / _BLOCK / (10 * MEGABYTE)
"""The client's own work for each byte of a result, from 5.5.5-2 at 10 MB; the link would need
9.6 ms for 1 MB, and this is 11.9 ms."""


def ninfg() -> Profile:
    """Ninf-G with Grid Engine."""
    result_cost = _DONE_SPAN / _BLOCK
    start_work = (_START_FIRST - _START_LATER) / _BLOCK
    # A result of the first block waits for half of the others, in the mean.
    return_latency = _RETURN_FIRST - _DONE_SPAN / 2
    rate = bytes_per_second(_NINFG_MBPS)
    return Profile(
        name="ninfg",
        parameters=PipelineParameters(
            to_workers=Link(rate=rate, per_message=start_work, sharing="evenly"),
            from_workers=Link(rate=rate),
            shared_rate=rate,
            start_latency=_START_LATER,
            return_latency=return_latency,
            retrieve_cost=result_cost,
            take_output=MessageCost(per_byte=_DONE_PER_BYTE),
        ),
        given=(
            SourcedFigure(
                "client to nodes, and back", _NINFG_MBPS, "Mbit/s", "text of 5.5.4 and 5.5.5"
            ),
            SourcedFigure(
                "start of a task, alone", _START_LATER, "s", "text of 5.5.2: later tasks"
            ),
            SourcedFigure(
                "share of the link to start a task",
                start_work,
                "s",
                "text of 5.5.2: (0.15 s - 0.09 s) / 100",
            ),
            SourcedFigure(
                "client takes a result",
                result_cost,
                "s",
                "5.5.5-2: 0.35 s / 100 at 0 KB; 5.5.4-4 has 3.6 ms",
            ),
            SourcedFigure(
                "client takes the data of a result",
                _DONE_PER_BYTE * MEGABYTE,
                "s per MB",
                "5.5.5-2: (12.28 s - 0.35 s) / 100 at 10 MB",
            ),
            SourcedFigure(
                "return of a result, alone",
                return_latency,
                "s",
                "text of 5.5.2: 0.25 s in the mean, less 0.35 s / 2",
            ),
        ),
        ready=_all_start,
    )


def _all_start(start_up: float, workers: int) -> Floats:
    """The batch system gives all workers at once."""
    return np.full(workers, start_up)
