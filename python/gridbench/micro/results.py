"""From points to results: figures with intervals, ratios and claims, curves, and the lead."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gridbench.bench.points import Header, Point
from gridbench.bench.series import Points
from gridbench.micro.catalogue import FigureOf, Limit, catalogue
from gridbench.micro.curves import curves_of
from gridbench.micro.figures import Claim, Entry, Figure, Parameter, Ratio, Results
from gridbench.micro.lead import lead_of
from gridbench.micro.workloads import AGAIN, ON_SERVERS, TWINS
from gridbench.statistics.claims import stands_out
from gridbench.statistics.interval import bootstrap_interval, interval_of_median
from gridbench.statistics.series import PERCENTILES, Series, noise_between, paired_ratios

_OURS = "gridrpc"
_BESIDE = ("process-pool, inherited",)
"""Shown, but no peer: it does not do what is compared."""


def results_of(header: Header, points: Iterable[Point], ended: str) -> Results:
    """All that the points tell."""
    every = list(points)
    chosen = Points(every)
    figures: list[Figure] = []
    values: dict[str, dict[str, Series]] = {}
    for kind in catalogue_of(chosen):
        series = series_of(kind, chosen)
        limits = {limit.name: _limit(limit, chosen) for limit in kind.limits}
        figure = _figure(kind, series, limits)
        if not figure.entries:
            continue
        figures.append(figure)
        values[kind.id] = dict(series | limits)
    return Results(
        machine=header.machine,
        versions=header.versions | _versions(every),
        options=header.options | {"seed": header.seed},
        started=header.started,
        ended=ended,
        figures=tuple(figures),
        curves=tuple(curves_of(chosen, figures)),
        lead=tuple(lead_of(figures, values)) if figures else (),
    )


def catalogue_of(points: Points) -> list[FigureOf]:
    """The figures of what the points measured."""
    return catalogue(*_sizes(points))


def series_of(kind: FigureOf, points: Points) -> dict[str, Series]:
    """The values of a figure by engine, twins among them."""
    return _best(kind, points) if kind.best_of else kind.source.by_engine(points)


def _sizes(points: Points) -> tuple[tuple[int, ...], tuple[int, ...], int, tuple[str, ...]]:
    """Bytes of arrays, numbers of workers, bytes of shared data, and bodies of tasks that were
    measured."""
    arrays = {p.parameters["bytes"] for w in ("argument", "echo") for p in points.of_workload(w)}
    crews = {p.parameters["workers"] for p in points.of_workload("start")}
    bodies = tuple(sorted({p.parameters["task"] for p in points.of_workload("work")}))
    shared = [p.parameters["bytes"] for p in points.of_workload("shared_100MB")]
    return tuple(sorted(arrays)), tuple(sorted(crews)), max(shared, default=100_000_000), bodies


def _versions(points: Iterable[Point]) -> dict[str, str]:
    return {p.engine: p.version for p in points if p.version and not p.engine.endswith(AGAIN)}


def _limit(limit: Limit, points: Points) -> Series:
    return limit.source.by_engine(points).get(limit.points or limit.name, Series())


def _best(kind: FigureOf, points: Points) -> dict[str, Series]:
    """For each engine the series with the value of the parameter that is best for it."""
    found: dict[str, Series] = {}
    tried = (p.parameters[kind.best_of] for p in points.of_workload(kind.source.workload))
    for value in dict.fromkeys(tried):
        source = kind.source.with_parameter(kind.best_of, value)
        for engine, series in source.by_engine(points).items():
            known = found.get(engine)
            if known is None or not known.values or (
                series.values and _better(kind, series.median, known.median)
            ):  # fmt: skip
                found[engine] = replace(series, note=f"{kind.best_of} {value}")
    return found


def _better(kind: FigureOf, one: float, other: float) -> bool:
    return one < other if kind.better == "less" else one > other


def _figure(kind: FigureOf, series: Mapping[str, Series], limits: Mapping[str, Series]) -> Figure:
    noise = max(
        [1.0]
        + [
            noise_between(series[name], series[name + AGAIN])
            for name in TWINS
            if name in series and name + AGAIN in series
        ]
    )
    shown = {
        name: one
        for name, one in sorted(series.items(), key=lambda pair: _place(pair[0]))
        if not name.endswith(AGAIN) and (one.values or one.problem)
    }
    measured = {name: one for name, one in shown.items() if one.values}
    peers = [name for name in measured if not name.startswith(_OURS) and name not in _BESIDE]
    pick = min if kind.better == "less" else max
    peer = None
    if peers and kind.compared:
        peer = pick(peers, key=lambda name: measured[name].median)
    first = next((one for one in limits.values() if one.values), Series())
    return Figure(
        id=kind.id,
        workload=kind.workload,
        title=kind.title,
        unit=kind.unit,
        better=kind.better,
        parameter=Parameter(name=kind.parameter[0], value=kind.parameter[1])
        if kind.parameter
        else None,
        entries=tuple(_entry(name, one) for name, one in shown.items()),
        limits=tuple(_entry(name, one) for name, one in limits.items() if one.values),
        noise=noise,
        best_peer=peer,
        ratios={
            name: _ratio(kind, one, measured[peer] if peer else Series(), first, noise)
            for name, one in measured.items()
            # The network between is no engine's.
            if not name.endswith(ON_SERVERS)
        },
    )


def _place(name: str) -> tuple[bool, str]:
    """Ours first; the order of measuring is a random one."""
    return not name.startswith(_OURS), name


def _entry(name: str, series: Series) -> Entry:
    values = series.values
    if not values:
        return Entry(engine=name, status=series.status, why=series.problem)
    low, high = interval_of_median(values) or (None, None)
    return Entry(
        engine=name,
        median=statistics.median(values),
        low=low,
        high=high,
        runs=len(values),
        values=tuple(values),
        disturbed_runs=len(series.disturbed),
        undisturbed=tuple(series.undisturbed.values),
        note=series.note,
        percentiles={p: series.samples.percentile(float(p)) for p in PERCENTILES}
        if series.samples.count
        else None,
    )


def _ratio(kind: FigureOf, ours: Series, peer: Series, limit: Series, noise: float) -> Ratio:
    to_peer = paired_ratios(ours, peer)
    to_limit = paired_ratios(ours, limit)
    middle = statistics.median(to_peer) if to_peer else None
    interval = bootstrap_interval(to_peer)
    claim: Claim = "no difference"
    sound = paired_ratios(ours.undisturbed, peer.undisturbed)
    if middle and ours is not peer and stands_out(sound, noise):
        claim = "faster" if (middle < 1) == (kind.better == "less") else "slower"
    return Ratio(
        to_peer=middle,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        to_limit=statistics.median(to_limit) if to_limit else None,
        claim=claim,
    )
