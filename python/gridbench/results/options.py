"""The options of `gridbench report`. What it needs is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.printing import Printing, printing_options


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
    help="Write what the results tell, in sentences and tables, as Markdown instead; - is standard"
    " output.",
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
