"""The options of all commands that keep results in a folder, and go on there.

One rule holds for them: what has a value is not measured again. What failed is kept with its
reason, and not tried again unless that is asked for. What other programs disturbed when it failed
is, as they may be the reason; what was cut off is not kept, and so is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from gridbench.machine.options import load_options
from gridbench.printing import printing_options

retry_failed_option = click.option(
    "--retry-failed", is_flag=True, help="Try again what has failed in an earlier call."
)


def going_on_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options, as its arguments `fresh` and `retry_failed`."""
    fresh = click.option("--fresh", is_flag=True, help="Forget the results that DIR holds.")
    return fresh(retry_failed_option(command))


def results_options(folder: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these and what else all that measure have: its arguments are `policy`, `out`,
    `printing`, `fresh` and `retry_failed`. `folder`: the one for results by default, as it is
    told."""
    out = click.option(
        "--out",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help=f"Folder for the results. [default: {folder}]",
    )
    return lambda command: load_options(out(printing_options(going_on_options(command))))
