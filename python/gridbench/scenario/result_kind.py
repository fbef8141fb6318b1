"""Results of scenarios, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.errors import InputError
from gridbench.result_kind import Measure, Quantity
from gridbench.scenario.results import folders_of_results, read_results

title = "gridbench scenario"
model = "gridbench.model.model_kind"
rules = "gridbench.report.rules"
compares = False


def holds(source: Path) -> bool:
    """Whether there are results of one scenario, or of several."""
    return bool(folders_of_results(source))


def measures(source: Path) -> dict[Quantity, Measure]:
    """Total times of the cases."""
    found: dict[Quantity, list[float]] = {}
    for folder in folders_of_results(source):
        _, results = read_results(folder)
        for one in results:
            if one.status == "done" and one.total_s is not None:
                what = f"scenario {one.scenario}, {one.case}, {one.start}"
                found.setdefault((one.engine, what), []).append(one.total_s)
    return {quantity: Measure(tuple(values)) for quantity, values in found.items()}


def write_report(sources: Sequence[Path], out: Path) -> None:
    """The page of one, or that of all together."""
    from gridbench.scenario.present import write_overall
    from gridbench.scenario.present import write_report as write

    folders = _folders(sources)
    if folders == list(sources) and len(folders) == 1:
        write(folders[0], out)
    else:
        write_overall(folders, out)


def markdown(sources: Sequence[Path]) -> str:
    """The tables of one, or of all together."""
    from gridbench.scenario.present.markdown import markdown as made

    return made(_folders(sources))


def _folders(sources: Sequence[Path]) -> list[Path]:
    """Those of single scenarios. InputError if a source holds none."""
    folders = []
    for source in sources:
        found = folders_of_results(source)
        if not found:
            raise InputError(
                "holds no results of a scenario, and cannot be in one report with others",
                file=source,
                remedy="make a report of scenarios alone",
            )
        folders += found
    return folders
