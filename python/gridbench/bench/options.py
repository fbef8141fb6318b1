"""The options of `gridbench bench`. What it needs is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gridbench.command_with_examples import CommandWithExamples


@click.command(
    cls=CommandWithExamples,
    short_help="Measure what only gridrpc does, beside the machine's limits.",
    examples=(
        "gridbench bench                       # all areas, in a few minutes",
        "gridbench bench modules --full --out figures.json",
    ),
)
@click.argument("areas", nargs=-1, metavar="[AREA]...")
@click.option("--full", is_flag=True, help="More runs, and all of them for what takes long.")
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Runs of each case. [default: 5, with --full 7]",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE.json", help="Keep all values."
)
def bench(*, areas: tuple[str, ...], full: bool, runs: int | None, out: Path | None) -> None:
    """Measure what only gridrpc does, beside the limits of this machine.

    The areas are grain (how large chunks of a map should be), modules (functions of compiled
    modules, also from C), large (inputs that do not fit into memory at one time) and libraries
    (joblib, SciPy, executors and what else Python's libraries meet); without any, all are measured.
    Runs alternate, each in a fresh process. Shown are medians with the smallest and largest value,
    and what is to be reached. Exit status 1 says that something could not be measured.
    `gridbench micro` compares gridrpc with other engines.
    """
    from gridbench.bench.runner import Request, run_bench

    sys.exit(run_bench(Request(areas=areas, full=full, runs=runs, out=out)))
