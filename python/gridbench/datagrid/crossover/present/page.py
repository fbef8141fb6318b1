"""The crossover as one HTML page; its pictures are drawn by crossover.js."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gridbench.atomic_write import write_file
from gridbench.datagrid.crossover.answer import answer_of
from gridbench.datagrid.crossover.present.notes import examples, headline, notices, subheading
from gridbench.datagrid.crossover.present.pictures import (
    colour_of,
    crossings,
    over_readers,
    over_size,
)
from gridbench.datagrid.crossover.present.rows import (
    NOT_COUNTED,
    crossings_table,
    models_table,
    readers_table,
    times_table,
)
from gridbench.datagrid.crossover.record import FORM, Sharing
from gridbench.formats import counted, size
from gridbench.jsonl_store import Header
from gridbench.pages import render as pages
from gridbench.pages.chart import Chart
from gridbench.pages.table import Table, facts


def write_report(source: Path, out: Path) -> None:
    """Write the page about the results in a folder, completely or not at all.

    InputError if they cannot be read, or if `out` cannot be written.
    """
    write_file(out, render(*FORM.read(source)))


def render(header: Header, found: Sequence[Sharing]) -> str:
    """The whole page as HTML."""
    answer = answer_of(found)
    sizes = [one for one in over_size(answer) if one.drawn]
    readers = [one for one in over_readers(answer) if one.drawn]
    over = crossings(answer)
    told = headline(answer, found)
    return pages.render(
        "datagrid/crossover/present/crossover.html",
        "gridbench data crossover: shared data or a data grid",
        {
            "curve": {one.id: one.data() for one in (*sizes, *readers, over) if one.drawn},
            "grids": [one.engine for one in answer.curves if one.side == "data grid" and one.there],
        },
        styles=["datagrid/crossover/present/crossover.css"],
        scripts=["pages/curves.js", "datagrid/crossover/present/crossover.js"],
        engines=[colour_of(curve) for curve in answer.curves],
        kind="gridbench data crossover",
        heading="Shared data through the compute grid, or from a data grid?",
        subheading=subheading(header, answer),
        navigation=[
            ("summary", "Summary"),
            ("size", "Over size"),
            ("readers", "Over readers"),
            ("predicted", "Predicted"),
            ("method", "What is compared"),
        ],
        verdict=told[0],
        sentences=[*told[1:], *examples(answer)],
        notices=notices(answer, found),
        crossings=crossings_table(answer),
        by_readers=readers_table(answer),
        times=times_table(answer),
        uncounted=not all(case.counts for curve in answer.curves for case in curve.cases),
        not_counted=NOT_COUNTED,
        sizes=[
            (one.id, counted(n, "reader")) for one, n in zip(sizes, answer.readers, strict=False)
        ],
        readers=[(one.id, size(n)) for one, n in zip(readers, answer.sizes, strict=False)],
        over=over.chart() if over.drawn else None,
        size_chart=Chart("curve", "Time over the size of the data", name=_last(sizes)),
        readers_chart=Chart("curve", "Time over the number of readers", name=_last(readers)),
        models=models_table(answer),
        machine=_facts(header.machine),
        options=_facts(header.options | {"seed of the order": header.seed}),
        versions=_facts(header.versions),
    )


def _last(curves: Sequence[Any]) -> str:
    return curves[-1].id if curves else ""


def _facts(known: dict[str, Any]) -> Table:
    return facts(
        [
            (name, value if isinstance(value, str) else json.dumps(value, default=os.fspath))
            for name, value in known.items()
        ]
    )
