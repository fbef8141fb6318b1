"""Results of the crossover, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.datagrid.crossover.record import FORM
from gridbench.result_kind import ResultRow, only

if TYPE_CHECKING:
    from gridbench.pages.document import Document

title = "gridbench data crossover"
model: str | None = None
rules = "gridbench.datagrid.crossover.rules"
compares = True
holds = FORM.holds
nothing_valid = FORM.nothing_valid


def rows(source: Path) -> Iterator[ResultRow]:
    """The times of each way to the data. InputError if they cannot be read."""
    from gridbench.datagrid.crossover.answer import curves_of
    from gridbench.formats import counted, size
    from gridbench.machine.judgement import disturbed

    for curve in curves_of(FORM.read(source)[1]):
        for case in curve.cases:
            for one in case.all:
                yield ResultRow(
                    engine=curve.name,
                    what=f"{size(case.bytes)} for {counted(case.readers, 'reader')}",
                    metric="time until all readers have the data",
                    value=curve.of(one),
                    repeat=one.repeat,
                    valid=not disturbed(one),
                    disturbed=disturbed(one),
                    parameters={
                        "side": one.side,
                        "bytes": one.bytes,
                        "readers": one.readers,
                        "members": one.members,
                        "loaded_before": curve.there,
                    },
                )


def document(sources: Sequence[Path], page: Path | None = None) -> Document:
    """The answer, tables and charts of one."""
    del page
    from gridbench.datagrid.crossover.document import document_of

    return document_of(*FORM.read(only(sources, title)))


def to_record(source: Path) -> dict[str, Any]:
    """Measurements, crossings and models."""
    from gridbench.datagrid.crossover.answer import answer_of
    from gridbench.datagrid.crossover.document import answer_values

    found = FORM.read(source)[1]
    measurements = [asdict(one) for one in found]
    return {"measurements": measurements, **answer_values(answer_of(found), found)}
