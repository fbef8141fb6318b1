"""The tables: the same in the terminal, in Markdown and on the page."""

from __future__ import annotations

import math
from collections.abc import Callable

from gridbench.costs.held_out import EACH
from gridbench.datagrid.crossover.answer import Answer, Pair
from gridbench.datagrid.crossover.crossing import Crossing
from gridbench.datagrid.crossover.models import LARGEST, ComputeModel, Fitted, GridModel
from gridbench.formats import NOTHING, amount, counted, percent, rounded, size
from gridbench.pages.table import Cell, Table
from gridbench.statistics.interval import Interval

NOT_COUNTED = "*"
"""Behind a time of which all repeats were disturbed."""


def crossings_table(answer: Answer) -> Table:
    """For which sizes the data grid is faster: a row for each compute grid and way to the data,
    a column for each number of readers; as measured, and below it as predicted."""
    head = ["shared data of", "or from", *(counted(n, "reader") for n in answer.readers)]
    rows: list[list[str | Cell]] = [
        [
            *_names(pair),
            *(
                _cell(pair.over_size.get(n), pair.predicted_sizes.get(n), sized)
                for n in answer.readers
            ),
        ]
        for pair in answer.pairs
    ]
    return Table(head, rows, style="crossings")


def readers_table(answer: Answer) -> Table:
    """For how many readers, a column for each size."""
    head = ["shared data of", "or from", *map(size, answer.sizes)]
    rows: list[list[str | Cell]] = [
        [
            *_names(pair),
            *(
                _cell(pair.over_readers.get(one), pair.predicted_readers.get(one), many)
                for one in answer.sizes
            ),
        ]
        for pair in answer.pairs
    ]
    return Table(head, rows, style="crossings")


def times_table(answer: Answer) -> Table:
    """The time of each size and number of readers, a column for each way to the data; with the
    smallest and the largest of the repeats."""
    times = [curve.times() for curve in answer.curves]
    counting = [
        {(case.readers, case.bytes): case.counts for case in curve.cases} for curve in answer.curves
    ]
    keys = sorted({key for one in times for key in one})
    rows: list[list[str | Cell]] = [
        [
            f"{size(key[1])} for {key[0]}",
            *(
                timing(known.get(key), counts=counts.get(key, True))
                for known, counts in zip(times, counting, strict=True)
            ),
        ]
        for key in keys
    ]
    return Table(["data, readers", *(curve.name for curve in answer.curves)], rows, style="times")


def models_table(answer: Answer) -> Table:
    """The costs that were found for each side, and how far they are off."""
    rows: list[list[str | Cell]] = []
    for curve in answer.curves:
        fitted = answer.fitted(curve)
        if fitted is not None and not curve.there:
            rows.append([curve.first.title or curve.engine, costs(fitted), *_errors(fitted)])
    head = ["", "costs", f"off by, {EACH}", f"off by, {LARGEST}"]
    return Table(head, rows, style="left")


def costs(fitted: Fitted[ComputeModel] | Fitted[GridModel]) -> str:
    """The costs in words."""
    model = fitted.model
    if isinstance(model, ComputeModel):
        parts = [
            amount(model.start, "s") if model.start else "",
            f"{amount(model.each, 's')} for each reader" if model.each else "",
            _per_byte(model.once, "once"),
            _per_byte(model.reader, "for each reader"),
        ]
        return " + ".join(part for part in parts if part) or "nothing"
    start = model.put_start + model.read_start
    parts = [
        amount(start, "s") if start else "",
        f"putting at {_rate(model.put)}",
        f"reading at {_rate(model.one)} for one reader"
        + (f", {_rate(model.all)} for all" if model.all else ""),
    ]
    return " + ".join(part for part in parts if part)


def timing(found: Interval | None, *, counts: bool = True) -> Cell:
    """A time with its range as a note."""
    if found is None:
        return Cell(NOTHING)
    text = amount(found.value, "s") + ("" if counts else NOT_COUNTED)
    if found.low >= found.high:
        return Cell(text)
    return Cell(text, f"{amount(found.low, 's')} to {amount(found.high, 's')}")


def place(found: Crossing, show: Callable[[float], str]) -> str:
    """Where the data grid is faster: `always`, `from 12 MB`."""
    return f"{found.kind} {show(found.at)}" if found.kind in {"from", "up to"} else found.kind


def sized(value: float) -> str:
    """Bytes with three digits."""
    step = 1024.0 ** math.floor(math.log(value, 1024)) if value >= 1 else 1.0
    return size(rounded(value / step) * step)


def many(value: float) -> str:
    """A number of readers: whole ones."""
    return f"{math.ceil(value):,}"


def spread(found: Crossing, show: Callable[[float], str]) -> str:
    """How far the place may be off; empty: it is not."""
    if not found.certain:
        return "not certain"
    if found.kind in {"always", "never"}:
        return ""
    low, high = show(found.low), show(found.high)
    return "" if low == high else f"{low} to {high}"


def _cell(found: Crossing | None, expected: Crossing | None, show: Callable[[float], str]) -> Cell:
    if found is None:
        return Cell(NOTHING)
    notes = [spread(found, show), f"predicted {place(expected, show)}" if expected else ""]
    return Cell(place(found, show), "; ".join(note for note in notes if note))


def _names(pair: Pair) -> list[str | Cell]:
    return [pair.compute.name, pair.grid.name]


def _errors(fitted: Fitted[ComputeModel] | Fitted[GridModel]) -> list[str]:
    found = {one.what: one for one in fitted.held_out}
    texts = []
    for what in (EACH, LARGEST):
        one = found.get(what)
        told = one and f"{percent(one.typical, 0)}, at most {percent(one.largest, 0)}"
        texts.append(told or NOTHING)
    return texts


def _per_byte(cost: float, what: str) -> str:
    """Seconds for each byte as a rate."""
    return f"data at {_rate(cost)} {what}" if cost > 0 else ""


def _rate(per_byte: float) -> str:
    return amount(1 / per_byte, "bytes/s") if per_byte > 0 else "any rate"
