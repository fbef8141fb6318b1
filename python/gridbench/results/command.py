"""`gridbench report`: one page of what the sources hold, or a comparison, a trace or a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError, print_error
from gridbench.formats import counted, percent
from gridbench.printing import Printing, printing_options
from gridbench.result_kind import kind_of, report_markdown, write_report
from gridbench.results.table import (
    Compared,
    compared,
    describe,
    failing,
    measures_of,
    parse_share,
    write_table,
)
from gridbench.statistics.claims import answer_record

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
    what cannot be in one report.
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
        from gridbench.pages.document import write_page
        from gridbench.results.table import document_of

        write_page(document_of(found, *sources), out)
    else:
        write_report(sources, out)
    _announce(printing, "report", out)
    printing.document(lambda: _document(out, found) | _figures(sources))
    return _status(found, tolerated)


def make_trace(sources: Sequence[Path], out: Path, printing: Printing) -> None:
    """Write the trace of a run for Perfetto. InputError as for `write_trace`."""
    from gridbench.report.trace import write_trace

    write_trace(sources, out)
    _announce(printing, "trace", f"{out}; ui.perfetto.dev shows it")
    printing.document(lambda: {"trace": out})


def make_markdown(sources: Sequence[Path], out: Path, printing: Printing) -> None:
    """Write the tables of the results as Markdown, to a file, or to standard output if that is `-`.
    InputError for what cannot stand together."""
    from gridbench.atomic_write import write_file

    tables = report_markdown(sources)
    if out == _STANDARD_OUTPUT:
        click.echo(tables, nl=False)
        return
    write_file(out, tables)
    _announce(printing, "tables", out)
    printing.document(lambda: {"tables": out})


def make_table(sources: Sequence[Path], out: Path, printing: Printing) -> None:
    """Write all measured values of the sources as one table. InputError as for `write_table`."""
    rows = write_table(sources, out)
    _announce(printing, "table", f"{out}, {counted(rows, 'row')}")
    printing.document(lambda: {"table": out, "rows": rows})


def _compare(sources: Sequence[Path], printing: Printing, *, needed: bool) -> list[Compared]:
    """Tell how the second differs from the first. Without anything in common it says nothing, or it
    is an InputError if a comparison is `needed`."""
    from gridbench.pages.terminal import print_document
    from gridbench.results.table import document_of

    try:
        first, second = map(measures_of, sources)
        found = compared(first, second)
    except InputError:
        if needed:
            raise
        return []
    print_document(printing.tables(), document_of(found, *sources))
    return found


def _announce(printing: Printing, what: str, where: object) -> None:
    """Print the paths of written files."""
    if not (printing.quiet or printing.as_json):
        click.echo(f"{what}: {where}")


def _document(page: Path | None, found: Sequence[Compared]) -> dict[str, object]:
    """What `--json` prints: the page, if one was written, and each figure that both have."""
    answer = answer_record(describe(found)) if found else {}
    return {"page": page, **answer, "compared": [one.to_dict() for one in found]}


def _figures(sources: Sequence[Path]) -> dict[str, object]:
    """All that was measured in a single source, and the figures of its runs that count."""
    if len(sources) != 1:
        return {}
    (source,) = sources
    try:
        known = measures_of(source)
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
    return {"figures": figures, "results": kind_of(sources).to_record(source)}


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
    from gridbench.pages.document import write_page
    from gridbench.scenario.document import document_of
    from gridbench.scenario.figures import results_of_runs
    from gridbench.scenario.grids import parse_scenarios

    (scenario,) = parse_scenarios([name])
    write_page(document_of(*results_of_runs(sources, scenario), runs=True), out)


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench report runs/2031-05-04T10-30-00",
        "gridbench report runs/a runs/b old/tasks.log --out compare.html",
        "gridbench report runs/before runs/now --fail-above 5%",
        "gridbench report runs/now --perfetto trace.json",
        "gridbench report runs/now --markdown tables.md",
        "gridbench report runs/now runs/sync --table values.parquet",
        "gridbench report old/*.log --scenario 4 --out delay.html",
    ),
)
@click.argument(
    "sources", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="DIR_OR_LOG..."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The page to write. [default: DIR/report.html, for a single DIR]",
)
@click.option(
    "--scenario",
    "as_scenario",
    metavar="N",
    help="Treat runs and logs as cases of a scenario, 1 to 6, and answer its question.",
)
@click.option(
    "--fail-above",
    metavar="SHARE",
    help="Exit with status 1 if the second of two results is worse by more than SHARE, such as 5%.",
)
@click.option(
    "--perfetto",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the trace of a run instead, which ui.perfetto.dev shows.",
)
@click.option(
    "--markdown",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the results as Markdown, in sentences and tables; - is standard output.",
)
@click.option(
    "--table",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write all measured values as one table instead, with their parameters: .parquet, .csv or"
    " .jsonl.",
)
@printing_options
def report(
    *,
    sources: tuple[Path, ...],
    out: Path | None,
    as_scenario: str | None,
    fail_above: str | None,
    perfetto: Path | None,
    markdown: Path | None,
    table: Path | None,
    printing: Printing,
) -> None:
    """Make a report, side by side, from run folders and task logs.

    The run of a folder may have been interrupted or killed. A log can come from any program that
    writes the benchmark's format. The folder of `gridbench micro`, or its results.json, gets a
    report of its own; so does the folder of `gridbench sync`, and that of a scenario; several
    scenarios get one report together.

    Two results of the same kind are compared in the terminal: the ratio of each figure that both
    have, and whether the second is better or worse. Such a verdict takes at least two values of
    each, whose ranges do not overlap. With --fail-above, a change for the worse is an error, so
    that a build can notice it.
    """
    from gridbench.results.command import make_markdown, make_report, make_table, make_trace

    if table is not None:
        if out or as_scenario or fail_above or markdown or perfetto:
            raise click.UsageError("--table writes a table and nothing else.")
        make_table(sources, table, printing)
        return
    if perfetto is not None:
        if out or as_scenario or fail_above or markdown:
            raise click.UsageError("--perfetto writes a trace and nothing else.")
        make_trace(sources, perfetto, printing)
        return
    if markdown is not None:
        if out or as_scenario or fail_above:
            raise click.UsageError("--markdown writes tables and nothing else.")
        if str(markdown) == "-" and printing.as_json:
            raise click.UsageError("Standard output is for JSON or for Markdown, not for both.")
        make_markdown(sources, markdown, printing)
        return
    sys.exit(
        make_report(sources, out, as_scenario=as_scenario, fail_above=fail_above, printing=printing)
    )
