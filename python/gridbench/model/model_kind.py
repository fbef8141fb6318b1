"""Tasks of engines, as `gridbench.model.kind.ModelKind`."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gridbench.analysis.clocks import clock_margin, corrected, offsets, resolution
from gridbench.analysis.columns import Floats, seconds
from gridbench.analysis.lanes import lanes
from gridbench.errors import InputError
from gridbench.formats import counted, rounded
from gridbench.model.held_out import WAYS
from gridbench.model.kind import Fitting, ModelParameter, ModelSubjects, nobody, none_serves
from gridbench.model.model import PipelineModel, model_of
from gridbench.model.observation import (
    EnginePlace,
    Observation,
    RunTimes,
    Situation,
    measure,
    observe,
)
from gridbench.model.saved import pipeline_models as from_record
from gridbench.model.saved import pipeline_record as to_record
from gridbench.run.recorder import RECORD
from gridbench.scenario.results import CASES, CaseResult, read_cases
from gridbench.tasklog import read_task_log

if TYPE_CHECKING:
    pass

# ---- Runs to fit to

ENGINE = "log"
"""What stands for the engine of a log, which does not name it."""
PLACE = EnginePlace(engine=ENGINE, version="", host="", processors=1, transport="network")
"""All logs that are given are taken for those of one system, on machines of their own."""
_EVEN = 0.01
"""Tasks whose times differ by no more than this part were to take equally long."""
_DIGITS = 3
"""Of such a time, at least: what was really slept differs in the last ones, and from run to run."""
_ALL_DIGITS = 17
_OVERSLEPT = 0.005
"""Seconds that a task may sleep longer than it was to."""
_FEW = 2
"""With so few workers, the first one never counts as begun alone."""
_SURE = 0.2
"""A stamp of a host says when workers had started if its clock is known to this part of it."""


def observe_log(path: Path) -> Observation | str:
    """The run of a task log, as a cold one; or why it cannot serve, as tasks are missing.

    Where hosts have not stamped their tasks, or their clocks are too unsure, the total is known of
    it and the rest NaN. InputError for what is no task log, or has no header: without it neither
    cores nor sizes of data are known.
    """
    with warnings.catch_warnings():
        # Bad values are refused below, or have no weight here.
        warnings.simplefilter("ignore", UserWarning)
        header, table = read_task_log(path, with_header=True)
    if (lost := header.ntasks - table.num_rows) > 0:
        return f"{lost:,} of its {counted(header.ntasks, 'task')} are missing"
    if lost < 0:
        return "it has more tasks than its header says"
    bytes_in, bytes_shared, bytes_out = (
        float(seconds(table, name).max()) for name in ("bytes_in", "bytes_shared", "bytes_out")
    )
    order = np.argsort(seconds(table, "submit"), kind="stable")
    situation = Situation(
        cores=header.nnodes,
        sleep=_requested_times(seconds(table, "sleep")[order]),
        bytes_in=bytes_in,
        bytes_shared=bytes_shared,
        bytes_out=bytes_out,
    )
    measured = _measured(table, situation)
    overhead = measured.total - situation.ideal
    if not overhead > 0:
        return "its total is shorter than its tasks take on so many cores"
    # Of a total that is rounded to whole steps, the standard deviation.
    unsure = resolution(table) / math.sqrt(12) / overhead
    return Observation(str(path), PLACE, situation, measured, uncertainty=unsure)


def _requested_times(slept: Floats) -> Floats:
    """What tasks were to take: a log has what they really slept."""
    middle = float(np.median(slept))
    if np.ptp(slept) > _EVEN * middle:
        return slept
    # As few digits as do not move it by more than a task may have overslept.
    for digits in range(_DIGITS, _ALL_DIGITS):
        if abs(rounded(middle, digits) - middle) <= max(_OVERSLEPT, float(np.ptp(slept))):
            return np.full(len(slept), rounded(middle, digits))
    return np.full(len(slept), middle)


def _measured(table: pa.Table, situation: Situation) -> RunTimes:
    if not _stamped(table):
        total = float(seconds(table, "retrieve").max())
        return RunTimes(total, math.nan, math.nan, math.nan)
    margin = clock_margin(table, same=False)
    table = corrected(table, offsets(table))
    found = measure(table, situation)
    first, last = found.first_calc_in, found.last_worker_calc_in
    early = margin < _SURE * first and not _forerunner(table)
    return replace(
        found,
        first_calc_in=first if early else math.nan,
        last_worker_calc_in=last if margin < _SURE * last else math.nan,
    )


def _forerunner(table: pa.Table) -> bool:
    """Whether one worker came up long before all others, as where a scheduler starts one at once
    and the others when it looks again. The model has no such start, and is that of the others."""
    lane, calc_in = lanes(table), seconds(table, "calc_in")
    begins = np.full(lane.max() + 1, np.inf)
    np.minimum.at(begins, lane, calc_in)
    begins.sort()
    return len(begins) > _FEW and bool(begins[1] - begins[0] > begins[-1] - begins[1])


def _stamped(table: pa.Table) -> bool:
    """Whether the hosts have told when tasks began and ended: between these they have slept."""
    computed = seconds(table, "calc_out") - seconds(table, "calc_in")
    slept = seconds(table, "slept")
    return bool(np.all(computed >= slept - np.maximum(resolution(table), 0.01 * slept)))


REMEDY = (
    "run them again, those of an overloaded machine when it has nothing else to do; or give logs"
    " that have all of their tasks"
)
"""What helps if no run can serve."""


@dataclass(frozen=True, slots=True)
class RunSource:
    """What was found in some folders."""

    observations: tuple[Observation, ...]
    left_out: Counter[str]
    """Runs that cannot serve, by why."""

    def by_place(self) -> dict[EnginePlace, list[Observation]]:
        """Those of each engine, in each place, on its own."""
        found: dict[EnginePlace, list[Observation]] = {}
        for one in self.observations:
            found.setdefault(one.place, []).append(one)
        return found

    def none_serves(self) -> InputError:
        """What to raise if there are no observations."""
        return none_serves(self.left_out, "run", REMEDY)


def read_source(given: Sequence[Path], *, others: str = "") -> RunSource:
    """All runs in and below folders, and those of task logs; `others`: what else could have been
    given, for the message.

    InputError if there are none, or for a folder or log that is none or is damaged.
    """
    found: dict[Path, Observation | str] = {}
    for folder in given:
        if folder.is_file():
            found[folder.resolve()] = observe_log(folder)
            continue
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "does not exist"
            raise InputError(what, file=folder, remedy="give folders of runs, or task logs")
        own: dict[Path, Observation | str] = {}
        scenarios = sorted(path.parent for path in folder.rglob(CASES))
        for scenario in scenarios:
            for case in read_cases(scenario):
                if case.folder is not None:
                    own[case.folder.resolve()] = _of_case(case, case.folder)
        for record in sorted(folder.rglob(RECORD)):
            place = record.parent
            # What lies in a scenario's folder and is not in its results was not finished.
            if not any(scenario in place.parents for scenario in scenarios):
                own[place.resolve()] = observe(place)
        if not own:
            raise InputError(
                "there are no runs in this folder",
                file=folder,
                remedy=f"give a folder of gridbench run or scenario{others}",
            )
        found |= own
    usable = tuple(one for one in found.values() if isinstance(one, Observation))
    return RunSource(usable, Counter(one for one in found.values() if isinstance(one, str)))


def _of_case(case: CaseResult, folder: Path) -> Observation | str:
    if case.status != "done":
        return f"{case.status}: {case.reason_kind}"
    if not (folder / RECORD).exists():
        return "only its figures were kept, and a model is fitted to stamps of tasks"
    one = observe(folder)
    if isinstance(one, str):
        return one
    place = replace(one.place, transport=case.transport, nodes=case.nodes, link_rate=case.link_rate)
    return replace(one, place=place, others=case.load.get("others", math.nan))


# ---- The kind

__all__ = ["from_record", "name", "parameters", "read", "to_record"]

name = "tasks"
parameters = (
    ModelParameter("cores", "cores"),
    ModelParameter("tasks", "tasks"),
    ModelParameter("sleep", "time of a task", "s", harder="less"),
    ModelParameter("input", "task data", "bytes", usual=0.0),
    ModelParameter("shared", "shared data", "bytes", usual=0.0),
    ModelParameter("output", "output data", "bytes", usual=0.0),
)


@dataclass(frozen=True, slots=True)
class EngineRuns:
    """The runs of an engine in one place, as `gridbench.model.kind.Subject`."""

    place: EnginePlace
    observations: Sequence[Observation]

    @property
    def name(self) -> str:
        """Of the engine."""
        return self.place.engine

    @property
    def told(self) -> str:
        """Engine, machine and links."""
        return self.place.describe()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.observations)

    def fits(self, *, test: bool) -> int:
        """How many fits a model takes."""
        return 1 + (WAYS if test else 0)

    def fit(self, *, test: bool, fitting: Fitting = nobody) -> PipelineModel:
        """The model. InputError if there are too few runs."""
        return model_of(self.observations, test=test, fitting=fitting)


def read(folders: Sequence[Path]) -> ModelSubjects:
    """The runs of each engine, in each place. InputError for a folder that cannot be used."""
    source = read_source(
        folders, others=", the very folder of gridbench data or sync, or task logs by their names"
    )
    return ModelSubjects(
        subjects=[EngineRuns(place, runs) for place, runs in source.by_place().items()],
        noun="run",
        left_out=source.left_out,
        remedy=REMEDY,
    )
