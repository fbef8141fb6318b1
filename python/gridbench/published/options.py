"""The options of `gridbench published`. What it needs is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gridbench.command_line import CommandWithExamples
from gridbench.printing import json_option


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench published                   # all tables",
        "gridbench published 5.5.4 text        # section 5.5.4, and the text",
        "gridbench published model --json",
    ),
)
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@json_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE.md",
    help="Write a page in Markdown instead of printing tables.",
)
def published(*, tables: tuple[str, ...], as_json: bool, out: Path | None) -> None:
    """Show the figures of the original report, recomputed.

    Figures that follow from others, such as transfer rates, lines and estimates, are recomputed
    from their inputs. TABLE is the number of a table in the report, such as 5.5.4-2, or `text`. For
    two systems the pipeline model predicts the totals, beside the report's own predictions:
    model-symphony and model-ninfg. A prefix, such as 5.5.4 or model, stands for all tables that
    begin with it.

    Exit status 1 says that a figure differs from the recomputed one for no known reason.
    """
    from gridbench.published.command import PublishedRequest, show_published

    sys.exit(show_published(PublishedRequest(tables=tables, as_json=as_json, out=out)))
