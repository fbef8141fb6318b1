"""Results of synchronised rounds, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.errors import InputError
from gridbench.jsonl_store import folder_of
from gridbench.result_kind import Better, ResultRow, only
from gridbench.sync.record import FORM, Round

if TYPE_CHECKING:
    from gridbench.pages.document import Document

title = "gridbench sync"
model: str | None = "gridbench.sync.model_kind"
rules = "gridbench.sync.rules"
compares = True
holds = FORM.holds


def rows(source: Path) -> Iterator[ResultRow]:
    """The figures of each round. InputError if they cannot be read."""
    import math

    from gridbench.machine.judgement import disturbed
    from gridbench.sync.cases import counts
    from gridbench.sync.figures import figures_of

    for one in FORM.read(source)[1]:
        found = figures_of(one)
        # A comparison has them in this order.
        values: list[tuple[str, float, str, Better]] = [
            ("start skew", found.skew, "s", "less"),
            ("first start to last end", found.span, "s", "less"),
            ("share of it in which all ran", found.simultaneity, "", "more"),
            ("median task time", found.median, "s", "less"),
        ]
        for name, phase in found.phases.items():
            values.append((f"{name}, bandwidth", phase.bandwidth, "bytes/s", "more"))
            values.append((f"{name}, operations", phase.rate, "operations/s", "more"))
        for metric, value, unit, better in values:
            if math.isfinite(value):
                yield ResultRow(
                    engine=one.told(),
                    what=metric,
                    metric=metric,
                    value=value,
                    unit=unit,
                    better=better,
                    repeat=one.repeat,
                    valid=counts(one),
                    disturbed=one.status == "done" and disturbed(one),
                    parameters={
                        "workers": one.workers,
                        "parameter": one.parameter,
                        "start": one.start,
                    },
                )


def nothing_valid(source: Path) -> InputError:
    """The reason why no round is valid."""
    return InputError(
        f"has no round that counts, and so nothing to compare: {_why_not(FORM.read(source)[1])}",
        file=source,
        remedy="measure more by --rounds N, with the same --out, on a quiet machine",
    )


def _why_not(rounds: Sequence[Round]) -> str:
    """`of 3 rounds, 2 disturbed, 1 failed`."""
    from gridbench.formats import counted
    from gridbench.machine.judgement import disturbed

    if not rounds:
        return "it holds none"
    failed = sum(one.status == "failed" for one in rounds)
    busy = sum(one.status == "done" and disturbed(one) for one in rounds)
    kinds = {"failed": failed, "disturbed by other programs": busy}
    parts = [f"{count:,} {kind}" for kind, count in kinds.items() if count]
    return f"of {counted(len(rounds), 'round')}, {', '.join(parts)}"


def document(sources: Sequence[Path], page: Path | None = None) -> Document:
    """The answer, tables and charts of one; `page`: where it is written, for links to files."""
    from gridbench.sync.document import document_of

    source = only(sources, title)
    header, rounds = FORM.read(source)
    folder = folder_of(source).resolve()
    files = Path(os.path.relpath(folder, page.resolve().parent)) if page else None
    return document_of(header, rounds, files)


def to_record(source: Path) -> dict[str, Any]:
    """All rounds."""
    return {"rounds": [asdict(one) for one in FORM.read(source)[1]]}
