"""The pictures of all cases together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from gridbench.datagrid.cases import RepeatedCase
from gridbench.datagrid.comparisons import KB_IN_MB, Axis, DataGridSweep
from gridbench.datagrid.figures import operations_of_task
from gridbench.datagrid.latency import tail
from gridbench.datagrid.present.scenario_tables import SLIDES, line_name, place_shown
from gridbench.datagrid.record import Latencies
from gridbench.datagrid.workload import label_shown
from gridbench.formats import amount, plain, rounded, whole
from gridbench.pages.axis import axis_of, is_wide
from gridbench.pages.curves import Curve, Line, Place, Point
from gridbench.published.figures import FIT_OPERATIONS, UNLOADED_OPERATIONS, data_grid_slides
from gridbench.statistics.interval import Interval

_MOST_LINES = 12
_FIT_POINTS = 40
X_TITLES: dict[Axis, str] = {
    "ObjectSize": "object size",
    "NNodes": "clients",
    "MNodes": "members",
}
_BARS = "Bars reach from the smallest to the largest of the repeats; a hollow mark does not count."


def over(sweeps: Sequence[DataGridSweep], name: str) -> list[Curve]:
    """Times and throughput over an axis: for each label one picture of each."""
    labels = list(dict.fromkeys(sweep.first.case.label for sweep in sweeps))
    found = []
    for label in labels:
        own = [sweep for sweep in sweeps if sweep.first.case.label == label][:_MOST_LINES]
        found += [_times(own, f"{name}-{label}-time"), _rates(own, f"{name}-{label}-rate")]
    return [one for one in found if one.drawn]


def _times(sweeps: Sequence[DataGridSweep], name: str) -> Curve:
    axis = sweeps[0].axis
    every = FIT_OPERATIONS if axis == "ObjectSize" else UNLOADED_OPERATIONS
    fits = [line for sweep in sweeps if (line := _fit(sweep, every)) is not None]
    lines = [_scaled(sweep, every, joined=not fits) for sweep in sweeps]
    label = label_shown(sweeps[0].first.case.label)
    about = f"The median task without start-up. {_BARS}"
    tasks = [operations_of_task(group.case) for sweep in sweeps for group in sweep.groups]
    if any(operations != every for operations in tasks):
        about += (
            f" Some tasks have another number of operations: times are those of {every:,} of them."
        )
    if fits:
        about += " Dotted lines are the fits in the table above."
    return Curve(
        id=name,
        title=f"{label}: time of {every:,} operations over {X_TITLES[axis]}".strip(": "),
        about=f"{about}{_about_slides(sweeps, every)}",
        x_title=X_TITLES[axis],
        places=_places(sweeps),
        y_title=f"time of {every:,} operations",
        unit="s",
        lines=[*lines, *fits, *_slides(sweeps)],
    )


def _rates(sweeps: Sequence[DataGridSweep], name: str) -> Curve:
    axis = sweeps[0].axis
    label = label_shown(sweeps[0].first.case.label)
    by_size = axis == "ObjectSize"
    what = "objects' bytes per second" if by_size else "operations per second"
    return Curve(
        id=name,
        title=f"{label}: {what} over {X_TITLES[axis]}".strip(": "),
        about=f"Of all clients together. {_BARS}",
        x_title=X_TITLES[axis],
        places=_places(sweeps),
        y_title=what,
        unit="bytes/s" if by_size else "/s",
        lines=[
            _line(
                sweep,
                lambda group: group.interval(lambda f: f.bandwidth if by_size else f.throughput),
            )
            for sweep in sweeps
        ],
    )


def _line(sweep: DataGridSweep, value: Callable[[RepeatedCase], Interval | None]) -> Line:
    points = [
        Point(_place(sweep.axis, sweep.place(group)), one, group.counts)
        for group in sweep.groups
        if (one := value(group)) is not None and one.value > 0
    ]
    return Line(line_name(sweep), points, engine=sweep.first.case.engine)


def _scaled(sweep: DataGridSweep, every: int, *, joined: bool) -> Line:
    """Times of so many operations; points alone where a fit goes through them."""
    factor = every / sweep.operations if sweep.operations else 1.0

    def value(group: RepeatedCase) -> Interval | None:
        found = sweep.task_time(group)
        return found and found.times(factor)

    return replace(_line(sweep, value), joined=joined)


def _fit(sweep: DataGridSweep, every: int) -> Line | None:
    """The fit between the smallest and the largest size; None if there is none."""
    found = sweep.task_fit() if sweep.axis == "ObjectSize" else None
    low, high = sweep.place(sweep.groups[0]), sweep.place(sweep.groups[-1])
    if found is None or low <= 0 or not sweep.operations:
        return None
    fit = found.times(every / sweep.operations)
    points = []
    for n in range(_FIT_POINTS):
        place = low * (high / low) ** (n / (_FIT_POINTS - 1))
        value = fit.at(place / KB_IN_MB)
        if value > 0:
            points.append(_reference(place, value, sweep.axis))
    name = f"{line_name(sweep)}, fit"
    return Line(name, points, engine=sweep.first.case.engine, dash="dot", in_legend=False)


def _slides(sweeps: Sequence[DataGridSweep]) -> list[Line]:
    """The preliminary figures where they are of the same."""
    slides = data_grid_slides()
    axis, label = sweeps[0].axis, sweeps[0].first.case.label
    places = [place.x for place in _places(sweeps)]
    low, high = min(places), max(places)
    if low <= 0:
        return []
    if axis == "ObjectSize":
        if label != "update":
            return []
        points = []
        for n in range(_FIT_POINTS):
            place = low * (high / low) ** (n / (_FIT_POINTS - 1))
            points.append(_reference(place, slides.update_time(place / KB_IN_MB), axis))
        told = f"{slides.update_per_mb.text} s/MB × size + {slides.update_constant.text} s"
        return [Line(f"{SLIDES}: {told}", points, dash="dash")]
    points = [_reference(place, slides.unloaded.value, axis) for place in (low, high)]
    return [Line(f"{SLIDES}: {slides.unloaded.text} s, unloaded", points, dash="dash")]


def _about_slides(sweeps: Sequence[DataGridSweep], every: int) -> str:
    if not _slides(sweeps):
        return ""
    if every == FIT_OPERATIONS:
        where = "on 8 members, with 10 clients"
    else:
        where = "on 8 members, with 1 or 10 clients; the slides do not say of which operation"
    return f" The dashed line is the slides' preliminary figure of Coherence {where}."


def _reference(place: float, value: float, axis: Axis) -> Point:
    return Point(_place(axis, place), Interval(value, value, value), True)


def _places(sweeps: Sequence[DataGridSweep]) -> list[Place]:
    places = sorted({sweep.place(group) for sweep in sweeps for group in sweep.groups})
    return [_place(sweeps[0].axis, place) for place in places]


def _place(axis: Axis, place: float) -> Place:
    return Place(place, place_shown(axis, place) if axis == "ObjectSize" else whole(place))


def memory(sweeps: Sequence[DataGridSweep]) -> list[Curve]:
    """Memory of a member over object size and over members: of the first label that there is, as
    the data are the same for all."""
    found = []
    for axis in dict.fromkeys(sweep.axis for sweep in sweeps):
        own = [sweep for sweep in sweeps if sweep.axis == axis]
        label = own[0].first.case.label
        own = [sweep for sweep in own if sweep.first.case.label == label][:_MOST_LINES]
        found.append(
            Curve(
                id=f"memory-{axis.lower()}",
                title=f"Memory of a member over {X_TITLES[axis]}",
                about=f"In use after loading, without garbage: the mean of the members. {_BARS}",
                x_title=X_TITLES[axis],
                places=_places(own),
                y_title="in use of a member",
                unit="bytes",
                lines=[_line(sweep, _memory) for sweep in own],
            )
        )
    return [one for one in found if one.drawn]


def _memory(group: RepeatedCase) -> Interval | None:
    return group.interval(lambda f: f.memory.mean if f.memory else math.nan)


Tail = tuple[str, str, str, Latencies]
"""Name of the line, engine, dash, and what it is of."""


def tails(lines: Iterable[Tail]) -> dict[str, Any] | None:
    """Latency over how many operations are faster, on a logarithmic axis of those that are not."""
    known = [
        (name, engine, dash, points) for name, engine, dash, one in lines if (points := tail(one))
    ]
    if not known:
        return None
    values = [value for *_, points in known for _, value in points if value > 0]
    most = max(place for *_, points in known for place, _ in points)
    ticks = [2.0, *(10.0**n for n in range(1, math.floor(math.log10(most)) + 1))]
    y_axis = axis_of(values, "s", logarithmic=is_wide(values), from_zero=not is_wide(values))
    return {
        "x": {
            "log": True,
            "range": [1.0, most * 1.1],
            "ticks": ticks,
            "texts": [_share(tick) for tick in ticks],
            "title": "share of operations that are faster",
        },
        "y": y_axis | {"title": "latency" + (", logarithmic" if y_axis["log"] else "")},
        "units": ["operations of which one is slower", "s"],
        "lines": [
            {
                "name": name,
                "engine": engine,
                "index": index,
                "dash": dash or "solid",
                "x": [rounded(place, 6) for place, _ in points],
                "y": [rounded(value, 4) for _, value in points],
                "hover": [
                    [name, f"{amount(value, 's')}: one of {whole(place)} is slower"]
                    for place, value in points
                ],
            }
            for index, (name, engine, dash, points) in enumerate(known)
        ],
    }


def race_tails(race: Sequence[RepeatedCase]) -> dict[str, Any] | None:
    """Engines side by side in the operation that the case is about."""
    lines: list[Tail] = []
    for group in race[:_MOST_LINES]:
        way = "intended" if group.case.loop == "open" else "service"
        lines += [
            (group.case.title, group.case.engine, "", one)
            for one in group.latencies
            if one.operation == group.main and one.counted == way
        ]
    return tails(lines)


def _share(place: float) -> str:
    """`99.9 %` at one of 1,000."""
    return f"{plain(100 * (1 - 1 / place), 12)} %"


def recoveries(groups: Sequence[RepeatedCase]) -> dict[str, Any] | None:
    """Throughput around the first kill, as a share of the level before."""
    lines = []
    for group in [group for group in groups if group.case.kill and group.measured][:_MOST_LINES]:
        case, found = group.shown
        dip = found.dip
        if dip is None:
            continue
        length = case.windows.length
        kept = [
            (n * length - dip.killed_at, made / length / dip.level * 100)
            for n, made in enumerate(case.windows.operations)
        ]
        lines.append(
            {
                "name": f"{case.title}, {label_shown(case.label)}".strip(", "),
                "what": case.what,
                "engine": case.engine,
                "x": [round(at, 3) for at, _ in kept],
                "y": [round(share, 1) for _, share in kept],
            }
        )
    return {"lines": lines} if lines else None


def balance(groups: Sequence[RepeatedCase]) -> dict[str, Any] | None:
    """Objects of each member over the mean, by engine; of the case with the most members."""
    chosen: dict[str, RepeatedCase] = {}
    for group in groups:
        memory = group.shown[1].memory if group.measured else None
        if memory is not None and memory.entries and sum(memory.entries):
            before = chosen.get(group.case.engine)
            if before is None or len(before.case.members) < len(group.case.members):
                chosen[group.case.engine] = group
    points = []
    for group in chosen.values():
        case, found = group.shown
        if found.memory is None:
            continue
        mean = sum(found.memory.entries) / len(found.memory.entries)
        for member in case.members:
            points.append(
                {
                    "engine": case.engine,
                    "title": case.title,
                    "member": member.index,
                    "objects": member.entries,
                    "share": round(member.entries / mean * 100, 2),
                }
            )
    return {"points": points} if points else None
