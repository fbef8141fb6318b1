"""From points to results: figures with intervals, ratios and claims, curves, and targets."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gridbench.bench.points import DataPoint, Points
from gridbench.jsonl_store import Header
from gridbench.micro.catalogue import FigureOf, MachineLimit, catalogue, lead_of
from gridbench.micro.record import (
    Claim,
    CurveAxis,
    CurveLine,
    FigureCurve,
    FigureEntry,
    FigureParameter,
    MicroFigure,
    Ratio,
    Results,
)
from gridbench.micro.workloads import AGAIN, ON_SERVERS, TWINS
from gridbench.statistics.claims import exceeds_noise
from gridbench.statistics.interval import bootstrap_interval, interval_of_median
from gridbench.statistics.series import PERCENTILES, Series, noise_between, paired_ratios

_BINS_PER_DECADE = 8
_FAMILIES = (
    ("argument", "An array as argument", "argument_{}", CurveAxis(name="size", unit="bytes")),
    ("echo", "An array there and back", "echo_{}", CurveAxis(name="size", unit="bytes")),
    ("start_first", "From nothing to the first task", "start_{}_first", CurveAxis(name="workers")),
    ("start_all", "From nothing to all at work", "start_{}_all", CurveAxis(name="workers")),
    ("memory", "Memory of idle workers", "memory_{}", CurveAxis(name="workers")),
)
_OURS = "gridrpc"
_BESIDE = ("process-pool, inherited",)
"""Shown, but no peer: it does not do the same work."""


def results_of(header: Header, points: Iterable[DataPoint], ended: str) -> Results:
    """Everything that follows from the points."""
    every = list(points)
    chosen = Points(every)
    figures: list[MicroFigure] = []
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
    worker_counts = {p.parameters["workers"] for p in points.of_workload("start")}
    bodies = tuple(sorted({p.parameters["task"] for p in points.of_workload("work")}))
    shared = [p.parameters["bytes"] for p in points.of_workload("shared_100MB")]
    return (
        tuple(sorted(arrays)),
        tuple(sorted(worker_counts)),
        max(shared, default=100_000_000),
        bodies,
    )


def _versions(points: Iterable[DataPoint]) -> dict[str, str]:
    return {p.engine: p.version for p in points if p.version and not p.engine.endswith(AGAIN)}


def _limit(limit: MachineLimit, points: Points) -> Series:
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


def _figure(
    kind: FigureOf, series: Mapping[str, Series], limits: Mapping[str, Series]
) -> MicroFigure:
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
    return MicroFigure(
        id=kind.id,
        workload=kind.workload,
        title=kind.title,
        unit=kind.unit,
        better=kind.better,
        parameter=FigureParameter(name=kind.parameter[0], value=kind.parameter[1])
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


def _entry(name: str, series: Series) -> FigureEntry:
    values = series.values
    if not values:
        return FigureEntry(engine=name, status=series.status, why=series.problem)
    low, high = interval_of_median(values) or (None, None)
    return FigureEntry(
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
    if middle and ours is not peer and exceeds_noise(sound, noise):
        claim = "faster" if (middle < 1) == (kind.better == "less") else "slower"
    return Ratio(
        to_peer=middle,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        to_limit=statistics.median(to_limit) if to_limit else None,
        claim=claim,
    )


# ---- Curves


def curves_of(points: Points, figures: Sequence[MicroFigure]) -> Iterator[FigureCurve]:
    """All curves for which there is something."""
    for name, title, pattern, axis in _FAMILIES:
        head, tail = pattern.split("{}")
        family = [
            figure
            for figure in figures
            if figure.parameter is not None
            and figure.id.startswith(head)
            and figure.id[len(head) :].split("_", 1)[1:] == tail.split("_", 1)[1:]
        ]
        if family:
            y = CurveAxis(name="time" if family[0].unit != "MB" else "memory", unit=family[0].unit)
            yield FigureCurve(id=name, title=title, x=axis, y=y, log=True, lines=_lines(family))
    yield from _map_rates(points)
    yield from _grains(points)
    yield from _million(points)


def _lines(family: Sequence[MicroFigure]) -> tuple[CurveLine, ...]:
    entries: dict[str, list[tuple[float, FigureEntry]]] = {}
    for figure in family:
        assert figure.parameter is not None
        for entry in figure.entries:
            if entry.median is not None:
                entries.setdefault(entry.engine, []).append((figure.parameter.value, entry))
    return tuple(_line(engine, found) for engine, found in entries.items())


def _line(engine: str, found: list[tuple[float, FigureEntry]]) -> CurveLine:
    sure = all(entry.low is not None for _, entry in found)
    return CurveLine(
        engine=engine,
        x=tuple(x for x, _ in found),
        y=tuple(entry.median or 0.0 for _, entry in found),
        low=tuple(entry.low or 0.0 for _, entry in found) if sure else (),
        high=tuple(entry.high or 0.0 for _, entry in found) if sure else (),
    )


def _shown(points: Sequence[DataPoint]) -> dict[str, list[DataPoint]]:
    """Those that are well, by engine."""
    found: dict[str, list[DataPoint]] = {}
    for point in points:
        if point.status == "ok" and not point.engine.endswith(AGAIN):
            found.setdefault(point.engine, []).append(point)
    return found


def _map_rates(points: Points) -> Iterator[FigureCurve]:
    lines = []
    for engine, found in _shown(points.of_workload("map_rate")).items():
        rates: dict[float, list[float]] = {}
        for point in found:
            chunk = point.parameters["chunk"]
            if isinstance(chunk, int):  # not one that the engine chooses itself
                rates.setdefault(float(chunk), []).append(point.values["per_second"])
        if rates:
            lines.append(_collected(engine, rates))
    if lines:
        yield FigureCurve(
            id="map_rate",
            title="Null calls per second by map",
            x=CurveAxis(name="chunk", unit="items"),
            y=CurveAxis(name="rate", unit="calls/s"),
            log=True,
            lines=tuple(lines),
        )


def _collected(engine: str, values: dict[float, list[float]]) -> CurveLine:
    xs = sorted(values)
    intervals = [interval_of_median(values[x]) for x in xs]
    known = [interval for interval in intervals if interval is not None]
    sure = len(known) == len(xs)
    return CurveLine(
        engine=engine,
        x=tuple(xs),
        y=tuple(statistics.median(values[x]) for x in xs),
        low=tuple(low for low, _ in known) if sure else (),
        high=tuple(high for _, high in known) if sure else (),
    )


def _grains(points: Points) -> Iterator[FigureCurve]:
    for by, ending, words in (("submit", "", "submitted singly"), ("map", "_map", "by map")):
        mine = [point for point in points.of_workload("metg") if point.parameters["by"] == by]
        lines = []
        for engine, found in _shown(mine).items():
            tries: dict[int, list[tuple[float, float]]] = {}
            for point in found:
                samples = zip(point.samples["task_us"], point.samples["efficiency"], strict=True)
                for task, efficiency in samples:
                    # Rounds try different times: near ones go together.
                    tries.setdefault(_bin(task), []).append((task, efficiency))
            middles = [
                tuple(statistics.median(side) for side in zip(*tries[n], strict=True))
                for n in sorted(tries)
            ]
            lines.append(
                CurveLine(
                    engine=engine, x=tuple(m[0] for m in middles), y=tuple(m[1] for m in middles)
                )
            )
        if lines:
            yield FigureCurve(
                id=f"metg{ending}",
                title=f"How busy tasks keep 2 workers, {words}",
                x=CurveAxis(name="task time", unit="us"),
                y=CurveAxis(name="efficiency"),
                log=True,
                lines=tuple(lines),
            )


def _bin(value: float) -> int:
    return math.floor(_BINS_PER_DECADE * math.log10(value))


def _million(points: Points) -> Iterator[FigureCurve]:
    lines = []
    for engine, found in _shown(points.of_workload("million")).items():
        last = [point for point in found if "calls" in point.samples]
        if last:
            samples = last[-1].samples
            lines.append(
                CurveLine(engine=engine, x=tuple(samples["calls"]), y=tuple(samples["per_second"]))
            )
    if lines:
        yield FigureCurve(
            id="million",
            title="Rate over a million calls in one go",
            x=CurveAxis(name="calls done"),
            y=CurveAxis(name="rate", unit="calls/s"),
            lines=tuple(lines),
        )
