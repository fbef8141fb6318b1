"""Simulated figures beside measured ones: runs of results folders, and published tables."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.analysis.transfer import MEGABYTE, block_span
from gridbench.errors import InputError
from gridbench.formats import as_given, bit_rate, counted, percent
from gridbench.model.document import term_value
from gridbench.model.model import PipelineModel
from gridbench.model.model_kind import read_source
from gridbench.model.observation import EnginePlace, Situation
from gridbench.model.pipeline import TaskWatch
from gridbench.model.profiles import SourcedFigure
from gridbench.model.saved import load
from gridbench.model.terms import parameters_of
from gridbench.published.figures import BINARY, figure_in_text, megabytes, table, tasks_of
from gridbench.simulate.profiles import system
from gridbench.simulate.simulation import SimulatedWorkload, Simulation, simulate
from gridbench.simulate.systems import GIGABIT, Batch, System


@dataclass(frozen=True, slots=True)
class FittedSystems:
    """The models of an engine, each for a place."""

    path: Path
    models: Sequence[PipelineModel]

    def only(self) -> System:
        """The one system of the file. InputError if it has several."""
        model, *others = self.models
        if others:
            places = "; ".join(map(_place, self.models))
            raise InputError(
                f"holds models of several places: {places}",
                file=self.path,
                remedy="fit a model to the runs of one place",
            )
        # Of a situation only its start and its bounds count here.
        return _system(model, Situation(cores=1, sleep=np.zeros(1)))

    def for_run(self, place: EnginePlace, situation: Situation) -> System | None:
        """The system in place of a run, with its bounds; None if there is no model of it."""
        for model in self.models:
            known = model.fit.place
            if (known.transport, known.nodes, known.link_rate) == (
                place.transport,
                place.nodes,
                place.link_rate,
            ):
                return _system(model, situation)
        return None


def read_fitted(path: Path, engine: str) -> FittedSystems:
    """The models of an engine in a file. InputError if there is none."""
    kind, known = load(path)
    models = [one for one in known if isinstance(one, PipelineModel)]
    if len(models) < len(known):
        raise InputError(
            f"holds models of {kind.name}, and only tasks can be simulated",
            file=path,
            remedy="have cases predicted: give"
            f" {' '.join(f'--case {one.name}=...' for one in kind.parameters)}",
        )
    found = [model for model in models if model.fit.place.engine == engine]
    if not found:
        engines = sorted({model.fit.place.engine for model in models})
        raise InputError(
            f"holds no model of `{engine}`",
            file=path,
            remedy=f"give --engine: there are {', '.join(engines)}" if engines else "",
        )
    return FittedSystems(path, found)


def _system(model: PipelineModel, situation: Situation) -> System:
    fit = model.fit
    return System(
        name=fit.place.engine,
        title=f"{fit.place.engine}, fitted to {fit.runs} runs on {_place(model)}",
        parameters=parameters_of(fit.shape, fit.values, fit.place, situation),
        start_up=Batch(constant=0.0, per_worker=0.0),
        link=fit.place.link_rate or GIGABIT,
        one_host=fit.place.transport == "one host",
        measured_cores=int(model.ranges.cores.high),
        given=tuple(
            SourcedFigure(
                one.term.meaning,
                one.value,
                one.term.unit,
                f"fitted: {term_value(one.low, one.term.unit)} to"
                f" {term_value(one.high, one.term.unit)}"
                + ("" if one.determined else ", not determined"),
            )
            for one in fit.estimates
        ),
    )


def _place(model: PipelineModel) -> str:
    place = model.fit.place
    if place.transport == "network":
        return "a network, from task logs"
    if place.link_rate is None:
        return f"{place.transport}, {place.processors} processors"
    return f"{place.nodes} nodes behind links of {bit_rate(place.link_rate)}"


MATTERS = 0.2
"""Share of the total from which on overhead is compared by itself."""
Tell = Callable[[str, int], None]
"""Receives the name of a run that begins, and its number of tasks."""


@dataclass(frozen=True, slots=True)
class SimulatedFigure:
    """A real figure and the simulated one, seconds."""

    what: str
    real: float
    simulated: float
    ideal: float = math.nan
    """Of a total: the tasks with no overhead at all."""

    @property
    def error(self) -> float:
        """Simulated over real, less 1."""
        return self.simulated / self.real - 1 if self.real else math.nan

    @property
    def overhead_error(self) -> float:
        """The same of what is above the ideal; NaN where that is a small part of the total."""
        overhead = self.real - self.ideal
        if not overhead > MATTERS * self.real:
            return math.nan
        return (self.simulated - self.ideal) / overhead - 1


@dataclass(frozen=True, slots=True)
class SimulationComparison:
    """Comparisons of one kind, and omitted ones."""

    title: str
    how: str
    rows: Sequence[SimulatedFigure]
    left_out: Sequence[str] = ()

    def errors(self) -> dict[str, float]:
        """Median and 90th percentile of the absolute errors."""
        found = {}
        for name, values in (
            ("total" if self.totals else "figure", [abs(row.error) for row in self.rows]),
            ("overhead", [abs(row.overhead_error) for row in self.rows]),
        ):
            known = np.array([value for value in values if math.isfinite(value)])
            if len(known):
                found[f"{name}, median"] = float(np.median(known))
                found[f"{name}, 90th percentile"] = float(np.percentile(known, 90))
        return found

    @property
    def totals(self) -> bool:
        """Whether the figures are totals."""
        return any(math.isfinite(row.ideal) for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "title": self.title,
            "rows": [
                {
                    "what": row.what,
                    "real": row.real,
                    "simulated": row.simulated,
                    "ideal": _known(row.ideal),
                    "error": _known(row.error),
                    "overhead_error": _known(row.overhead_error),
                }
                for row in self.rows
            ],
            "errors": self.errors(),
            "left_out": list(self.left_out),
        }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


# Real runs.


def against_runs(
    folder: Path,
    profile: System | FittedSystems,
    engine: str,
    notify: Tell,
    watch: TaskWatch | None = None,
) -> SimulationComparison:
    """Each run on an engine in a folder of `gridbench run` or `gridbench scenario`, simulated.

    The times of tasks are those that the run's timeline says were requested. Raises InputError if
    the folder has no run of the engine that can serve.
    """
    source = read_source([folder])
    rows: list[SimulatedFigure] = []
    left_out = [f"{counted(count, 'run')}: {why}" for why, count in source.left_out.items()]
    for run in source.observations:
        if run.place.engine != engine:
            continue
        situation, name = run.situation, os.path.relpath(run.name, folder)
        placed = _placed(profile, run.place, situation)
        if placed is None:
            left_out.append(f"{name}: there is no model of its place")
            continue
        notify(name, situation.tasks)
        found = simulate(
            _work(situation),
            placed,
            start_up=0.0 if situation.warm else None,
            times=situation.sleep,
            watch=watch,
        )
        rows.append(SimulatedFigure(name, run.measured.total, found.total, situation.ideal))
    if not rows:
        others = sorted({run.place.engine for run in source.observations})
        raise InputError(
            f"holds no run of the engine `{engine}` that can be used"
            + "".join(f"; {line}" for line in left_out[:3]),
            file=folder,
            remedy=f"give --engine: there are runs of {', '.join(others)}" if others else "",
        )
    used = profile.path.name if isinstance(profile, FittedSystems) else profile.name
    return SimulationComparison(
        f"{used} against {engine}",
        "Totals of real runs; times of tasks are those of the run. Overhead is what is above the "
        f"ideal, where that is more than {percent(MATTERS, 0)} of the total.",
        rows,
        left_out,
    )


def _work(situation: Situation) -> SimulatedWorkload:
    return SimulatedWorkload(
        cores=situation.cores,
        tasks=situation.tasks,
        sleep=float(situation.sleep.mean()),
        stddev=float(situation.sleep.std()),
        bytes_in=situation.bytes_in,
        bytes_shared=situation.bytes_shared,
        bytes_out=situation.bytes_out,
    )


def _placed(
    profile: System | FittedSystems, place: EnginePlace, situation: Situation
) -> System | None:
    """The profile on the links of a run; on one host data takes no time, unless a model of just
    that place says what it takes."""
    if isinstance(profile, FittedSystems):
        return profile.for_run(place, situation)
    return profile.on_link(math.inf if place.link_rate is None else place.link_rate)


PUBLISHED = "published"
"""What stands for these tables where a folder of results could stand."""
_CORES = 100
"""Of scenario 6, and of the totals in the text."""
_TASK = 30.0
"""Seconds that tasks of scenarios 4 and 5 take."""
_START = 5.6
"""Seconds after which instances are there (5.5.1-1, 0 KB)."""
_Follow = Callable[..., Simulation]
"""Simulates the work of this name with a profile, and its start-up if that is not the profile's."""


def against_published(notify: Tell, watch: TaskWatch | None = None) -> list[SimulationComparison]:
    """Blocks of up to 400 cores on Symphony, and totals on 100 cores of both systems."""

    def follow(
        what: str, work: SimulatedWorkload, profile: System, start_up: float | None = None
    ) -> Simulation:
        notify(what, work.tasks)
        return simulate(work, profile, start_up=start_up, watch=watch)

    symphony, ninfg = system("symphony"), system("ninfg")
    return [
        SimulationComparison(
            "Scenario 4 on Symphony: from the first to the last calc-in of a block (5.5.4-2)",
            f"As many tasks as cores, of {as_given(_TASK)}. All instances start after {_START} s,"
            " as the published spans are without the waits between them. What the manager does for"
            " a task is of one of these rows, 0 KB of 100 cores.",
            list(_spans("5.5.4-2", symphony, follow)),
        ),
        SimulationComparison(
            "Scenario 5 on Symphony: from the first to the last result of a block (5.5.5-1)",
            "The same, of retrieve times. What the client does for a result is of two of these "
            "rows, 0 KB and 100 KB of 400 cores.",
            list(_spans("5.5.5-1", symphony, follow)),
        ),
        SimulationComparison(
            "Totals on Symphony: scenario 6 (5.5.6-1 and -2), and data both ways (5.5.2)",
            f"On up to {_CORES} cores. Start-up is that of the profile, not that of the run; the "
            "profile has it from two of these rows, of 1 and of 10 tasks.",
            [
                *_totals("5.5.6-1", symphony, 0.0, follow),
                *_totals("5.5.6-2", symphony, MEGABYTE, follow),
                *_both_ways(symphony, follow),
            ],
        ),
        SimulationComparison(
            "Totals on Ninf-G with Grid Engine: scenario 6 (5.5.6-3 and -4)",
            f"On up to {_CORES} cores. Start-up is that of the profile, not that of the run.",
            [
                *_totals("5.5.6-3", ninfg, 0.0, follow),
                *_totals("5.5.6-4", ninfg, MEGABYTE, follow),
            ],
        ),
    ]


def _spans(name: str, symphony: System, follow: _Follow) -> Iterator[SimulatedFigure]:
    back = name == "5.5.5-1"
    for row in table(name):
        cores = int(row["tasks"])
        size = megabytes(row["size"], BINARY) * MEGABYTE
        what = f"{row['size']}, {cores} cores"
        work = SimulatedWorkload(
            cores=cores,
            tasks=cores,
            sleep=_TASK,
            bytes_in=0.0 if back else size,
            bytes_out=size if back else 0.0,
        )
        stamps = follow(what, work, symphony, _START).stamps
        found = block_span(stamps.retrieve if back else stamps.calc_in, cores)
        yield SimulatedFigure(what, float(row["span_s"]), found)


def _totals(name: str, profile: System, size: float, follow: _Follow) -> Iterator[SimulatedFigure]:
    for row in table(name):
        tasks = int(row["tasks"])
        work = SimulatedWorkload(
            cores=min(tasks, _CORES), tasks=tasks, sleep=float(row["sleep_s"]), bytes_in=size
        )
        what = f"{tasks_of(row)}, {'1 MB' if size else 'no data'}"
        yield _total(what, float(row["total_s"]), work, profile, follow)


def _both_ways(profile: System, follow: _Follow) -> Iterator[SimulatedFigure]:
    for key, size in (("two_way_100kb", "100 KB"), ("two_way_1mb", "1 MB")):
        row = figure_in_text(key, profile.name)
        each = megabytes(size, BINARY) * MEGABYTE
        work = SimulatedWorkload(cores=_CORES, tasks=400, sleep=1.0, bytes_in=each, bytes_out=each)
        what = f"400 tasks of 1 s, {size} in and out"
        yield _total(what, float(row["value"]), work, profile, follow)


def _total(
    what: str, real: float, work: SimulatedWorkload, profile: System, follow: _Follow
) -> SimulatedFigure:
    done = follow(what, work, profile)
    return SimulatedFigure(what, real, done.total, done.ideal)
