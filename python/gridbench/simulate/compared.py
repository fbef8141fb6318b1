"""Real figures beside simulated ones, and those of real runs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.errors import InputError
from gridbench.formats import counted, percent
from gridbench.model.observation import EnginePlace, Situation
from gridbench.model.pipeline import TaskWatch
from gridbench.model.sources import read_source
from gridbench.simulate.fitted import Fitted
from gridbench.simulate.simulation import simulate
from gridbench.simulate.systems import System
from gridbench.simulate.work import Work

MATTERS = 0.2
"""Share of the total from which on overhead is compared by itself."""
Tell = Callable[[str, int], None]
"""Is told the name of a run that begins, and its number of tasks."""


@dataclass(frozen=True, slots=True)
class Comparison:
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
class Against:
    """Comparisons of one kind, and what was left out."""

    title: str
    how: str
    rows: Sequence[Comparison]
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
    folder: Path, profile: System | Fitted, engine: str, tell: Tell, watch: TaskWatch | None = None
) -> Against:
    """Each run on an engine in a folder of `gridbench run` or `gridbench scenario`, simulated.

    The times of tasks are those that the run's timeline says were asked for. Raises InputError if
    the folder has no run of the engine that can serve.
    """
    source = read_source([folder])
    rows: list[Comparison] = []
    left_out = [f"{counted(count, 'run')}: {why}" for why, count in source.left_out.items()]
    for run in source.observations:
        if run.place.engine != engine:
            continue
        situation, name = run.situation, os.path.relpath(run.name, folder)
        placed = _placed(profile, run.place, situation)
        if placed is None:
            left_out.append(f"{name}: there is no model of its place")
            continue
        tell(name, situation.tasks)
        found = simulate(
            _work(situation),
            placed,
            start_up=0.0 if situation.warm else None,
            times=situation.sleep,
            watch=watch,
        )
        rows.append(Comparison(name, run.measured.total, found.total, situation.ideal))
    if not rows:
        others = sorted({run.place.engine for run in source.observations})
        raise InputError(
            f"holds no run of the engine `{engine}` that can be used"
            + "".join(f"; {line}" for line in left_out[:3]),
            file=folder,
            remedy=f"give --engine: there are runs of {', '.join(others)}" if others else "",
        )
    used = profile.path.name if isinstance(profile, Fitted) else profile.name
    return Against(
        f"{used} against {engine}",
        "Totals of real runs; times of tasks are those of the run. Overhead is what is above the "
        f"ideal, where that is more than {percent(MATTERS, 0)} of the total.",
        rows,
        left_out,
    )


def _work(situation: Situation) -> Work:
    return Work(
        cores=situation.cores,
        tasks=situation.tasks,
        sleep=float(situation.sleep.mean()),
        stddev=float(situation.sleep.std()),
        bytes_in=situation.bytes_in,
        bytes_shared=situation.bytes_shared,
        bytes_out=situation.bytes_out,
    )


def _placed(profile: System | Fitted, place: EnginePlace, situation: Situation) -> System | None:
    """The profile on the links of a run; on one host data takes no time, unless a model of just
    that place says what it takes."""
    if isinstance(profile, Fitted):
        return profile.for_run(place, situation)
    return profile.on_link(math.inf if place.link_rate is None else place.link_rate)
