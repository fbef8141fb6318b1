"""The tables as text in cells, for the terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gridbench.formats import fixed, percent, round_amount
from gridbench.model.profiles import Given
from gridbench.published.figures import Figure, Predicted, Prediction, Reproduced, Verdict

_MORE_DIGITS = 1
"""Ours is shown with so many digits more than theirs, to show how it rounds."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A table's head and rows. The first `texts` columns hold words, the others numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int


def figure_cells(table: Reproduced) -> Cells:
    """Theirs, ours, difference and verdict."""
    head = ("row", "figure", "theirs", "ours", "difference", "agrees")
    return Cells(head, tuple(_figure(figure) for figure in table.figures), 2)


def _figure(figure: Figure) -> tuple[str, ...]:
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


def prediction_cells(table: Predicted) -> Cells:
    """Measured, theirs if there are any, ours, with errors."""
    with_theirs = any(one.theirs is not None for one in table.predictions)
    head = ("case", "measured, s", "report, s", "its error", "ours, s", "our error")
    rows = tuple((*_measured(one), *_theirs(one), *_ours(one)) for one in table.predictions)
    if with_theirs:
        return Cells(head, rows, 1)
    return Cells(head[:2] + head[4:], tuple(row[:2] + row[4:] for row in rows), 1)


def _measured(one: Prediction) -> tuple[str, str]:
    return one.row, one.measured.text


def _theirs(one: Prediction) -> tuple[str, str]:
    if one.theirs is None:
        return "-", "-"
    return fixed(one.theirs, 3, grouped=False), _percent(one.their_error)


def _ours(one: Prediction) -> tuple[str, str]:
    return fixed(one.ours, 3, grouped=False), _percent(one.error)


def _percent(share: float) -> str:
    return f"{_signed(100 * share, 2)} %"


def parameter_cells(table: Predicted) -> Cells:
    """What the model was given."""
    rows = tuple((given.name, given.source, _amount(given)) for given in table.parameters)
    return Cells(("parameter", "from", "value"), rows, 2)


def _amount(given: Given) -> str:
    return round_amount(given.value, given.unit)


def notes(table: Reproduced | Predicted) -> list[str]:
    """What has to be known beside the table: exceptions, mean errors, other choices."""
    if isinstance(table, Reproduced):
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


def summary(tables: Sequence[Reproduced | Predicted]) -> str:
    """How many figures agree; empty if none of the tables has such."""
    verdicts = [
        figure.verdict
        for table in tables
        if isinstance(table, Reproduced)
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
