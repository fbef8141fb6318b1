"""What is told of a simulated run: its figures, where the time goes, and what limits it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from gridbench.analysis.breakdown import job_cost
from gridbench.analysis.lanes import assign_lanes
from gridbench.formats import amount, as_given
from gridbench.model.pipeline import TaskWatch
from gridbench.report.run_analysis import label
from gridbench.simulate.limits import Gain, Use, gains, limit, uses
from gridbench.simulate.simulation import Simulation, cautions_of
from gridbench.simulate.systems import ASSUMPTION, System
from gridbench.simulate.throttling import Level, Pressure
from gridbench.simulate.work import Work

_SEEN = 0.01
"""Share of the mean by which times have to be longer for it to be said."""


@dataclass(frozen=True, slots=True)
class Account:
    """A simulated run without its stamps. Times are seconds."""

    work: Work
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
    """What limits, in a sentence."""
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


def _drawn(work: Work, mean: float) -> list[str]:
    """That times of tasks are longer in the mean than was asked for, if they are so by design."""
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
            f"what is said of {cores:,} is an extrapolation."
        )
    assumed = [one.name for one in system.given if one.source.startswith(ASSUMPTION)]
    if assumed:
        found.append(f"Assumptions, measured by nobody: {'; '.join(assumed)}.")
    return found
