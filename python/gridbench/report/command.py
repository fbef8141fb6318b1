"""`gridbench report`: one page of what the sources hold.

What only one kind of page needs is imported when it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from gridbench.bench.micro.figures import holds_results, load_results
from gridbench.errors import InputError
from gridbench.formats import percent
from gridbench.printing import Printing
from gridbench.report.compare import Compared, compared, failing, parse_share
from gridbench.scenario.results import folders_of_results


def make_report(
    sources: Sequence[Path],
    out: Path | None,
    *,
    as_scenario: str | None,
    fail_above: str | None = None,
    printing: Printing,
) -> int:
    """Write the page of run folders and task logs, of micro benchmarks, or of scenarios, and
    compare two of a kind. The exit status; 1: the second is worse by more than `fail_above`.

    Without `out` it is report.html in the only source, a folder; of two no page is written.
    `as_scenario` is the number of the scenario that runs and logs are taken for. InputError for
    what cannot stand in one report.
    """
    tolerated = None if fail_above is None else parse_share("--fail-above", fail_above)
    if tolerated is not None and (len(sources) != 2 or as_scenario is not None):
        raise InputError(
            "--fail-above compares a result with an earlier one",
            remedy="give two results, the earlier one first, without --scenario",
        )
    found: list[Compared] = []
    if len(sources) == 2 and as_scenario is None:
        found = _compare(sources, printing, needed=out is None or tolerated is not None)
    if out is None and found:
        printing.document(lambda: _document(None, found))
        return _status(found, tolerated)
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
        _report_micro(sources, out, found)
    elif any(map(folders_of_results, sources)):
        _report_scenarios(sources, out)
    else:
        _report_runs(sources, out)
    _told(printing, "report", out)
    printing.document(lambda: _document(out, found))
    return _status(found, tolerated)


def make_trace(sources: Sequence[Path], out: Path, printing: Printing) -> None:
    """Write the trace of a run for Perfetto. InputError as for `write_trace`."""
    from gridbench.report.trace import write_trace

    write_trace(sources, out)
    _told(printing, "trace", f"{out}; ui.perfetto.dev shows it")
    printing.document(lambda: {"trace": out})


def _compare(sources: Sequence[Path], printing: Printing, *, needed: bool) -> list[Compared]:
    """Tell how the second differs from the first. Without anything in common nothing is told, or it
    is an InputError if a comparison is `needed`."""
    from gridbench.report.compare_shown import print_compared
    from gridbench.report.measures import measures

    try:
        first, second = map(measures, sources)
        found = compared(first, second)
    except InputError:
        if needed:
            raise
        return []
    print_compared(printing.tables(), found)
    return found


def _told(printing: Printing, what: str, where: object) -> None:
    """Say what was written, to people."""
    if not (printing.quiet or printing.as_json):
        click.echo(f"{what}: {where}")


def _document(page: Path | None, found: Sequence[Compared]) -> dict[str, object]:
    """What `--json` prints: the page, if one was written, and each figure that both have."""
    return {"page": page, "compared": [one.to_dict() for one in found]}


def _status(found: Sequence[Compared], tolerated: float | None) -> int:
    """Exit status 1, and why, if the second is worse by more than is tolerated."""
    worse = [] if tolerated is None else failing(found, tolerated)
    for one in worse:
        click.echo(
            f"gridbench: {one.what}, {one.engine}: {percent(one.loss)} worse, and"
            f" {percent(tolerated or 0.0)} are tolerated",
            err=True,
        )
    return int(bool(worse))


def _report_as_scenario(sources: Sequence[Path], name: str, out: Path) -> None:
    from gridbench.pages.files import write_page
    from gridbench.scenario.grids import parse_scenarios
    from gridbench.scenario.logs import results_of_runs
    from gridbench.scenario.present.page import render

    (scenario,) = parse_scenarios([name])
    write_page(out, render(*results_of_runs(sources, scenario)))


def _report_micro(sources: Sequence[Path], out: Path, found: Sequence[Compared]) -> None:
    if found:
        from gridbench.pages.files import write_page
        from gridbench.report.compare_shown import render_compared

        write_page(out, render_compared(found, *sources))
        return
    if len(sources) > 1:
        raise InputError(
            "the results of `gridbench micro` cannot stand in one report with others",
            remedy="make a report of them alone, or compare two of them",
        )
    from gridbench.bench.micro.present import write_report

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
