"""The options of `gridbench model`. What it needs is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.printing import Printing, printing_options


@click.command(
    cls=CommandWithExamples,
    short_help="Fit a model of an engine to runs, and tell how wrong it is.",
    examples=(
        "gridbench model runs/scenario-4 runs/scenario-5",
        "gridbench model runs/* --engine gridrpc-native --out model.json",
    ),
)
@click.argument(
    "folders", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FOLDER..."
)
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help="Engine to fit a model of; may be given several times. [default: all]",
)
@click.option(
    "--test/--no-test",
    default=True,
    show_default=True,
    help="Hold out runs, fit to the others, and tell the errors. Takes three more fits.",
)
@printing_options
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE.json", help="Keep the models."
)
def model(
    *,
    folders: tuple[Path, ...],
    engines: tuple[str, ...],
    test: bool,
    out: Path | None,
    printing: Printing,
) -> None:
    """Fit a model of each engine to the runs in FOLDERs.

    The model follows every task through client, processors, links and workers, all of which serve
    only so much at a time. What is fitted are the costs of each; they are told with intervals, and
    those that the runs do not determine are told as such. Held out, to see how wrong it is, are a
    random 30 % of the runs, those of the most cores, and those of the largest data.

    Exit status 1 says that there were too few runs of one of several engines.
    """
    from gridbench.model.command import Request, fit_models

    sys.exit(
        fit_models(Request(folders=folders, engines=engines, test=test, out=out, printing=printing))
    )
