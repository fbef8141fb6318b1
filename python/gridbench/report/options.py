"""The options of `gridbench report`. What it needs is imported when it is called."""

from __future__ import annotations

from pathlib import Path

import click

from gridbench.command_with_examples import CommandWithExamples


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench report runs/2031-05-04T10-30-00",
        "gridbench report runs/a runs/b old/tasks.log --out compare.html",
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
    help="Take the runs and logs for the cases of a scenario, 1 to 6, and answer its question.",
)
def report(sources: tuple[Path, ...], out: Path | None, as_scenario: str | None) -> None:
    """Make a report, side by side, from run folders and task logs.

    A folder can be of a run that was interrupted or killed. A log can come from any program
    that writes the benchmark's format. The folder of `gridbench micro`, or its results.json,
    has a report of its own; so has the folder of a scenario, and several of these have one
    together.
    """
    from gridbench.report.command import make_report

    make_report(sources, out, as_scenario=as_scenario)
