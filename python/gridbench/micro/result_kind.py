"""Results of micro benchmarks, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.errors import InputError
from gridbench.micro.record import FigureEntry, holds_results, load_results
from gridbench.result_kind import ResultRow, only

if TYPE_CHECKING:
    from gridbench.pages.document import Document

title = "gridbench micro"
model: str | None = None
rules = "gridbench.micro.rules"
compares = True
holds = holds_results


def rows(source: Path) -> Iterator[ResultRow]:
    """The values of each engine in each figure. InputError if they cannot be read."""
    for figure in load_results(source).figures:
        given = figure.parameter
        parameters = {"workload": figure.workload} | ({given.name: given.value} if given else {})
        for entry in figure.entries:
            for repeat, (value, valid) in enumerate(_judged(entry)):
                yield ResultRow(
                    engine=entry.engine,
                    what=figure.title,
                    metric=figure.id,
                    value=value,
                    unit=figure.unit,
                    better=figure.better,
                    repeat=repeat,
                    valid=valid,
                    disturbed=not valid,
                    parameters=parameters,
                )


def _judged(entry: FigureEntry) -> list[tuple[float, bool]]:
    """Its values, and whether each is undisturbed. Older files don't have the undisturbed ones."""
    if not entry.disturbed_runs:
        return [(value, True) for value in entry.values]
    left = Counter(entry.undisturbed)
    judged = []
    for value in entry.values:
        judged.append((value, left[value] > 0))
        left[value] -= 1
    # Values that are not among all of them.
    return judged + [(value, True) for value, count in left.items() for _ in range(count)]


def nothing_valid(source: Path) -> InputError:
    """Why no value is valid."""
    return InputError(
        "has no value that counts: other programs disturbed all of them, or none was measured",
        file=source,
        remedy="run `gridbench micro` again with the same --out, on a quiet machine",
    )


def document(sources: Sequence[Path], page: Path | None = None) -> Document:
    """The sentences, tables and charts of one."""
    del page
    from gridbench.micro.document import document_of

    return document_of(load_results(only(sources, title)))


def to_record(source: Path) -> dict[str, Any]:
    """What results.json holds."""
    return load_results(source).to_record()
