"""`gridbench report`: one page of what the sources hold.

What only one kind of page needs is imported when it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from gridbench.errors import InputError, print_error
from gridbench.formats import counted, percent
from gridbench.printing import Printing
from gridbench.provisional import answer_record
from gridbench.results.compare import Compared, compared, failing, parse_share, told
from gridbench.results.kinds import kind_of
from gridbench.results.table import measures_of, write_table

_STANDARD_OUTPUT = Path("-")


def make_report(
    sources: Sequence[Path],
    out: Path | None,
    *,
    as_scenario: str | None,
    fail_above: str | None = None,
    printing: Printing,
) -> int:
    """Write the page of run folders and task logs, of micro benchmarks, of synchronised rounds, or
    of scenarios, and compare two of a kind. The exit status; 1: the second is worse by more than
    `fail_above`.

    Without `out` it is report.html in the only source, a folder; of two no page is written.
    `as_scenario` is the number of the scenario that runs and logs are taken for. InputError for
    what cannot stand in one report.
    """
    for source in sources:
        if not source.exists():
            raise InputError(
                "does not exist", file=source, remedy="give folders of results, or task logs"
            )
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
    elif found and kind_of(sources).compares:
        _report_compared(found, sources, out)
    else:
        kind_of(sources).write_report(sources, out)
    _told(printing, "report", out)
    printing.document(lambda: _document(out, found) | _figures(sources))
    return _status(found, tolerated)


def make_trace(sources: Sequence[Path], out: Path, printing: Printing) -> None:
    """Write the trace of a run for Perfetto. InputError as for `write_trace`."""
    from gridbench.report.trace import write_trace

    write_trace(sources, out)
    _told(printing, "trace", f"{out}; ui.perfetto.dev shows it")
    printing.document(lambda: {"trace": out})


def make_markdown(sources: Sequence[Path], out: Path, printing: Printing) -> None:
    """Write the tables of the results as Markdown, to a file, or to standard output if that is `-`.
    InputError for what cannot stand together."""
    from gridbench.atomic_write import write_file

    tables = kind_of(sources).markdown(sources)
    if out == _STANDARD_OUTPUT:
        click.echo(tables, nl=False)
        return
    write_file(out, tables)
    _told(printing, "tables", out)
    printing.document(lambda: {"tables": out})


def make_table(sources: Sequence[Path], out: Path, printing: Printing) -> None:
    """Write all measured values of the sources as one table. InputError as for `write_table`."""
    rows = write_table(sources, out)
    _told(printing, "table", f"{out}, {counted(rows, 'row')}")
    printing.document(lambda: {"table": out, "rows": rows})


def _compare(sources: Sequence[Path], printing: Printing, *, needed: bool) -> list[Compared]:
    """Tell how the second differs from the first. Without anything in common nothing is told, or it
    is an InputError if a comparison is `needed`."""
    from gridbench.results.compare_shown import print_compared

    try:
        first, second = map(measures_of, sources)
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
    answer = answer_record(told(found)) if found else {}
    return {"page": page, **answer, "compared": [one.to_dict() for one in found]}


def _figures(sources: Sequence[Path]) -> dict[str, object]:
    """The figures of a single source, of all its runs that count."""
    if len(sources) != 1:
        return {}
    try:
        known = measures_of(sources[0])
    except InputError:  # nothing counts
        known = {}
    figures = [
        {
            "engine": engine,
            "what": what,
            "unit": one.unit,
            "better": one.better,
            "values": list(one.values),
        }
        for (engine, what), one in known.items()
    ]
    return {"figures": figures}


def _status(found: Sequence[Compared], tolerated: float | None) -> int:
    """Exit status 1, and why, if the second is worse by more than is tolerated."""
    worse = [] if tolerated is None else failing(found, tolerated)
    for one in worse:
        print_error(
            f"{one.what}, {one.engine}: {percent(one.loss)} worse, and"
            f" {percent(tolerated or 0.0)} is tolerated"
        )
    return int(bool(worse))


def _report_as_scenario(sources: Sequence[Path], name: str, out: Path) -> None:
    from gridbench.atomic_write import write_file
    from gridbench.scenario.grids import parse_scenarios
    from gridbench.scenario.logs import results_of_runs
    from gridbench.scenario.present.page import render

    (scenario,) = parse_scenarios([name])
    write_file(out, render(*results_of_runs(sources, scenario)))


def _report_compared(found: Sequence[Compared], sources: Sequence[Path], out: Path) -> None:
    from gridbench.atomic_write import write_file
    from gridbench.results.compare_shown import render_compared

    write_file(out, render_compared(found, *sources))
