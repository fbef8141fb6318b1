"""Results of micro benchmarks, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.errors import InputError
from gridbench.micro.figures import holds_results, load_results
from gridbench.result_kind import Measure, Quantity, only

title = "gridbench micro"
model = None
rules = "gridbench.micro.rules"
compares = True
holds = holds_results


def measures(source: Path) -> dict[Quantity, Measure]:
    """The undisturbed values of each engine in each figure. InputError if there are none."""
    found = {
        (entry.engine, figure.title): Measure(values, figure.unit, figure.better)
        for figure in load_results(source).figures
        for entry in figure.entries
        # Older files do not say which of the values were disturbed.
        if (values := entry.undisturbed if entry.disturbed_runs else entry.values)
    }
    if not found:
        raise InputError(
            "has no value that counts: other programs disturbed all of them, or none was measured",
            file=source,
            remedy="run `gridbench micro` again with the same --out, on a quiet machine",
        )
    return found


def write_report(sources: Sequence[Path], out: Path) -> None:
    """The page of one."""
    from gridbench.micro.present import write_report as write

    write(load_results(only(sources, title)), out)


def markdown(sources: Sequence[Path]) -> str:
    """The tables of one."""
    from gridbench.micro.present.markdown import markdown as made

    return made(load_results(only(sources, title)))
