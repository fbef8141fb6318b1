"""Two results side by side: how many times as much the second one has, and what that says."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gridbench.errors import InputError
from gridbench.formats import amount, counted, digits, percent
from gridbench.pages.document import EVERYWHERE, Document, Paragraph, TableBlock
from gridbench.pages.table import Cell, Column, table_of
from gridbench.provisional import provisional
from gridbench.result_kind import FigureName, Measure
from gridbench.statistics.claims import ENOUGH
from gridbench.statistics.interval import ratio_bounds

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
    """What both have, the worst first. InputError if that is nothing."""
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
    """Those of which it can be claimed that they are worse, and by more than is tolerated."""
    return [one for one in found if one.verdict == "worse" and one.loss > tolerated]


def told(found: Sequence[Compared]) -> str:
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
        sentences=[told(found)],
        summary=[
            TableBlock(
                "Second by first, in the medians", table_of(columns, found), media=EVERYWHERE
            ),
            Paragraph(
                "A ratio is the median of the second result by that of the first. It is called"
                " better or worse if its bounds, each with 95 % confidence, are on one side of 1,"
                " and there are two values of each at least; a dash means that no difference can be"
                " told."
            ),
        ],
    )


def _median(measure: Measure) -> str:
    return amount(statistics.median(measure.values), measure.unit)
