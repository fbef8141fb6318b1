"""`gridbench published`: the published figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from gridbench.atomic_write import write_file
from gridbench.printing import print_json
from gridbench.published.catalogue import chosen
from gridbench.published.cells import summary
from gridbench.published.figures import Predicted, Reproduced
from gridbench.published.markdown import markdown
from gridbench.published.terminal import print_table
from gridbench.terminal import new_console


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedRequest:
    """What the user asked for."""

    tables: Sequence[str] = ()
    """Names, or beginnings of names; none: all."""
    as_json: bool = False
    out: Path | None = None
    """A page to write in addition."""


def show_published(request: PublishedRequest) -> int:
    """Print the tables. Returns the exit status: 1 if a figure differs that should not."""
    tables = chosen(request.tables)
    if request.out:
        write_file(request.out, markdown(tables))
        if not request.as_json:
            click.echo(f"page: {request.out}")
    if request.as_json:
        print_json({"tables": [table.to_dict() for table in tables]})
    elif not request.out:
        console = new_console()
        for table in tables:
            print_table(console, table)
        if told := summary(tables):
            console.print(told)
    return 1 if any(map(_differs, tables)) else 0


def _differs(table: Reproduced | Predicted) -> bool:
    return isinstance(table, Reproduced) and any(
        figure.verdict == "differs" for figure in table.figures
    )
