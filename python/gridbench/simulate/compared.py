"""Real figures beside simulated ones, and those of real runs of scenarios."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.analysis.columns import Floats, seconds
from gridbench.analysis.summary import ideal_time
from gridbench.errors import InputError
from gridbench.run.load import load_run
from gridbench.scenario.results import CaseResult, read_cases
from gridbench.simulate.fitted import Fitted
from gridbench.simulate.observed import Watch
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
    folder: Path, profile: System | Fitted, engine: str, tell: Tell, watch: Watch | None = None
) -> Against:
    """Each case that `gridbench scenario` has run on an engine, simulated with a profile.

    The times of tasks are those that the run's timeline says were asked for. Raises InputError if
    the folder has no case of the engine.
    """
    rows: list[Comparison] = []
    left_out: list[str] = []
    cases = [case for case in read_cases(folder) if case.engine == engine]
    for case in cases:
        if case.status != "done" or case.total_s is None:
            left_out.append(f"{case.case}: {case.status}, {case.reason}")
            continue
        placed = _placed(profile, case)
        if placed is None:
            left_out.append(f"{case.case}: there is no model of its place")
            continue
        tell(case.case, case.tasks)
        times = _times(case)
        work = _work(case)
        found = simulate(
            work,
            placed,
            start_up=0.0 if case.start == "warm" else None,
            times=times,
            watch=watch,
        )
        ideal = ideal_time(times, case.cores)
        rows.append(Comparison(case.case, case.total_s, found.total, ideal))
    if not rows:
        others = sorted({case.engine for case in read_cases(folder)})
        raise InputError(
            f"holds no finished case of the engine `{engine}`",
            file=folder,
            remedy=f"give --engine; there are cases of {', '.join(others)}" if others else "",
        )
    name = profile.path.name if isinstance(profile, Fitted) else profile.name
    return Against(
        f"{name} against {engine}",
        "Totals of real runs; times of tasks are those of the run. Overhead is what is above the "
        f"ideal, where that is more than {MATTERS:.0%} of the total.",
        rows,
        left_out,
    )


def _work(case: CaseResult) -> Work:
    return Work(
        cores=case.cores,
        tasks=case.tasks,
        sleep=case.sleep_s,
        stddev=case.stddev_s,
        bytes_in=case.bytes_in,
        bytes_shared=case.bytes_shared,
        bytes_out=case.bytes_out,
    )


def _times(case: CaseResult) -> Floats:
    if case.folder is not None and case.folder.is_dir():
        _, timeline = load_run(case.folder)
        asked = seconds(timeline, "sleep")
        order = np.argsort(seconds(timeline, "submit"), kind="stable")
        if len(asked) == case.tasks and np.isfinite(asked).all():
            return asked[order]
    return _work(case).times()


def _placed(profile: System | Fitted, case: CaseResult) -> System | None:
    """The profile on the links of a case; on one host data takes no time, unless a model of just
    that place says what it takes."""
    if isinstance(profile, Fitted):
        return profile.for_case(case)
    return profile.on_link(math.inf if case.link_rate is None else case.link_rate)
