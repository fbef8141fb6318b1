"""The crossover as a document for people, and as JSON for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gridbench.datagrid.crossover.answer import CrossoverAnswer, Pair, answer_of
from gridbench.datagrid.crossover.conclusions import examples, headline, notices, subheading
from gridbench.datagrid.crossover.models import FittedSide
from gridbench.datagrid.crossover.plots import crossings, over_readers, over_size
from gridbench.datagrid.crossover.record import SharingRecord
from gridbench.datagrid.crossover.tables import (
    NOT_COUNTED,
    crossings_table,
    models_table,
    readers_table,
    times_table,
)
from gridbench.formats import counted, size
from gridbench.jsonl_store import Header
from gridbench.model.held_out import HeldOutErrors
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
