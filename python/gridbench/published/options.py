"""The options of `gridbench published`. Imports are deferred until it runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.printing import Printing, printing_options
from gridbench.quantities import PATH, TEXT, Each
from gridbench.schema import argument, option, options_of, read_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedParameters:
    """Which tables are shown, and where."""

    tables: tuple[str, ...] = argument(Each(TEXT), metavar="[TABLE]...", default=(), multiple=True)
    """Names, or beginnings of names; none: all."""
    out: Path | None = option(
        "--out",
        PATH,
        metavar="FILE.md",
        help="Write a page in Markdown instead of printing tables.",
    )


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench published                   # all tables",
        "gridbench published 5.5.4 text        # section 5.5.4, and the text",
        "gridbench published model --json",
    ),
)
@options_of(PublishedParameters)
@printing_options
def published(*, given: dict[str, Any], printing: Printing) -> None:
    """Show the figures of the original report, recomputed.

    Figures that follow from others, such as transfer rates, lines and estimates, are recomputed
    from their inputs. TABLE is the number of a table in the report, such as 5.5.4-2, or `text`. For
    two systems the pipeline model predicts the totals, beside the report's own predictions:
    model-symphony and model-ninfg. A prefix, such as 5.5.4 or model, stands for all tables that
    begin with it.

    Exit status 1 says that a figure differs from the recomputed one for no known reason.
    """
    from gridbench.published.command import show_published

    sys.exit(show_published(read_parameters(PublishedParameters, given), printing))
