"""One simulated run: a workload through a system, its stamps, and what was busy how long."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.analysis.summary import ideal_time
from gridbench.model.pipeline import PipelineCase, Stamps, TaskWatch, evaluate
from gridbench.simulate.systems import System
from gridbench.simulate.throttling import Pressure, cautions, follow_throttled
from gridbench.simulate.work import Work


@dataclass(frozen=True, slots=True)
class Simulation:
    """A run that was simulated. Times are seconds."""

    work: Work
    system: System
    case: PipelineCase
    """What the model was given."""
    stamps: Stamps
    ideal: float
    """The same tasks on as many cores with no overhead at all."""
    pressure: Pressure | None
    """Of the manager's memory, if the system has one with bounds."""

    @property
    def total(self) -> float:
        """From t = 0 until the last result is in the client's hand."""
        return self.stamps.total

    @property
    def efficiency(self) -> float:
        """Ideal by total time; NaN if there is neither."""
        return self.ideal / self.total if self.total > 0 else float("nan")


def simulate(
    work: Work,
    system: System,
    *,
    start_up: float | None = None,
    times: Floats | None = None,
    watch: TaskWatch | None = None,
) -> Simulation:
    """Follow all tasks of the work through the system: a million of them take a few seconds.

    With `start_up`, all workers are there after so many seconds, whatever the system's own start-up
    is like. `times` are those of the tasks, shape (tasks,), if they are not to be drawn.
    """
    if start_up is not None:
        system = replace(system, parameters=replace(system.parameters, start=None))
    case = case_of(work, system, start_up, work.times() if times is None else times)
    stamps, pressure = _follow(case, system, watch)
    return Simulation(
        work=work,
        system=system,
        case=case,
        stamps=stamps,
        ideal=ideal_time(case.sleep, work.cores),
        pressure=pressure,
    )


def case_of(work: Work, system: System, start_up: float | None, times: Floats) -> PipelineCase:
    """What the model is given for a workload."""
    ready = system.start_up.ready(work.cores) if start_up is None else np.full(work.cores, start_up)
    # A system that sends all files with each task has nothing that is shared.
    again = work.bytes_shared if system.files_per_task else 0.0
    return PipelineCase(
        times,
        ready,
        bytes_in=work.bytes_in + again,
        bytes_out=work.bytes_out,
        bytes_shared=work.bytes_shared - again,
    )


def total_of(case: PipelineCase, system: System, watch: TaskWatch | None = None) -> float:
    """The total time alone, seconds."""
    return _follow(case, system, watch)[0].total


def _follow(
    case: PipelineCase, system: System, watch: TaskWatch | None
) -> tuple[Stamps, Pressure | None]:
    if system.throttling is None:
        return evaluate(case, system.parameters, watch), None
    return follow_throttled(case, system.parameters, system.throttling, watch)


def cautions_of(case: PipelineCase, system: System, pressure: Pressure | None) -> tuple[str, ...]:
    """What a reader must know of a run whose manager throttles or comes near to it, as sentences;
    nothing of a system whose manager does not."""
    if system.throttling is None:
        return ()
    return cautions(case, system.parameters, system.throttling, pressure)


def cautions_for(case: PipelineCase, system: System) -> tuple[str, ...]:
    """The same of a case that is followed for it."""
    if system.throttling is None:
        return ()
    return cautions_of(case, system, _follow(case, system, None)[1])
