"""The tables of a crossover."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from gridbench.datagrid.crossover.answer import CrossoverAnswer, Pair, SharingCurve
from gridbench.datagrid.crossover.models import (
    LARGEST,
    ComputeModel,
    FittedSide,
    GridModel,
)
from gridbench.formats import NOTHING, amount, counted, percent, rounded, size
from gridbench.model.held_out import EACH
from gridbench.pages.table import Cell, Column, Table, cell_of, table_of
from gridbench.statistics.crossing import Crossing

FittedCosts = FittedSide[ComputeModel] | FittedSide[GridModel]
NOT_COUNTED = "*"
"""Behind a time of which all repeats were disturbed."""


def crossings_table(answer: CrossoverAnswer) -> Table:
    """The sizes for which the data grid is faster: a row for each compute grid and way to the data,
    a column for each number of readers; as measured, and below it as predicted."""

    def crossing(n: int) -> Callable[[Pair], Cell]:
        return lambda pair: _cell(pair.over_size.get(n), pair.predicted_sizes.get(n), sized)

    columns = [Column(counted(n, "reader"), crossing(n)) for n in answer.readers]
    return table_of([*_PAIR, *columns], answer.pairs, style="crossings")


def readers_table(answer: CrossoverAnswer) -> Table:
    """The same as numbers of readers, with a column for each size."""

    def crossing(n: int) -> Callable[[Pair], Cell]:
        return lambda pair: _cell(pair.over_readers.get(n), pair.predicted_readers.get(n), many)

    columns = [Column(size(n), crossing(n)) for n in answer.sizes]
    return table_of([*_PAIR, *columns], answer.pairs, style="crossings")


_PAIR = (
    Column[Pair]("shared data of", lambda pair: pair.compute.name, words=True),
    Column[Pair]("or from", lambda pair: pair.grid.name, words=True),
)


def times_table(answer: CrossoverAnswer) -> Table:
    """The time of each size and number of readers, a column for each way to the data; with the
    smallest and the largest of the repeats."""
    keys = sorted({key for curve in answer.curves for key in curve.times()})
    columns = [Column(curve.name, _timing(curve)) for curve in answer.curves]
    name = Column[tuple[int, int]]("data, readers", lambda key: f"{size(key[1])} for {key[0]}")
    return table_of([name, *columns], keys, style="times")


def _timing(curve: SharingCurve) -> Callable[[tuple[int, int]], Cell]:
    times = curve.times()
    uncounted = {(case.readers, case.bytes) for case in curve.cases if not case.counts}

    def timing(key: tuple[int, int]) -> Cell:
        cell = cell_of(times.get(key), "s")
        return replace(cell, text=f"{cell.text}{NOT_COUNTED}") if key in uncounted else cell

    return timing


def models_table(answer: CrossoverAnswer) -> Table:
    """The fitted costs of each side, and their errors."""
    fitted = [
        (curve.first.title or curve.engine, model)
        for curve in answer.curves
        if not curve.there and (model := answer.fitted(curve))
    ]
    columns: list[Column[tuple[str, FittedCosts]]] = [
        Column("", lambda row: row[0]),
        Column("costs", lambda row: costs(row[1]), words=True),
        Column(f"error, {EACH}", lambda row: _error(row[1], EACH)),
        Column(f"error, {LARGEST}", lambda row: _error(row[1], LARGEST)),
    ]
    return table_of(columns, fitted, style="left")


def costs(fitted: FittedCosts) -> str:
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


def sized(value: float) -> str:
    """Bytes with three digits."""
    step = 1024.0 ** math.floor(math.log(value, 1024)) if value >= 1 else 1.0
    return size(rounded(value / step) * step)


def many(value: float) -> str:
    """A number of readers: whole ones."""
    return f"{math.ceil(value):,}"


def _cell(found: Crossing | None, expected: Crossing | None, show: Callable[[float], str]) -> Cell:
    if found is None:
        return Cell(NOTHING)
    notes = [found.spread(show), f"predicted {expected.told(show)}" if expected else ""]
    return Cell(found.told(show), "; ".join(note for note in notes if note))


def _error(fitted: FittedCosts, what: str) -> str | None:
    found = {one.what: one for one in fitted.held_out}.get(what)
    return f"{percent(found.typical, 0)}, at most {percent(found.largest, 0)}" if found else None


def _per_byte(cost: float, what: str) -> str:
    """Seconds for each byte as a rate."""
    return f"data at {_rate(cost)} {what}" if cost > 0 else ""


def _rate(per_byte: float) -> str:
    return amount(1 / per_byte, "bytes/s") if per_byte > 0 else "any rate"
