"""`gridbench report`: one page of what the sources hold.

What only one kind of page needs is imported when it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from gridbench.errors import InputError
from gridbench.micro.figures import holds_results, load_results
from gridbench.scenario.results import folders_of_results


def make_report(sources: Sequence[Path], out: Path | None, *, as_scenario: str | None) -> None:
    """Write the page of run folders and task logs, of micro benchmarks, or of scenarios.

    Without `out` it is report.html in the only source, a folder. `as_scenario` is the number of the
    scenario that runs and logs are taken for. InputError for what cannot stand in one report.
    """
    if out is None:
        if len(sources) != 1 or not sources[0].is_dir():
            raise InputError(
                "several sources or a log need the name of the page to write",
                remedy="add --out FILE",
            )
        out = sources[0] / "report.html"
    if as_scenario is not None:
        _report_as_scenario(sources, as_scenario, out)
    elif any(map(holds_results, sources)):
        _report_micro(sources, out)
    elif any(map(folders_of_results, sources)):
        _report_scenarios(sources, out)
    else:
        _report_runs(sources, out)
    click.echo(f"report: {out}")


def _report_as_scenario(sources: Sequence[Path], name: str, out: Path) -> None:
    from gridbench.pages.files import write_page
    from gridbench.scenario.grids import parse_scenarios
    from gridbench.scenario.logs import results_of_runs
    from gridbench.scenario.present.page import render

    (scenario,) = parse_scenarios([name])
    write_page(out, render(*results_of_runs(sources, scenario)))


def _report_micro(sources: Sequence[Path], out: Path) -> None:
    if len(sources) > 1:
        raise InputError(
            "the results of `gridbench micro` cannot stand in one report with others",
            remedy="make a report of them alone",
        )
    from gridbench.micro.present import write_report

    write_report(load_results(sources[0]), out)


def _report_scenarios(sources: Sequence[Path], out: Path) -> None:
    from gridbench.scenario.present import write_overall, write_report

    folders = []
    for source in sources:
        found = folders_of_results(source)
        if not found:
            raise InputError(
                "holds no results of a scenario, and they cannot stand in one report with others",
                file=source,
                remedy="make a report of scenarios alone",
            )
        folders += found
    if folders == list(sources) and len(folders) == 1:
        write_report(folders[0], out)
    else:
        write_overall(folders, out)


def _report_runs(sources: Sequence[Path], out: Path) -> None:
    from gridbench.report.build import write_report
    from gridbench.run.folders import run_folders

    places: list[Path] = []
    for source in sources:
        # The folder of a run on several engines stands for all of them.
        places += (run_folders(source) if source.is_dir() else []) or [source]
    try:
        write_report(places, out)
    except OSError as error:
        raise InputError(
            f"cannot write the report: {error.strerror or error}",
            file=out,
            remedy="choose another --out, in a folder that can be written",
        ) from error
