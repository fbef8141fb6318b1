"""The options of `gridbench check`. What it needs is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.printing import json_option


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench check runs/2031-05-04T10-30-00",
        "gridbench check runs/first runs/second runs/third --json",
        "gridbench check runs/micro runs/sync-null",
    ),
)
@click.argument(
    "sources", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="DIR_OR_FILE..."
)
@json_option
def check(sources: tuple[Path, ...], as_json: bool) -> None:
    """Judge results by the rules of docs/rules.md, each kind by its own.

    A source is the folder of a run or scenario, of `gridbench micro`, `gridbench sync`, `gridbench
    data` or `gridbench data crossover`, or a folder above these.

    What can be recomputed from stamps is recomputed. Exit status 1 says that a rule is broken, so
    that nothing should be claimed from the result.
    """
    from gridbench.check.command import check as check_folders

    sys.exit(check_folders(sources, as_json=as_json))
