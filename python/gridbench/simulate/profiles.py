"""The built-in systems: each parameter with its source; an assumption is what nobody measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.analysis.transfer import MEGABYTE, bytes_per_second
from gridbench.errors import InputError
from gridbench.model.pipeline import Link, Manager, MessageCost, PipelineParameters
from gridbench.simulate.systems import (
    ASSUMPTION,
    GIGABIT,
    Batch,
    OneByOne,
    SourcedFigure,
    System,
    Throttling,
    Waves,
)


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


def system(name: str) -> System:
    """The built-in system of this name. InputError if there is none."""
    if name not in SYSTEMS:
        raise InputError(
            f"there is no profile `{name}`",
            remedy=f"take one of {', '.join(SYSTEMS)}, or the name of a file (.toml)",
        )
    return SYSTEMS[name]()


# Platform Symphony. The second instance comes after the balance interval, and others in steps.

_FIRST = 0.479117
_SECOND = 5.08
_STEP = 0.5
_WAVE = 100
_MEMORY = 3.0 * 2**30
_DISK = 60.0 * 2**20
_PROACTIVE = 0.5
_SLOWER = 1.1


def _symphony() -> System:
    profile = symphony()
    return System(
        name="symphony",
        title="Platform Symphony: a central manager, data by two hops",
        parameters=profile.parameters,
        start_up=Waves(first=_FIRST, second=_SECOND, step=_STEP, most_at_once=_WAVE),
        throttling=Throttling(
            memory=_MEMORY, disk=_DISK, slower=_SLOWER, proactive=_PROACTIVE, until_done=True
        ),
        measured_cores=400,
        given=(
            *profile.given,
            SourcedFigure(
                "second instance", _SECOND, "s", "5.5.6-1: starts of 10 tasks, less a step"
            ),
            SourcedFigure(
                "instances in a step",
                _WAVE,
                "",
                f"{ASSUMPTION}; all but two of 100 come in one, and 400 need more than one (5.5.4)",
            ),
            SourcedFigure(
                "memory of the manager",
                _MEMORY / 2**30,
                "GB",
                f"{ASSUMPTION}: the address space of a process of 32 bits, as which it ran (5.4.1 "
                "(10)); the undisturbed 1,200 tasks of 1 MB fill 1.2 GB of it",
            ),
            SourcedFigure(
                "throttling begins at",
                _PROACTIVE,
                "of memory",
                f"{ASSUMPTION}; then 0.6, 0.75 and 0.85 of it in use, as in application profiles "
                "of Symphony (50, 40, 25 and 15 % of the address space left)",
            ),
            SourcedFigure(
                "disk for paging", _DISK / 2**20, "MB/s", f"{ASSUMPTION}: a disk of those days"
            ),
            SourcedFigure(
                "slower, in each of the first steps",
                _SLOWER,
                "x",
                f"{ASSUMPTION}: 570 Mbit/s of single tasks against 519 of 300 of 10 MB (slides)",
            ),
        ),
    )


# Ninf-G with Grid Engine: allocation by the batch system, then client and nodes alone.


def _ninfg() -> System:
    profile = ninfg()
    return System(
        name="ninfg",
        title="Ninf-G with Grid Engine: batch allocation, then client to node",
        parameters=profile.parameters,
        start_up=Batch(constant=4.2, per_worker=0.15),
        measured_cores=100,
        given=(
            *profile.given,
            SourcedFigure("allocation", 4.2, "s", "text of 5.5.3"),
            SourcedFigure("allocation, for each core", 0.15, "s", "text of 5.5.3"),
        ),
    )


# Condor. Of its own figures the sources give none but the resolution of its log; what it does is
# theirs: matching, then for each task a process and all files, from one machine to all others.

_MATCHING = 10.0
_MATCH = 0.01
_JOB = 0.08
_PROCESS = 0.5


def _condor() -> System:
    star = Link(rate=ninfg().parameters.to_workers.rate, sharing="evenly")
    return System(
        name="condor",
        title="Condor: matching, then a process and all files for each task",
        parameters=PipelineParameters(
            to_workers=star,
            from_workers=star,
            shared_rate=star.rate,
            submit_cost=_JOB,
            start_latency=_PROCESS,
        ),
        start_up=OneByOne(constant=_MATCHING, per_worker=_MATCH),
        files_per_task=True,
        resolution=1.0,
        given=(
            SourcedFigure(
                "matching",
                _MATCHING,
                "s",
                f"{ASSUMPTION}: half of the 20 s that lie between two negotiation cycles at least "
                "(manual of condor_reschedule); the report says seconds",
            ),
            SourcedFigure("matching, for each core", _MATCH, "s", ASSUMPTION),
            SourcedFigure(
                "start of a task, one after another",
                _JOB,
                "s",
                "HTCondor 23.9 on two cores: 100 tasks of 2 s take 20 s, of which 10 s matching",
            ),
            SourcedFigure("process of a task", _PROCESS, "s", ASSUMPTION),
            SourcedFigure(
                "all transfers together, from one machine",
                835.0,
                "Mbit/s",
                f"{ASSUMPTION}: as Ninf-G on the same network",
            ),
            SourcedFigure("stamps", 1.0, "s", "its log (report)"),
        ),
    )


# gridrpc, with native workers. What calls cost is from this project's own measurements on one
# machine (docs/performance.md); that many nodes behave as that one is not known.

_FRAME = 1448 / 1538
_ETHERNET = _FRAME * GIGABIT / 8
_CALL = 1.5e-6
_LATENCY = 1e-4
_START, _START_EACH = 0.012, 0.00043


def _gridrpc() -> System:
    link = Link(rate=_ETHERNET, sharing="evenly")
    return System(
        name="gridrpc",
        title="gridrpc with native workers over TCP: client to worker",
        parameters=PipelineParameters(
            manager=Manager(inward=Link(), outward=Link()),
            to_workers=link,
            from_workers=link,
            shared_rate=_ETHERNET,
            submit_cost=_CALL,
            retrieve_cost=_CALL,
            start_latency=_LATENCY,
            return_latency=_LATENCY,
        ),
        start_up=OneByOne(constant=_START, per_worker=_START_EACH),
        measured_cores=100,
        given=(
            SourcedFigure(
                "all transfers in one direction",
                _ETHERNET * 8 / 1e6,
                "Mbit/s (of 1,000,000 bits)",
                "1 Gbit/s, of which frames of 1,500 bytes leave 1448/1538 for data",
            ),
            SourcedFigure(
                "client submits a task, and takes its result",
                2 * _CALL,
                "s",
                "docs/performance.md: 333,000 calls per second, on one machine",
            ),
            SourcedFigure(
                "on the way, there and back", 2 * _LATENCY, "s", f"{ASSUMPTION}: Ethernet"
            ),
            SourcedFigure(
                "first worker", _START, "s", "docs/performance.md: 2 native workers in 13 ms"
            ),
            SourcedFigure(
                "each further worker",
                _START_EACH,
                "s",
                "docs/performance.md: 100 native workers in 55 ms; all of them on one machine",
            ),
        ),
    )


SYSTEMS: dict[str, Callable[[], System]] = {
    "symphony": _symphony,
    "ninfg": _ninfg,
    "condor": _condor,
    "gridrpc": _gridrpc,
}
"""By the name that one asks for them with."""
