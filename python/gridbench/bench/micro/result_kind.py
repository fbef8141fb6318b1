"""Results of micro benchmarks, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.bench.micro.figures import holds_results, load_results
from gridbench.result_kind import Measure, Quantity, only

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

    write(load_results(only(sources, title)), out)


def markdown(sources: Sequence[Path]) -> str:
    """The tables of one."""
    from gridbench.bench.micro.present.markdown import markdown as made

    return made(load_results(only(sources, title)))
