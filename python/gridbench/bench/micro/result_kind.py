"""Results of micro benchmarks, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.bench.micro.figures import holds_results, load_results
from gridbench.errors import InputError
from gridbench.result_kind import Measure, Quantity

title = "gridbench micro"
model = None
compares = True
holds = holds_results


def measures(source: Path) -> dict[Quantity, Measure]:
    """The values of each engine in each figure."""
    return {
        (entry.engine, figure.title): Measure(entry.values, figure.unit, figure.better)
        for figure in load_results(source).figures
        for entry in figure.entries
        if entry.status == "ok" and entry.values
    }


def write_report(sources: Sequence[Path], out: Path) -> None:
    """The page of one."""
    from gridbench.bench.micro.present import write_report as write

    if len(sources) > 1:
        raise InputError(
            "the results of `gridbench micro` cannot be in one report with others",
            remedy="make a report of them alone, or compare two of them",
        )
    write(load_results(sources[0]), out)
