"""Results of the crossover, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gridbench.datagrid.crossover.record import FORM, SharingRecord
from gridbench.jsonl_store import Header
from gridbench.result_kind import RecordsKind, ResultRow


def _rows(records: list[SharingRecord]) -> Iterator[ResultRow]:
    """The times of each way to the data."""
    from gridbench.datagrid.crossover.answer import curves_of
    from gridbench.formats import counted, size
    from gridbench.machine.judgement import disturbed

    for curve in curves_of(records):
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


def _answer(header: Header, records: list[SharingRecord]) -> Mapping[str, Any]:
    """Crossings and models."""
    del header
    from gridbench.datagrid.crossover.answer import answer_of
    from gridbench.datagrid.crossover.document import answer_values

    return answer_values(answer_of(records), records)


CROSSOVER = RecordsKind(
    form=FORM,
    title="gridbench data crossover",
    rules="gridbench.datagrid.crossover.rules",
    rows_of=_rows,
    document_module="gridbench.datagrid.crossover.document",
    record_name="measurements",
    answer_of=_answer,
)
