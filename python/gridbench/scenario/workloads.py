"""A case as a workload: its set-up file and list of task times, and both in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gridbench.errors import InputError
from gridbench.scenario.grids import ScenarioCase
from gridbench.workload.body import SLEEP
from gridbench.workload.task_times import Seconds, draw_task_times, write_task_times
from gridbench.workload.workload import Setup, Workload, read_workload

SETUP = "setup.xml"
TIMES = "times"
_KB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTimes:
    """How task times come about."""

    scale: float = 1.0
    """Every time is multiplied by it; nothing else is."""
    stddev: float = 0.0
    """Standard deviation in seconds, not scaled."""
    stddev_share: float = 0.0
    """The same as a share of the mean."""
    seed: int = 1
    body: str = SLEEP
    """What tasks do for their time: see `gridbench.workload.body`."""

    def deviation(self, case: ScenarioCase) -> float:
        """Standard deviation of the case's times, seconds, not scaled."""
        return self.stddev + self.stddev_share * case.sleep

    def draw(self, case: ScenarioCase) -> Seconds:
        """The case's times, scaled, seconds, shape (tasks,)."""
        return self.scale * draw_task_times(case.tasks, case.sleep, self.deviation(case), self.seed)


def write_workload(case: ScenarioCase, times: TaskTimes, folder: Path) -> Path:
    """Write set-up file and list of times into `folder`, for `gridbench run` as well.

    Returns the set-up file. InputError if they cannot be written.
    """
    path = folder / SETUP
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(_setup_text(case), encoding="ascii")
    except OSError as error:
        raise InputError(
            f"cannot write the set-up of a case: {error.strerror}",
            file=path,
            remedy="make room, and run the same again: it goes on with what is missing",
        ) from None
    write_task_times(
        folder / TIMES, case.tasks, case.sleep, times.deviation(case), times.seed, replace=True
    )
    return path


def workload_of(case: ScenarioCase, times: TaskTimes, folder: Path) -> Workload:
    """Write the workload and read it back: what runs is what the files say."""
    return read_workload(write_workload(case, times, folder), times.scale, times.body)


def setup_of(case: ScenarioCase) -> Setup:
    """The set-up without a file, to see what a case needs."""
    return Setup(
        path=Path(case.key),
        ntasks=case.tasks,
        nnodes=case.cores,
        input_file=TIMES,
        task_kb=case.bytes_in / _KB,
        shared_kb=case.bytes_shared / _KB,
        write_kb=case.bytes_out / _KB,
    )


def _setup_text(case: ScenarioCase) -> str:
    setup = setup_of(case)
    values = "".join(f"<{name}> {value!s} </{name}>\n" for name, value in setup.to_dict().items())
    return f"<BenchmarkSetup>\n{values}</BenchmarkSetup>\n"
