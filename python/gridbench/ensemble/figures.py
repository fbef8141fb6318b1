"""Repeats of an ensemble together, and the paper's figures beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gridbench.ensemble.layouts import GRAINS, told_shares
from gridbench.ensemble.record import OURS, EnsembleRun
from gridbench.machine.judgement import disturbed
from gridbench.pages.colours import SERIES
from gridbench.pages.curves import Curve, Line, Place, Point, exactly
from gridbench.published.figures import table
from gridbench.statistics.interval import Interval, measured


@dataclass(frozen=True, slots=True)
class EnsembleCase:
    """All repeats of a run."""

    all: Sequence[EnsembleRun]

    @property
    def first(self) -> EnsembleRun:
        """One of them, for what all have in common."""
        return self.all[0]

    @property
    def is_together(self) -> bool:
        """Whether each cluster got one request for all workers."""
        return self.first.request == "together"

    @property
    def as_in_paper(self) -> bool:
        """Whether workers were requested together, and have one call at a time."""
        return self.is_together and not self.first.ahead

    @property
    def counting(self) -> list[EnsembleRun]:
        """The undisturbed ones; all, if there are none."""
        return [one for one in self.all if not disturbed(one)] or list(self.all)

    @property
    def counts(self) -> bool:
        """Whether a claim may rest on it."""
        return any(not disturbed(one) for one in self.all)

    def of(self, value: Callable[[EnsembleRun], float]) -> Interval:
        """The median of a figure, from the smallest to the largest repeat."""
        found = measured([value(one) for one in self.counting], 0.0)
        assert found is not None
        return found

    @property
    def efficiency(self) -> Interval:
        """Of all processors over the elapsed time."""
        return self.of(lambda one: one.efficiency)

    @property
    def call_efficiency(self) -> Interval:
        """T_r / T_c."""
        return self.of(lambda one: one.call_efficiency)


def cases_of(runs: Sequence[EnsembleRun]) -> list[EnsembleCase]:
    """Runs that were done, repeats together, in an order for tables."""
    groups: dict[tuple[Any, ...], list[EnsembleRun]] = {}
    for one in runs:
        if one.status == "done":
            groups.setdefault(one.key_without("repeat"), []).append(one)
    grains = list(GRAINS)

    def order(case: EnsembleCase) -> tuple[Any, ...]:
        one = case.first
        is_other = one.engine != OURS
        return (
            one.layout,
            is_other,
            grains.index(one.grain),
            one.processors,
            one.shares,
            one.ahead,
        )

    return sorted(map(EnsembleCase, groups.values()), key=order)


@dataclass(frozen=True, slots=True)
class PublishedPair:
    """A row of the paper's table 3: one-month forecasts on two clusters; seconds."""

    shares: str
    transfer: float
    call: float
    elapsed: float

    @property
    def efficiency(self) -> float:
        """5 T_r / T_e. The paper prints no T_r: it is at most T_c without the transfer."""
        return 5 * (self.call - self.transfer) / self.elapsed


def published_pairs() -> list[PublishedPair]:
    """The paper's table 3."""
    return [
        PublishedPair(
            told_shares(
                tuple(
                    (name, count)
                    for name in ("ume", "presto3")
                    if (count := int(row[f"{name}_cpus"]))
                )
            ),
            float(row["trec_s"]),
            float(row["tc_s"]),
            float(row["te_s"]),
        )
        for row in table("ninfg2-multicluster")
    ]


# ---- Charts

_PUBLISHED, _LEAST = "presto3", 80.0
"""A cluster whose efficiency the paper describes, and the least of it, in percent."""


def efficiency_curves(cases: Sequence[EnsembleCase]) -> list[tuple[str, Curve]]:
    """For each single cluster the efficiency over processors, a line for each forecast."""
    found: list[tuple[str, Curve]] = []
    for layout in dict.fromkeys(one.first.layout for one in cases):
        own = [one for one in cases if one.first.layout == layout]
        if len({one.first.shares.split()[0] for one in own}) > 1 or "+" in own[0].first.shares:
            continue
        lines = []
        for number, grain in enumerate(dict.fromkeys(one.first.grain for one in own)):
            of_grain = [one for one in own if one.first.grain == grain]
            colour = SERIES[number % len(SERIES)]
            lines.append(_line(grain, of_grain, colour, "efficiency"))
            calls = _line(f"{grain}, T_r/T_c", of_grain, colour, "call_efficiency")
            lines.append(Line(calls.name, calls.points, of=grain, dash="dot", in_legend=True))
        lines += [_published(own)] if layout == _PUBLISHED else []
        found.append(
            (layout, _curve(f"efficiency-{layout}", f"Efficiency on {layout}", own, lines))
        )
    return found


def _published(cases: Sequence[EnsembleCase]) -> Line:
    """The least efficiency of the paper's runs, but for 200 processors at 10 days."""
    places = sorted({_place(one) for one in cases}, key=lambda place: place.x)
    points = [Point(place, exactly(_LEAST), counts=True) for place in places]
    return Line("paper, 5 T_r/T_e at least", points, colour=SERIES[-1], dash="dash")


def engine_curves(cases: Sequence[EnsembleCase]) -> list[Curve]:
    """For each layout and forecast with several engines, their efficiency over processors."""
    found = []
    together = [one for one in cases if one.as_in_paper]
    for layout, grain in dict.fromkeys((one.first.layout, one.first.grain) for one in together):
        own = [one for one in together if (one.first.layout, one.first.grain) == (layout, grain)]
        engines = list(dict.fromkeys(one.first.engine for one in own))
        if len(engines) < 2:
            continue
        lines = [
            _line(engine, [one for one in own if one.first.engine == engine], colour, "efficiency")
            for engine, colour in zip(engines, SERIES * 2, strict=False)
        ]
        title = f"Efficiency of engines, {layout}, {grain}"
        found.append(_curve(f"engines-{layout}-{grain}", title, own, lines))
    return found


def _line(name: str, cases: Sequence[EnsembleCase], colour: str, figure: str) -> Line:
    points = [Point(_place(one), getattr(one, figure).times(100.0), one.counts) for one in cases]
    return Line(name, points, colour=colour)


def _curve(name: str, title: str, cases: Sequence[EnsembleCase], lines: Sequence[Line]) -> Curve:
    places = {one.first.processors: _place(one) for one in cases}
    return Curve(
        id=name,
        title=title,
        about="",
        x_title="processors",
        places=[places[count] for count in sorted(places)],
        y_title="efficiency",
        unit="%",
        lines=lines,
    )


def _place(case: EnsembleCase) -> Place:
    return Place(case.first.processors, f"{case.first.processors:,}")
