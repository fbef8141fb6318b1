"""The options of `gridbench recommend`. What it needs is imported when it is called."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import click

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError
from gridbench.printing import Printing, printing_options
from gridbench.quantities import CORES


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench recommend runs/compare runs/scenario-4",
        "gridbench recommend runs/* --work 100h --price 0.04",
        "gridbench recommend lab/runs cloud/runs --work 5000x30s --out proposal",
    ),
)
@click.argument(
    "sources", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FOLDER..."
)
@click.option(
    "--work",
    metavar="TIME|NxTIME",
    help="What has to be done: the time on one core, such as 100h, or tasks and the time of each,"
    " such as 5000x30s. Without it there are no core-hours.",
)
@click.option(
    "--cores", type=CORES, metavar="N", help="Cores that may be used. [default: the most measured]"
)
@click.option("--price", type=float, metavar="X", help="Price of a core-hour, in any currency.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the page. [default: runs/recommendation-<time>]",
)
@printing_options
def recommend(
    *,
    sources: tuple[Path, ...],
    work: str | None,
    cores: int | None,
    price: float | None,
    out: Path | None,
    printing: Printing,
) -> None:
    """Write the one-page recommendation from any results.

    FOLDERs are results of run, micro, scenario, advise, sync, data or compare, of one or several
    machines. The page says which engine to use, how large tasks should be, on how many cores, what
    limits, how sure that is, and what it costs in core-hours. Several results of the same kind
    become a history. Nothing is measured: what is missing is named with the command that measures
    it.

    DIR then holds recommendation.html, recommendation.md with its pictures as SVG, and, if Chromium
    is installed, recommendation.pdf.
    """
    from gridbench.recommend.command import planned_work, run_recommend

    if price is not None and (work is None or not 0 <= price < math.inf):
        raise InputError(
            "--price is the price of a core-hour of --work",
            remedy="give a number from 0 on, and the work, such as --work 100h",
        )
    sys.exit(
        run_recommend(
            sources,
            work=None if work is None else planned_work(work, price),
            cores=cores,
            folder=out,
            printing=printing,
        )
    )
