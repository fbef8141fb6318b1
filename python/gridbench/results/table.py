"""The table of results: a row for each measured value, whatever has measured it."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gridbench.atomic_write import write_file
from gridbench.errors import InputError
from gridbench.formats import amount, counted, digits, percent
from gridbench.pages.document import EVERYWHERE, Document, Paragraph, TableBlock
from gridbench.pages.table import Cell, Column, table_of
from gridbench.result_kind import FigureName, Measure, ResultRow, kind_of
from gridbench.statistics.claims import ENOUGH, provisional
from gridbench.statistics.interval import ratio_bounds


def measures_of(source: Path) -> dict[FigureName, Measure]:
    """The valid values of each figure. InputError if there are none, with the reason."""
    kind = kind_of([source])
    found = measures(row for row in kind.rows(source) if row.valid)
    if not found:
        raise kind.nothing_valid(source)
    return found


def measures(rows: Iterable[ResultRow]) -> dict[FigureName, Measure]:
    """The values of each figure."""
    found: dict[FigureName, Measure] = {}
    for row in rows:
        before = found.get((row.engine, row.what), Measure((), row.unit, row.better))
        found[row.engine, row.what] = replace(before, values=(*before.values, row.value))
    return found


def records_of(sources: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """All rows of these sources; the parameters of a case follow the columns that all rows have."""
    for source in sources:
        kind = kind_of([source])
        for row in kind.rows(source):
            yield {
                "source": str(source),
                "benchmark": kind.title.removeprefix("gridbench "),
                "engine": row.engine,
                "figure": row.what,
                "metric": row.metric,
                "value": row.value,
                "unit": row.unit,
                "better": row.better,
                "repeat": row.repeat,
                "valid": row.valid,
                **row.parameters,
            }


def write_table(sources: Sequence[Path], out: Path) -> int:
    """Write all rows to a file, in the format of its suffix. Returns their number.

    InputError for another suffix, for results that cannot be read, and if there are none.
    """
    write = _WRITERS.get(out.suffix.lower())
    if write is None:
        raise InputError(
            f"the suffix `{out.suffix}` is no format of tables",
            file=out,
            remedy=f"choose one of {', '.join(_WRITERS)}",
        )
    records = list(records_of(sources))
    if not records:
        raise InputError("holds no measured value", file=sources[0])
    write(records, out)
    return len(records)


def _write_lines(records: Sequence[dict[str, Any]], out: Path) -> None:
    write_file(out, "".join(json.dumps(record) + "\n" for record in records))


def _write_csv(records: Sequence[dict[str, Any]], out: Path) -> None:
    import csv
    import io

    text = io.StringIO()
    writer = csv.DictWriter(text, _names(records), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    write_file(out, text.getvalue())


def _write_parquet(records: Sequence[dict[str, Any]], out: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: _column([one.get(name) for one in records]) for name in _names(records)}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    write_file(out, sink.getvalue().to_pybytes())


def _names(records: Sequence[dict[str, Any]]) -> list[str]:
    """All columns, in the order of their first appearance."""
    return list(dict.fromkeys(name for record in records for name in record))


def _column(values: list[Any]) -> list[Any]:
    """Values of one type: benchmarks may give one name to a number and to a text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or len(kinds) < 2:
        return [float(v) if v is not None and float in kinds else v for v in values]
    return [None if value is None else str(value) for value in values]


_WRITERS: dict[str, Callable[[Sequence[dict[str, Any]], Path], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_lines,
}


# ---- Two results side by side

Verdict = Literal["better", "worse", "no difference", "too few"]
_WORDS = {"better": "better", "worse": "worse", "no difference": "–", "too few": "too few"}
_STYLES = {"worse": "bad", "better": "good", "no difference": "", "too few": ""}
"""Classes of cells."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure in both results."""

    engine: str
    what: str
    before: Measure
    after: Measure

    @property
    def ratio(self) -> float:
        """Of the medians, second by first."""
        return _ratio(statistics.median(self.after.values), statistics.median(self.before.values))

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound of the ratio, each with 95 % confidence, by ranks; of fewer than
        three values on a side it is the smallest and the largest ratio that two of them have."""
        before, after = self.before.values, self.after.values
        found = ratio_bounds(after, before) if min(before) > 0 else None
        return found or (_ratio(min(after), max(before)), _ratio(max(after), min(before)))

    @property
    def loss(self) -> float:
        """How much worse the second is, as share; negative: better."""
        return self.ratio - 1 if self.before.better == "less" else 1 - self.ratio

    def to_dict(self) -> dict[str, Any]:
        """For JSON; a ratio to nothing is null."""
        low, high = self.bounds
        ratios = {"ratio": self.ratio, "low": low, "high": high}
        return {
            "engine": self.engine,
            "what": self.what,
            "unit": self.before.unit,
            "better": self.before.better,
            "first": list(self.before.values),
            "second": list(self.after.values),
            **{name: one if math.isfinite(one) else None for name, one in ratios.items()},
            "verdict": self.verdict,
        }

    @property
    def verdict(self) -> Verdict:
        """Whether the bounds of the ratio are on one side of 1."""
        if min(len(self.before.values), len(self.after.values)) < ENOUGH:
            return "too few"
        low, high = self.bounds
        if low <= 1 <= high:
            return "no difference"
        return "worse" if self.loss > 0 else "better"


def compared(
    before: Mapping[FigureName, Measure], after: Mapping[FigureName, Measure]
) -> list[Compared]:
    """Common figures, the worst first. InputError if that is nothing."""
    common = [
        Compared(*quantity, before[quantity], after[quantity])
        for quantity in before.keys() & after.keys()
        if before[quantity].unit == after[quantity].unit
    ]
    if not common:
        raise InputError(
            "the two results have no measurement in common",
            remedy="compare results of the same command, engines and sizes",
        )
    order = {"worse": 0, "better": 1, "no difference": 2, "too few": 3}
    return sorted(common, key=lambda c: (order[c.verdict], -abs(c.loss), c.engine, c.what))


def failing(found: Sequence[Compared], tolerated: float) -> list[Compared]:
    """Those that are provably worse, by more than is tolerated."""
    return [one for one in found if one.verdict == "worse" and one.loss > tolerated]


def describe(found: Sequence[Compared]) -> str:
    """One sentence on all of them."""
    worse = [one for one in found if one.verdict == "worse"]
    better = [one for one in found if one.verdict == "better"]
    few = sum(one.verdict == "too few" for one in found)
    if few == len(found):
        parts = _changes(
            [one for one in found if one.loss > 0], [one for one in found if one.loss < 0]
        )
        return provisional(
            f"of {counted(len(found), 'figure')}, {', '.join(parts or ['none differs'])}",
            f"a claim takes {ENOUGH} values of each side",
        )
    parts = _changes(worse, better) or ["no difference"]
    rest = f"; {few} measured too seldom to tell" if few else ""
    return f"Of {counted(len(found), 'figure')}: {', '.join(parts)}{rest}."


def _changes(worse: Sequence[Compared], better: Sequence[Compared]) -> list[str]:
    parts = []
    if worse:
        parts.append(f"{len(worse)} worse, by up to {percent(max(one.loss for one in worse))}")
    if better:
        parts.append(f"{len(better)} better, by up to {percent(max(-one.loss for one in better))}")
    return parts


def parse_share(option: str, text: str) -> float:
    """A share from `5%` or `0.05`. InputError names `option`."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(%?)\s*", text)
    if match is None:
        raise InputError(f"{option}: `{text[:40]}` is not a share", remedy="give one such as 5%")
    return float(match[1]) / (100 if match[2] else 1)


def _ratio(one: float, other: float) -> float:
    if other:
        return one / other
    return math.inf if one else 1.0


def document_of(found: Sequence[Compared], first: Path, second: Path) -> Document:
    """One sentence, and a line for each figure, the worst first."""
    columns: list[Column[Compared]] = [
        Column("figure", lambda one: f"{one.engine}: {one.what}"),
        Column("first", lambda one: _median(one.before)),
        Column("second", lambda one: _median(one.after)),
        Column("ratio", lambda one: digits(one.ratio)),
        Column("bounds", lambda one: " – ".join(map(digits, one.bounds))),
        Column("verdict", lambda one: Cell(_WORDS[one.verdict], style=_STYLES[one.verdict])),
    ]
    return Document(
        kind="gridbench report",
        title=f"gridbench report: {first.name} and {second.name}",
        heading=f"{second.name} against {first.name}",
        subheading=f"first: {first} · second: {second}",
        sentences=[describe(found)],
        summary=[
            TableBlock(
                "Second by first, in the medians", table_of(columns, found), media=EVERYWHERE
            ),
            Paragraph(
                "A ratio is the median of the second result by that of the first. It is called"
                " better or worse if its bounds, each with 95 % confidence, are on one side of 1,"
                " and there are two values of each at least; a dash means that no difference can be"
                " given."
            ),
        ],
    )


def _median(measure: Measure) -> str:
    return amount(statistics.median(measure.values), measure.unit)
