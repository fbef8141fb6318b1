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
    "page sets its figures beside ours: those that follow from others are worked out again from "
    "their inputs, and the totals of two systems are predicted by the model of gridbench. "
    "`gridbench published` shows the same in the terminal; this page was written by "
    "`gridbench published --out docs/published.md`.",
    "",
    "*Agrees* says whether ours, rounded as theirs, is the same: *yes*; or would be, for inputs "
    "that are rounded to those printed: *within inputs*; or cannot be, for a reason given below: "
    "*exception*. 1 MB counts as 8 Mbit everywhere. The sources take a KB for 1/1024 MB in some "
    "tables and for 1/1000 MB in others; each table says which.",
)


def markdown(tables: Sequence[Reproduced | Predicted]) -> str:
    """The page."""
    return "\n".join(_lines(tables)).rstrip() + "\n"


def _lines(tables: Sequence[Reproduced | Predicted]) -> Iterator[str]:
    yield from ("# Published figures, worked out again", "", *_INTRODUCTION, "")
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
