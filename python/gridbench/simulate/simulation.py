"""A simulated run: a workload followed through a system."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.analysis.summary import ideal_time
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.model.pipeline import PipelineCase, Stamps, TaskWatch, evaluate
from gridbench.simulate.systems import Pressure, System, cautions, follow_throttled
from gridbench.workload.numbers import LARGEST_KB, LONGEST_TIME
from gridbench.workload.workload import draw_task_times

MOST_CORES = 1_000_000
MOST_TASKS = 10_000_000
_LARGEST = LARGEST_KB * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedWorkload:
    """A workload and the number of cores. Raises InputError for what makes no sense."""

    cores: int
    tasks: int
    sleep: float
    """Mean time of a task, seconds."""
    stddev: float = 0.0
    """Standard deviation of these times, seconds."""
    bytes_in: float = 0.0
    """Data of each task."""
    bytes_shared: float = 0.0
    bytes_out: float = 0.0
    seed: int = 1
    """Of the task times: the same seed gives the same times."""

    def __post_init__(self) -> None:
        for name, count, most in (
            ("--cores", self.cores, MOST_CORES),
            ("--tasks", self.tasks, MOST_TASKS),
        ):
            if not 1 <= count <= most:
                raise InputError(f"{name} must be from 1 to {most:,}, not {count:,}")
        for name, seconds in (("--sleep", self.sleep), ("--stddev", self.stddev)):
            if not 0 <= seconds <= LONGEST_TIME:
                raise InputError(
                    f"{name} must be from 0 to {as_given(LONGEST_TIME, 'seconds')}, not"
                    f" {as_given(seconds, '')}"
                )
        for name, size in (
            ("--input-per-task", self.bytes_in),
            ("--shared", self.bytes_shared),
            ("--output-per-task", self.bytes_out),
        ):
            if not 0 <= size <= _LARGEST:
                raise InputError(
                    f"{name} must be from 0 bytes to a terabyte, not {as_given(size, '')}"
                )

    def raised(self) -> float:
        """Seconds by which truncating the distribution of the times at 0 moves their mean up."""
        if not self.stddev:
            return 0.0
        edge = self.sleep / self.stddev
        density = math.exp(-(edge**2) / 2) / math.sqrt(2 * math.pi)
        above = (1 + math.erf(edge / math.sqrt(2))) / 2
        return self.stddev * density / above

    def times(self) -> Floats:
        """Seconds of each task, normally distributed and truncated at 0, shape (tasks,)."""
        return draw_task_times(self.tasks, self.sleep, self.stddev, self.seed)


@dataclass(frozen=True, slots=True)
class Simulation:
    """A run that was simulated. Times are seconds."""

    work: SimulatedWorkload
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
    work: SimulatedWorkload,
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


def case_of(
    work: SimulatedWorkload, system: System, start_up: float | None, times: Floats
) -> PipelineCase:
    """Input of the model for a workload."""
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
