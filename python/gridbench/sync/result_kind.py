"""Results of synchronised rounds, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gridbench.jsonl_store import folder_of
from gridbench.result_kind import Figure, RecordsKind, ResultRow, only, rows_of_case
from gridbench.sync.record import FORM, Round

if TYPE_CHECKING:
    from gridbench.pages.document import Document


def _rows(rounds: list[Round]) -> Iterator[ResultRow]:
    """The figures of each round."""
    from gridbench.machine.judgement import disturbed
    from gridbench.sync.cases import counts
    from gridbench.sync.figures import figures_of

    for one in rounds:
        found = figures_of(one)
        # A comparison has them in this order.
        figures = [
            Figure("start skew", found.skew),
            Figure("first start to last end", found.span),
            Figure("share of it in which all ran", found.simultaneity, "", "more"),
            Figure("median task time", found.median),
        ]
        for name, phase in found.phases.items():
            figures.append(Figure(f"{name}, bandwidth", phase.bandwidth, "bytes/s", "more"))
            figures.append(Figure(f"{name}, operations", phase.rate, "operations/s", "more"))
        yield from rows_of_case(
            figures,
            engine=one.describe(),
            repeat=one.repeat,
            valid=counts(one),
            disturbed=one.status == "done" and disturbed(one),
            parameters={"workers": one.workers, "parameter": one.parameter, "start": one.start},
        )


class _SyncKind(RecordsKind[Round]):
    def document(self, sources: Sequence[Path], page: Path | None = None) -> Document:
        """The answer, tables and charts of one; `page`: where it is written, for links to files."""
        from gridbench.sync.document import document_of

        source = only(sources, self.title)
        header, rounds = FORM.read(source)
        folder = folder_of(source).resolve()
        files = Path(os.path.relpath(folder, page.resolve().parent)) if page else None
        return document_of(header, rounds, files)


SYNC = _SyncKind(
    form=FORM,
    title="gridbench sync",
    model="gridbench.sync.model_kind",
    rules="gridbench.sync.rules",
    rows_of=_rows,
    document_module="gridbench.sync.document",
    record_name="rounds",
    remedy="measure more by --rounds N, with the same --out, on a quiet machine",
)
