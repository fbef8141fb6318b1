"""The figures of a simulated run, where its time goes, and its bottleneck."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from gridbench.analysis.breakdown import job_cost
from gridbench.analysis.lanes import assign_lanes
from gridbench.formats import amount, as_given, duration, percent
from gridbench.model.pipeline import Link, Manager, PipelineCase, PipelineParameters, TaskWatch
from gridbench.report.run_analysis import label
from gridbench.simulate.simulation import SimulatedWorkload, Simulation, cautions_of, total_of
from gridbench.simulate.systems import ASSUMPTION, Level, Pressure, System

MOST_TASKS = 50_000
"""With more, what would be gained is not worked out: it takes several runs."""
_BUSY = 0.8
"""Share of the time from which on something that is busy is the bottleneck."""
_WORTH = 0.02
"""Of the total time; less is not worth a sentence."""


@dataclass(frozen=True, slots=True)
class Use:
    """How long something was busy."""

    what: str
    busy: float
    """Seconds; of workers, the mean of all."""
    share: float
    """Of the total time."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What the total time would be without something."""

    without: str
    total: float
    """Seconds."""
    saved: float
    """Seconds less than with it; below 0 if it did good."""


def uses(done: Simulation) -> list[Use]:
    """What was busy how long, the busiest first; what had nothing to do is left out."""
    case, known = done.case, done.system.parameters
    tasks = len(case.sleep)
    submit = tasks * (known.submit_cost + known.submit_per_byte * case.bytes_in)
    retrieve = tasks * _taking(known, case.bytes_out)
    seen = len(np.unique(done.stamps.worker))
    inward = tasks * known.to_workers.work(case.bytes_in)
    inward += seen * case.bytes_shared / min(known.shared_rate, known.to_workers.each)
    inward /= known.to_workers.at_once
    outward = tasks * known.from_workers.work(case.bytes_out) / known.from_workers.at_once
    computing = float((done.stamps.calc_out - done.stamps.calc_in).sum()) / len(case.ready)
    busy: list[tuple[str, float]] = []
    if manager := known.manager:
        # One thread submits and another takes results.
        if known.client_lock:
            copying = tasks * known.submit_per_byte * case.bytes_in
            locked = submit - copying + retrieve
            busy.append(("the client's lock, submitting and taking results", locked))
        busy += [
            ("the client, submitting", submit),
            ("the client, taking results", retrieve),
            ("the link from the client to the manager", tasks * manager.inward.work(case.bytes_in)),
            (
                "the link from the manager to the client",
                tasks * manager.outward.work(case.bytes_out),
            ),
        ]
    else:
        busy.append(("the client, submitting and taking results", submit + retrieve))
    busy += [
        ("the link to the workers", inward),
        ("the link from the workers", outward),
        ("the workers, computing", computing),
    ]
    if math.isfinite(known.processors):
        busy.append(("the machine's processors", _processor_time(done) / known.processors))
    if done.pressure:
        busy.append(("the manager's disk", done.pressure.disk_busy))
    found = [Use(what, time, time / done.total) for what, time in busy if time > 0]
    return sorted(found, key=lambda use: -use.share)


def _taking(known: PipelineParameters, size: float) -> float:
    """Seconds of the client's own work for a result of so many bytes."""
    return known.retrieve_cost + (known.take_output.of(size) if size else 0.0)


def _processor_time(done: Simulation) -> float:
    """Seconds that client and workers compute on the machine they share."""
    case, known = done.case, done.system.parameters
    each = known.submit_cost + known.submit_per_byte * case.bytes_in
    each += _taking(known, case.bytes_out)
    each += known.take.of(case.bytes_in) + known.make.of(case.bytes_out)
    worker = known.start.serial + known.start.parallel if known.start else 0.0
    once = 0.0
    if case.bytes_shared:
        worker += known.take_shared.of(case.bytes_shared)
        once = known.share.of(case.bytes_shared)
    return len(case.sleep) * each + len(case.ready) * worker + once


def gains(done: Simulation, watch: TaskWatch | None = None) -> list[Gain]:
    """What the total would be without each thing that costs time, the largest gain first.

    Each is a run of its own: of more than `MOST_TASKS` tasks none is made.
    """
    if len(done.case.sleep) > MOST_TASKS:
        return []
    found = []
    for what, case, system in _without(done.case, done.system):
        total = total_of(case, system, watch)
        found.append(Gain(what, total, done.total - total))
    return sorted(found, key=lambda gain: gain.total)


def _without(case: PipelineCase, system: System) -> list[tuple[str, PipelineCase, System]]:
    known = system.parameters
    found = []
    if case.ready.max() > 0 or known.start:
        there = replace(case, ready=np.zeros_like(case.ready))
        found.append(("start-up", there, _with(system, replace(known, start=None))))
    if case.bytes_in or case.bytes_out or case.bytes_shared:
        free = replace(case, bytes_in=0.0, bytes_out=0.0, bytes_shared=0.0)
        found.append(("data", free, system))
    if case.bytes_shared:
        found.append(("shared data", replace(case, bytes_shared=0.0), system))
    if _handling(known):
        found.append(("work and waits for each task", case, _with(system, _unhandled(known))))
    if case.sleep.min() < case.sleep.max():
        even = np.full_like(case.sleep, case.sleep.mean())
        found.append(("differences between tasks", replace(case, sleep=even), system))
    if system.throttling:
        found.append(("throttling", case, replace(system, throttling=None)))
    return found


def _with(system: System, parameters: PipelineParameters) -> System:
    return replace(system, parameters=parameters)


def _handling(known: PipelineParameters) -> bool:
    return _unhandled(known) != known


def _unhandled(known: PipelineParameters) -> PipelineParameters:
    """Only data takes time."""

    def bare(link: Link) -> Link:
        return replace(link, per_message=0.0)

    manager = known.manager and Manager(
        inward=bare(known.manager.inward), outward=bare(known.manager.outward)
    )
    return replace(
        known,
        manager=manager,
        to_workers=bare(known.to_workers),
        from_workers=bare(known.from_workers),
        submit_cost=0.0,
        retrieve_cost=0.0,
        start_latency=0.0,
        return_latency=0.0,
        take=replace(known.take, fixed=0.0),
        make=replace(known.make, fixed=0.0),
        take_output=replace(known.take_output, fixed=0.0),
    )


def limit(done: Simulation, busy: list[Use], gained: list[Gain]) -> str:
    """What limited the run, in a sentence."""
    top = busy[0] if busy else None
    best = max(gained, key=lambda gain: gain.saved, default=None)
    if top and top.share >= _BUSY:
        how_long = f"for {percent(top.share, 0)} of the time"
        if top.what == "the workers, computing":
            return f"The tasks themselves: the workers compute {how_long}."
        return f"{top.what[0].upper()}{top.what[1:]}: it is busy {how_long}."
    if best and best.saved > _WORTH * done.total:
        return (
            f"{best.without[0].upper()}{best.without[1:]}: without it the total would be "
            f"{duration(best.total)}, {percent(best.saved / done.total, 0)} less."
        )
    if done.efficiency > 1 - _WORTH:
        return "Nothing: it takes hardly longer than the tasks themselves."
    if gained or top is None:
        return "Nothing alone: several things take their part."
    return _guessed(done, top)


def _guessed(done: Simulation, top: Use) -> str:
    """Conclusions without runs that leave things out."""
    start = float(done.case.ready.max())
    if start > top.busy:
        return (
            f"Start-up: the last worker is there after {duration(start)} of {duration(done.total)}."
        )
    return f"Nothing alone: most used is {top.what}, for {percent(top.share, 0)} of the time."


_SEEN = 0.01
"""Share of the mean by which times have to be longer for a note."""


@dataclass(frozen=True, slots=True)
class Account:
    """A simulated run without its stamps. Times are seconds."""

    work: SimulatedWorkload
    system: System
    total: float
    ideal: float
    efficiency: float
    first_start: float
    """When the first task begins to compute."""
    last_start: float
    """When the last of the workers begins its first task."""
    parts: dict[str, float]
    """What the time of a worker goes into, in the mean; together they are the total."""
    uses: list[Use]
    gains: list[Gain]
    limit: str
    """The bottleneck, in a sentence."""
    pressure: Pressure | None
    mean_time: float
    """Of the tasks as they were drawn."""
    cautions: tuple[str, ...] = ()
    """That its manager throttles, or comes near to it."""

    @property
    def notices(self) -> list[str]:
        """What the reader must know of these figures."""
        drawn = _drawn(self.work, self.mean_time)
        return [*drawn, *self.cautions, *notices(self.system, self.work.cores)]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        pressure = self.pressure
        return {
            "profile": self.system.name,
            "link_bits_per_second": None if self.system.one_host else self.system.link,
            "work": asdict(self.work),
            "total_s": self.total,
            "ideal_s": self.ideal,
            "efficiency": None if math.isnan(self.efficiency) else self.efficiency,
            "first_start_s": self.first_start,
            "last_start_s": self.last_start,
            "parts_s": self.parts,
            "uses": [asdict(use) for use in self.uses],
            "gains": [asdict(gain) for gain in self.gains],
            "limit": self.limit,
            "memory": pressure
            and {
                "most_bytes": pressure.most,
                "paged_tasks": pressure.paged,
                "throttling": Level(pressure.worst).name.lower(),
            },
            "notices": self.notices,
        }


def account(done: Simulation, table: pa.Table, watch: TaskWatch | None = None) -> Account:
    """Work it out; `table` is the run's timeline."""
    busy, gained = uses(done), gains(done, watch)
    lanes = assign_lanes(table)
    cost = job_cost(table, lanes, done.work.cores, cold=True)
    stamps = done.stamps
    first = lanes.previous < 0
    return Account(
        work=done.work,
        system=done.system,
        total=done.total,
        ideal=done.ideal,
        efficiency=done.efficiency,
        first_start=float(stamps.calc_in.min()),
        last_start=float(stamps.calc_in[first].max()),
        parts={label(name): part for name, part in cost.parts().items()} if cost else {},
        uses=busy,
        gains=gained,
        limit=limit(done, busy, gained),
        pressure=done.pressure,
        mean_time=float(done.case.sleep.mean()),
        cautions=cautions_of(done.case, done.system, done.pressure),
    )


def _drawn(work: SimulatedWorkload, mean: float) -> list[str]:
    """That times of tasks are longer in the mean than was requested, if they are so by design."""
    if work.raised() <= _SEEN * work.sleep:
        return []
    return [
        "A task takes no negative time: cutting off what is below 0 of a spread of"
        f" {as_given(work.stddev)} has raised the mean of the tasks from {as_given(work.sleep)} to"
        f" {amount(mean, 's')}, which the ideal time is of."
    ]


def notices(system: System, cores: int) -> list[str]:
    """What is not known of a system with so many cores."""
    found = []
    if system.measured_cores is None:
        found.append("How many cores the profile's parameters were measured with is not known.")
    elif cores > system.measured_cores:
        found.append(
            f"The profile's parameters were measured with up to {system.measured_cores:,} cores: "
            f"figures for {cores:,} are extrapolated."
        )
    assumed = [one.name for one in system.given if one.source.startswith(ASSUMPTION)]
    if assumed:
        found.append(f"Assumptions, not measured: {'; '.join(assumed)}.")
    return found
