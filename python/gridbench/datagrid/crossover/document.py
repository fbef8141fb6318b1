"""The crossover as a document for people, and as JSON for programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from gridbench.datagrid.crossover.answer import CrossoverAnswer, Pair, SharingCurve, answer_of
from gridbench.datagrid.crossover.models import (
    LARGEST,
    ComputeModel,
    FittedSide,
    GridModel,
)
from gridbench.datagrid.crossover.plots import crossings, over_readers, over_size
from gridbench.datagrid.crossover.record import SharingRecord
from gridbench.formats import NOTHING, amount, counted, percent, rounded, size
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed, disturbed_count, sentence
from gridbench.model.held_out import EACH, HeldOutErrors
from gridbench.pages.document import (
    EVERYWHERE,
    Block,
    ChartChoice,
    Document,
    Paragraph,
    Section,
    TableBlock,
    definitions,
)
from gridbench.pages.document import subheading as line_of
from gridbench.pages.table import Cell, Column, Table, cell_of, table_of
from gridbench.statistics.claims import busy_in, marked
from gridbench.statistics.crossing import Crossing

_TERMS = definitions(
    """
    reader = A task that needs all of the data: on a worker of the compute grid, or on a client of
        the data grid.
    through the compute grid = From the moment the program hands over the data until the last task
        has it: it has then read a byte of each page. The workers are running already. This is a run
        of the compute-grid benchmark with this amount of shared data and one task for each worker.
    put and read = From the moment the program begins to put the data into the data grid until the
        last reader has read all of it, object by object. This is a case of the data-grid benchmark
        whose tasks only read shared objects. Members and clients are running already. Clients warm
        up between putting and reading; that time does not count.
    there already = The same without putting: as for data that was put in long ago, or is used
        again.
    from, up to = The data grid is faster at all sizes from this one, or up to it. Between two
        measured sizes, the ratio of both times is interpolated on a logarithmic scale.
    always, never = At all measured sizes; at none, or at least not at the largest.
    """
)


def document_of(header: Header, found: Sequence[SharingRecord]) -> Document:
    """The answer, the times over size and readers, and the models."""
    answer = answer_of(found)
    uncounted = not all(case.counts for curve in answer.curves for case in curve.cases)
    sizes = [
        (counted(n, "reader"), one.chart())
        for one, n in zip(over_size(answer), answer.readers, strict=True)
        if one.drawn
    ]
    readers = [
        (size(n), one.chart())
        for one, n in zip(over_readers(answer), answer.sizes, strict=True)
        if one.drawn
    ]
    over = crossings(answer)
    return Document(
        kind="gridbench data crossover",
        title="gridbench data crossover: shared data or a data grid",
        heading="Shared data through the compute grid, or from a data grid?",
        subheading=subheading(header, answer),
        sentences=[*headline(answer, found), *examples(answer)],
        notices=notices(answer, found),
        summary=[
            *([ChartChoice("Readers", sizes, len(sizes) - 1)] if sizes else []),
            TableBlock(
                "The sizes at which the data grid is faster",
                crossings_table(answer),
                "Below each figure: its range by the spread of the repeats, and what the models of"
                " both sides predict.",
                media=EVERYWHERE,
            ),
        ],
        sections=[
            Section("size", "Time over the size of the data", _size_blocks(answer, uncounted)),
            Section(
                "readers",
                "Time over the number of readers",
                [
                    Paragraph(
                        "The same times for one size. A data grid serves all readers from several"
                        " members. A compute grid that sends the data to each reader takes longer"
                        " the more readers there are."
                    ),
                    *([ChartChoice("Size", readers, len(readers) - 1)] if readers else []),
                    TableBlock(
                        "The numbers of readers for which the data grid is faster",
                        readers_table(answer),
                    ),
                    *([over.chart()] if over.drawn else []),
                ],
            ),
            Section("predicted", "Predictions and their models", _model_blocks(answer)),
            Section(
                "method",
                "What is compared",
                [
                    Paragraph(
                        "A program holds some data, and several tasks need all of it, each on a"
                        " core of its own. The tasks have no other input, no output, and nothing to"
                        " compute."
                    ),
                    _TERMS,
                    Paragraph("For sizes, 1 MB is 1,024 KB; for rates, 1 MB is 1,000 KB."),
                ],
            ),
        ],
        header=header,
    )


def _size_blocks(answer: CrossoverAnswer, uncounted: bool) -> list[Block]:
    hollow = " Hollow marks do not count." if uncounted else ""
    star = f"{NOT_COUNTED} All repeats of this measurement were disturbed."
    return [
        Paragraph(
            "The times above, until the last reader has all of the data. Marks are medians, with"
            " bars from the fastest to the slowest repeat; dashed lines are predictions of the"
            f" models.{hollow}"
        ),
        TableBlock(
            "Until the last reader has the data",
            times_table(answer),
            folded=True,
            notes_from=160,
            media=EVERYWHERE,
        ),
        *([Paragraph(star)] if uncounted else []),
    ]


def _model_blocks(answer: CrossoverAnswer) -> list[Block]:
    made = models_table(answer)
    if not made.rows:
        return [Paragraph("Too few sizes and numbers of readers were measured for a model.")]
    return [
        Paragraph(
            "Each side has a few costs that are fitted to its times. Through the compute grid, n"
            " readers of S bytes cost a constant, a part for each reader, a part for each byte that"
            " is handed over once, and a part for each byte of each reader. From the data grid they"
            " cost putting S bytes, and reading: one reader gets at most its own rate, and all"
            " together at most the rate of the grid. The errors are those of cases that a model was"
            " not fitted to: each case with all others known, and the largest size with only"
            " smaller ones known; the median, and the worst."
        ),
        TableBlock("Costs of both sides", made),
    ]


def answer_values(answer: CrossoverAnswer, found: Sequence[SharingRecord]) -> dict[str, Any]:
    """Crossings in bytes and readers, and the models; null stands for never, and for no limit."""
    return {
        "sentences": headline(answer, found),
        "crossings": [_pair(one) for one in answer.pairs],
        "models": [
            {"side": side, "engine": name} | _model(one)
            for side, fitted in (("compute grid", answer.compute), ("data grid", answer.grids))
            for name, one in fitted.items()
        ],
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "compute_grid": pair.compute.engine,
        "data_grid": pair.grid.engine,
        "there_already": pair.grid.there,
        "bytes_by_readers": {str(n): _crossing(one) for n, one in pair.over_size.items()},
        "readers_by_bytes": {str(n): _crossing(one) for n, one in pair.over_readers.items()},
        "predicted_bytes_by_readers": {
            str(n): _crossing(one) for n, one in pair.predicted_sizes.items()
        },
        "predicted_readers_by_bytes": {
            str(n): _crossing(one) for n, one in pair.predicted_readers.items()
        },
    }


def _crossing(one: Crossing) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "at": _finite(one.at),
        "low": _finite(one.low),
        "high": _finite(one.high),
        "several": one.several,
    }


def _model(fitted: FittedSide[Any]) -> dict[str, Any]:
    return {
        **{key: _finite(value) for key, value in asdict(fitted.model).items()},
        "held_out": [_held_out(one) for one in fitted.held_out],
    }


def _held_out(one: HeldOutErrors) -> dict[str, Any]:
    return {"what": one.what, "typical": one.typical, "largest": one.largest}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# ---- Conclusions

_MOST = 5
"""Of measurements that were not made, told one by one."""


def headline(answer: CrossoverAnswer, found: Sequence[SharingRecord]) -> list[str]:
    """The outcome, the most important first: for each compute grid and data grid, the sizes from
    which on the data grid is faster. A provisional answer if all of `found` was disturbed."""
    if not answer.curves:
        return ["Nothing was measured yet."]
    if not answer.pairs:
        return ["There are times of one side alone, so there is nothing to compare them with."]
    reported = [_sentence(pair) for pair in answer.pairs]
    done = [one for one in found if one.status == "done"]
    count = sum(map(disturbed, done))
    return (
        marked(reported, busy_in(count, len(done), "measurement"))
        if count and count == len(done)
        else reported
    )


def examples(answer: CrossoverAnswer) -> list[str]:
    """The times behind it, for the most readers and the largest size of all that were measured."""
    if not answer.readers:
        return []
    key = answer.readers[-1], answer.sizes[-1]
    reported = [
        f"{curve.name} {amount(times[key].value, 's')}"
        for curve in answer.curves
        if key in (times := curve.times())
    ]
    if not reported:
        return []
    return [f"{size(key[1])} for {counted(key[0], 'reader')}: {', '.join(reported)}."]


def notices(answer: CrossoverAnswer, found: Sequence[SharingRecord]) -> list[str]:
    """Notices about the measurements."""
    done = [one for one in found if one.status == "done"]
    count = sum(map(disturbed, done))
    reported = []
    if count:
        text = disturbed_count(count, len(done), "measurements")
        reported.append(sentence(text))
    reported += [
        f"{curve.first.title or curve.engine} is in the readers' own process: nothing travels, and"
        " nothing is shared between processes. What it takes is the least that a data grid could."
        for curve in answer.curves
        if curve.side == "data grid" and not curve.there and not curve.first.members
    ]
    several = [
        f"The lines of {pair.compute.name} and {pair.grid.name} cross more than once with"
        f" {counted(n, 'reader')}; the sentences name the place where the largest sizes begin."
        for pair in answer.pairs
        for n, crossing in pair.over_size.items()
        if crossing.several
    ]
    left = list(dict.fromkeys(_left_out(one) for one in found if one.status != "done"))
    more = len(left) - _MOST
    return [
        *reported,
        *several,
        *left[:_MOST],
        *([f"{more} more were not made."] if more > 0 else []),
    ]


def subheading(header: Header, answer: CrossoverAnswer) -> str:
    """Subject, place and time of the measurements."""
    sizes, readers = answer.sizes, answer.readers
    return line_of(
        header,
        f"{sized(min(sizes))} to {sized(max(sizes))}" if sizes else "",
        f"{min(readers)} to {max(readers)} readers" if readers else "",
        f"on {header.machine.get('host')}",
    )


def _sentence(pair: Pair) -> str:
    """`Ignite (put and read) is faster than shared data of ray: from 12 MB with 16 readers.`"""
    reported = f"{pair.grid.name} is {{}} than shared data of {pair.compute.name}"
    known = pair.over_size
    if not known:
        return f"Of {pair.compute.name} and {pair.grid.name} too little was measured to compare."
    kinds = {one.kind for one in known.values()}
    readers = _counts(list(known))
    if kinds == {"never"}:
        return f"{reported.format('never faster')} up to {_largest(pair)}, for {readers}."
    if kinds == {"always"}:
        return f"{reported.format('faster')} at all sizes that were measured, for {readers}."
    parts = []
    for kind in ("from", "always", "up to", "never"):
        places: dict[str, list[int]] = {}
        for n, one in known.items():
            if one.kind == kind:
                places.setdefault(one.describe(sized), []).append(n)
        parts += [f"{where} with {_counts(counts)}" for where, counts in places.items()]
    return f"{reported.format('faster')}: {'; '.join(parts)}."


def _largest(pair: Pair) -> str:
    both = pair.compute.times().keys() & pair.grid.times().keys()
    return size(max(one for _, one in both))


def _counts(counts: Sequence[int]) -> str:
    if len(counts) == 1:
        return counted(counts[0], "reader")
    return f"{', '.join(map(str, counts[:-1]))} and {counts[-1]} readers"


def _left_out(one: SharingRecord) -> str:
    what = f"{one.title or one.engine}, {size(one.bytes)} for {counted(one.readers, 'reader')}"
    return f"{what}, was not measured: {one.why}."


# ---- Tables

FittedCosts = FittedSide[ComputeModel] | FittedSide[GridModel]
NOT_COUNTED = "*"
"""Follows a time whose repeats were all disturbed."""


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
    notes = [found.spread(show), f"predicted {expected.describe(show)}" if expected else ""]
    return Cell(found.describe(show), "; ".join(note for note in notes if note))


def _error(fitted: FittedCosts, what: str) -> str | None:
    found = {one.what: one for one in fitted.held_out}.get(what)
    return f"{percent(found.typical, 0)}, at most {percent(found.largest, 0)}" if found else None


def _per_byte(cost: float, what: str) -> str:
    """Seconds for each byte as a rate."""
    return f"data at {_rate(cost)} {what}" if cost > 0 else ""


def _rate(per_byte: float) -> str:
    return amount(1 / per_byte, "bytes/s") if per_byte > 0 else "any rate"
