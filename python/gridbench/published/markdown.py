"""The tables as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gridbench.published.cells import (
    Cells,
    figure_cells,
    notes,
    parameter_cells,
    prediction_cells,
    summary,
)
from gridbench.published.figures import Predicted, Reproduced

_INTRODUCTION = (
    "The compute-grid benchmark comes from a report on grids in finance, and slides about it. This "
    "page shows their figures beside recomputed ones: figures that follow from others are "
    "recomputed from their inputs, and gridbench's model predicts the totals of two systems. "
    "`gridbench published` shows the same in the terminal; `gridbench published --out "
    "docs/published.md` wrote this page.",
    "",
    "*Agrees* says whether the recomputed figure, rounded as the printed one, is the same: *yes*; "
    "whether it would be for inputs that round to the printed ones: *within inputs*; or that it "
    "cannot be, for a reason given below: *exception*. 1 MB counts as 8 Mbit everywhere. In some "
    "tables the sources take a KB for 1/1024 MB, in others for 1/1000 MB; each table says which.",
)


def markdown(tables: Sequence[Reproduced | Predicted]) -> str:
    """The page."""
    return "\n".join(_lines(tables)).rstrip() + "\n"


def _lines(tables: Sequence[Reproduced | Predicted]) -> Iterator[str]:
    yield from ("# Published figures, recomputed", "", *_INTRODUCTION, "")
    if told := summary(tables):
        yield from (f"{told}.", "")
    for table in tables:
        if isinstance(table, Predicted) and table.compared:
            yield from (
                f"{table.name}, {len(table.predictions)} totals of scenario 6: {notes(table)[0]}.",
                "",
            )
    for table in tables:
        yield from (f"## {table.name}: {table.title}", "", table.how, "")
        if isinstance(table, Predicted):
            yield from _table(prediction_cells(table))
            if table.parameters:
                yield from _table(parameter_cells(table))
        else:
            yield from _table(figure_cells(table))
        told_below = notes(table)
        yield from (f"- {note}" for note in told_below)
        if told_below:
            yield ""


def _table(cells: Cells) -> Iterator[str]:
    yield _row(cells.head)
    yield _row(["---" if number < cells.texts else "---:" for number in range(len(cells.head))])
    yield from map(_row, cells.rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
