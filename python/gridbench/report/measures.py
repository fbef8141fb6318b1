"""What of a result can be compared: figures by name, each with a value per round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gridbench.bench.micro.figures import holds_results, load_results
from gridbench.errors import InputError
from gridbench.scenario.results import folders_of_results, read_results

Quantity = tuple[str, str]
"""The engine, and what was measured of it: what figures are known by."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure, as often as it was measured."""

    values: tuple[float, ...]
    unit: str = "s"
    better: Literal["less", "more"] = "less"


def measures(source: Path) -> dict[Quantity, Measure]:
    """All figures of a result: of micro benchmarks, of scenarios, or total times of runs.

    What does not count in its own report does not count here. InputError for what is no result, or
    cannot be read.
    """
    if holds_results(source):
        return _of_micro(source)
    if folders := folders_of_results(source):
        return _of_scenarios(folders)
    return _of_runs(source)


def _of_micro(source: Path) -> dict[Quantity, Measure]:
    return {
        (entry.engine, figure.title): Measure(entry.values, figure.unit, figure.better)
        for figure in load_results(source).figures
        for entry in figure.entries
        if entry.status == "ok" and entry.values
    }


def _of_scenarios(folders: list[Path]) -> dict[Quantity, Measure]:
    found: dict[Quantity, list[float]] = {}
    for folder in folders:
        _, results = read_results(folder)
        for one in results:
            if one.status == "done" and one.total_s is not None:
                what = f"scenario {one.scenario}, {one.case}, {one.start}"
                found.setdefault((one.engine, what), []).append(one.total_s)
    return {quantity: Measure(tuple(values)) for quantity, values in found.items()}


def _of_runs(source: Path) -> dict[Quantity, Measure]:
    from gridbench.report.prose import counts
    from gridbench.report.source import load_runs
    from gridbench.report.study import study
    from gridbench.run.folders import runs_below

    found: dict[Quantity, list[float]] = {}
    # Runs that were repeated lie in folders of their own.
    places = runs_below(source) or [source]
    for run in load_runs(places):
        one = study(run)
        if counts(one) and one.end > 0:
            start = "cold" if run.cold else "warm"
            kind = f" {run.kind.told}" if run.kind.told else ""
            what = f"{run.ntasks:,} tasks{kind}, {run.nnodes:,} workers, {start} start"
            engine = run.record.get("engine")
            # A log does not say what made it; then it is compared with any other log.
            name = str(engine.get("name")) if isinstance(engine, dict) else "log"
            found.setdefault((name, what), []).append(one.end)
    if not found:
        raise InputError("holds no run that counts", file=source)
    return {quantity: Measure(tuple(values)) for quantity, values in found.items()}
