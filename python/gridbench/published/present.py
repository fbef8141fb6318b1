"""The published tables as text in cells, and as a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gridbench.formats import fixed, percent, round_amount
from gridbench.model.profiles import SourcedFigure
from gridbench.published.figures import (
    PredictedFigure,
    PredictedTable,
    RecomputedFigure,
    RecomputedTable,
    Verdict,
)

_MORE_DIGITS = 1
"""Ours is shown with so many digits more than theirs, to show how it rounds."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A table's head and rows. The first `texts` columns hold words, the others numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int


def figure_cells(table: RecomputedTable) -> Cells:
    """Theirs, ours, difference and verdict."""
    head = ("row", "figure", "theirs", "ours", "difference", "agrees")
    return Cells(head, tuple(_figure(figure) for figure in table.figures), 2)


def _figure(figure: RecomputedFigure) -> tuple[str, ...]:
    digits = figure.theirs.digits + _MORE_DIGITS
    unit = f", {figure.unit}" if figure.unit else ""
    return (
        figure.row,
        figure.quantity + unit,
        figure.theirs.text,
        fixed(figure.ours.value, digits, grouped=False),
        _signed(figure.difference, digits),
        VERDICTS[figure.verdict],
    )


def _signed(value: float, digits: int) -> str:
    return fixed(value, digits, signed=True, grouped=False)


VERDICTS: dict[Verdict, str] = {
    "agrees": "yes",
    "agrees within the inputs": "within inputs",
    "exception": "exception",
    "differs": "no",
}


def prediction_cells(table: PredictedTable) -> Cells:
    """Measured, theirs if there are any, ours, with errors."""
    with_theirs = any(one.theirs is not None for one in table.predictions)
    head = ("case", "measured, s", "report, s", "its error", "ours, s", "our error")
    rows = tuple((*_measured(one), *_theirs(one), *_ours(one)) for one in table.predictions)
    if with_theirs:
        return Cells(head, rows, 1)
    return Cells(head[:2] + head[4:], tuple(row[:2] + row[4:] for row in rows), 1)


def _measured(one: PredictedFigure) -> tuple[str, str]:
    return one.row, one.measured.text


def _theirs(one: PredictedFigure) -> tuple[str, str]:
    if one.theirs is None:
        return "-", "-"
    return fixed(one.theirs, 3, grouped=False), _percent(one.their_error)


def _ours(one: PredictedFigure) -> tuple[str, str]:
    return fixed(one.ours, 3, grouped=False), _percent(one.error)


def _percent(share: float) -> str:
    return f"{_signed(100 * share, 2)} %"


def parameter_cells(table: PredictedTable) -> Cells:
    """What the model was given."""
    rows = tuple((given.name, given.source, _amount(given)) for given in table.parameters)
    return Cells(("parameter", "from", "value"), rows, 2)


def _amount(given: SourcedFigure) -> str:
    return round_amount(given.value, given.unit)


def notes(table: RecomputedTable | PredictedTable) -> list[str]:
    """What has to be known beside the table: exceptions, mean errors, other choices."""
    if isinstance(table, RecomputedTable):
        return [
            f"exception: {figure.row}, {figure.quantity}: {figure.exception}"
            for figure in table.figures
            if figure.verdict == "exception"
        ]
    if not table.comparable:
        return []
    ours = f"mean absolute error: ours {percent(table.mean_error, 2)}"
    if table.compared:
        ours += f", the report's {percent(table.their_mean_error, 2)}"
    others = [f"with {one.what}: {percent(one.mean_error, 2)}" for one in table.variants]
    return [ours, *others]


def summary(tables: Sequence[RecomputedTable | PredictedTable]) -> str:
    """How many figures agree; empty if none of the tables has such."""
    verdicts = [
        figure.verdict
        for table in tables
        if isinstance(table, RecomputedTable)
        for figure in table.figures
    ]
    if not verdicts:
        return ""
    return (
        f"{len(verdicts)} figures recomputed: {verdicts.count('agrees')} agree to their "
        f"rounding, {verdicts.count('agrees within the inputs')} within that of the inputs, "
        f"{verdicts.count('exception')} do not follow from the inputs (exceptions), "
        f"{verdicts.count('differs')} differ"
    )


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


def markdown(tables: Sequence[RecomputedTable | PredictedTable]) -> str:
    """The page."""
    return "\n".join(_lines(tables)).rstrip() + "\n"


def _lines(tables: Sequence[RecomputedTable | PredictedTable]) -> Iterator[str]:
    yield from ("# Published figures, recomputed", "", *_INTRODUCTION, "")
    if told := summary(tables):
        yield from (f"{told}.", "")
    for table in tables:
        if isinstance(table, PredictedTable) and table.compared:
            yield from (
                f"{table.name}, {len(table.predictions)} totals of scenario 6: {notes(table)[0]}.",
                "",
            )
    for table in tables:
        yield from (f"## {table.name}: {table.title}", "", table.how, "")
        if isinstance(table, PredictedTable):
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
