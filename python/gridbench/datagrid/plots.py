"""The charts about cases on data grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gridbench.datagrid.cases import KB_IN_MB, Axis, DataGridSweep, LoopComparison, RepeatedCase
from gridbench.datagrid.figures import operations_of_task, tail
from gridbench.datagrid.record import COUNTED, DataGridCase, Latencies
from gridbench.datagrid.tables import SLIDES, line_name, place_shown
from gridbench.datagrid.workload import label_shown
from gridbench.formats import amount, plain, rounded, scale, whole
from gridbench.pages.chart import Chart, downsample, figure, names_axis, note, vertical
from gridbench.pages.colours import engine_colours
from gridbench.pages.curves import Curve, Line, Place, Point, exactly
from gridbench.published.figures import FIT_OPERATIONS, UNLOADED_OPERATIONS, data_grid_slides
from gridbench.statistics.interval import Interval

_MOST_LINES = 12
_FIT_POINTS = 40
_MOST_CASES = 40
"""Cases shown task by task."""
_MOST_TASKS = 20_000
"""Tasks of all of these cases."""
_MOST_OF_CASE = 4_000
"""Tasks of a case: of more, the first ones of each client are shown."""
_MOST_CLIENTS = 100
_MOST_WINDOWS = 1_500
X_TITLES: dict[Axis, str] = {
    "ObjectSize": "object size",
    "NNodes": "clients",
    "MNodes": "members",
}
_BARS = "Bars reach from the smallest to the largest of the repeats; a hollow mark does not count."
_TIME = "time since all clients began"
_PUBLISHED = "#7d8590"
"""The colour of published figures, which belong to no engine that was measured."""


# ---- Over object size, clients or members


def over(sweeps: Sequence[DataGridSweep], name: str) -> list[Curve]:
    """Times and throughput over an axis: for each label one picture of each."""
    labels = list(dict.fromkeys(sweep.first.case.label for sweep in sweeps))
    found = []
    for label in labels:
        own = [sweep for sweep in sweeps if sweep.first.case.label == label][:_MOST_LINES]
        found += [_times(own, f"{name}-{label}-time"), _rates(own, f"{name}-{label}-rate")]
    return [one for one in found if one.drawn]


def memory(sweeps: Sequence[DataGridSweep]) -> list[Curve]:
    """Memory of a member over object size and over members: of the first label that there is, as
    the data are the same for all."""
    found = []
    for axis in dict.fromkeys(sweep.axis for sweep in sweeps):
        own = [sweep for sweep in sweeps if sweep.axis == axis]
        label = own[0].first.case.label
        own = [sweep for sweep in own if sweep.first.case.label == label][:_MOST_LINES]
        found.append(
            _curve(
                f"memory-{axis.lower()}",
                own,
                [_line(sweep, _memory) for sweep in own],
                title=f"Memory of a member over {X_TITLES[axis]}",
                about=f"In use after loading, without garbage: the mean of the members. {_BARS}",
                y_title="in use of a member",
                unit="bytes",
            )
        )
    return [one for one in found if one.drawn]


def _memory(group: RepeatedCase) -> Interval | None:
    return group.interval(lambda f: f.memory.mean if f.memory else math.nan)


def _times(sweeps: Sequence[DataGridSweep], name: str) -> Curve:
    axis = sweeps[0].axis
    every = FIT_OPERATIONS if axis == "ObjectSize" else UNLOADED_OPERATIONS
    fits = [line for sweep in sweeps if (line := _fit(sweep, every)) is not None]
    lines = [_scaled(sweep, every, joined=not fits) for sweep in sweeps]
    slides = _slides(sweeps)
    tasks = [operations_of_task(group.case) for sweep in sweeps for group in sweep.groups]
    about = f"The median task without start-up. {_BARS}"
    if any(operations != every for operations in tasks):
        about += (
            f" Some tasks have another number of operations: times are those of {every:,} of them."
        )
    if fits:
        about += " Dotted lines are the fits in the table above."
    if slides:
        clients = (
            "10 clients"
            if every == FIT_OPERATIONS
            else "1 or 10 clients; the slides do not name the operation"
        )
        about += (
            " The dashed line is the slides' preliminary figure of Coherence on 8 members, with"
            f" {clients}."
        )
    what = f"time of {every:,} operations"
    return _curve(
        name,
        sweeps,
        [*lines, *fits, *slides],
        title=_title(sweeps, what),
        about=about,
        y_title=what,
        unit="s",
    )


def _rates(sweeps: Sequence[DataGridSweep], name: str) -> Curve:
    by_size = sweeps[0].axis == "ObjectSize"
    what = "objects' bytes per second" if by_size else "operations per second"

    def rate(group: RepeatedCase) -> Interval | None:
        return group.interval(lambda f: f.bandwidth if by_size else f.throughput)

    return _curve(
        name,
        sweeps,
        [_line(sweep, rate) for sweep in sweeps],
        title=_title(sweeps, what),
        about=f"Of all clients together. {_BARS}",
        y_title=what,
        unit="bytes/s" if by_size else "/s",
    )


def _title(sweeps: Sequence[DataGridSweep], what: str) -> str:
    label = label_shown(sweeps[0].first.case.label)
    return f"{label}: {what} over {X_TITLES[sweeps[0].axis]}".strip(": ")


def _curve(
    name: str, sweeps: Sequence[DataGridSweep], lines: Sequence[Line], **texts: Any
) -> Curve:
    """`texts`: title, about, y_title and unit."""
    x_title, places = X_TITLES[sweeps[0].axis], _places(sweeps)
    return Curve(id=name, x_title=x_title, places=places, lines=lines, **texts)


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
    values = [(place, fit.at(place / KB_IN_MB)) for place in _between(low, high)]
    points = [_reference(place, value, sweep.axis) for place, value in values if value > 0]
    name = f"{line_name(sweep)}, fit"
    return Line(name, points, engine=sweep.first.case.engine, dash="dot", in_legend=False)


def _slides(sweeps: Sequence[DataGridSweep]) -> list[Line]:
    """The preliminary figures where they are of the same."""
    slides = data_grid_slides()
    axis, label = sweeps[0].axis, sweeps[0].first.case.label
    places = [place.x for place in _places(sweeps)]
    low, high = min(places), max(places)
    if low <= 0 or (axis == "ObjectSize" and label != "update"):
        return []
    if axis == "ObjectSize":
        summary_text = f"{slides.update_per_mb.text} s/MB × size + {slides.update_constant.text} s"
        values = [(one, slides.update_time(one / KB_IN_MB)) for one in _between(low, high)]
    else:
        summary_text = f"{slides.unloaded.text} s, unloaded"
        values = [(one, slides.unloaded.value) for one in (low, high)]
    points = [_reference(place, value, axis) for place, value in values]
    return [Line(f"{SLIDES}: {summary_text}", points, dash="dash", colour=_PUBLISHED)]


def _between(low: float, high: float) -> list[float]:
    return [low * (high / low) ** (n / (_FIT_POINTS - 1)) for n in range(_FIT_POINTS)]


def _reference(place: float, value: float, axis: Axis) -> Point:
    return Point(_place(axis, place), exactly(value), counts=True)


def _places(sweeps: Sequence[DataGridSweep]) -> list[Place]:
    places = sorted({sweep.place(group) for sweep in sweeps for group in sweep.groups})
    return [_place(sweeps[0].axis, place) for place in places]


def _place(axis: Axis, place: float) -> Place:
    return Place(place, place_shown(axis, place) if axis == "ObjectSize" else whole(place))


# ---- Latencies

Tail = tuple[str, str, str, Latencies]
"""Name of the line, engine, dash (`solid` for none), and its latencies."""


def tails(lines: Iterable[Tail], name: str, title: str, about: str = "") -> Chart | None:
    """Latency over the share of faster operations, on a logarithmic axis of the slower ones; None
    if there is no latency."""
    known = [(line, points) for line in lines if (points := tail(line[-1]))]
    if not known:
        return None
    most = max(place for _, points in known for place, _ in points)
    ticks = [2.0, *(10.0**n for n in range(1, math.floor(math.log10(most)) + 1))]
    chart = Curve(
        id=name,
        title=title,
        about=about,
        x_title="share of operations that are faster",
        places=[Place(1.0, ""), *(Place(tick, _faster(tick)) for tick in ticks), Place(most, "")],
        y_title="latency",
        unit="s",
        lines=[
            Line(
                text,
                [
                    Point(Place(rounded(place, 6), _faster(place)), exactly(value), counts=True)
                    for place, value in points
                ],
                engine=engine,
                dash=dash,
            )
            for (text, engine, dash, _), points in known
        ],
    ).chart()
    return replace(chart, table=None)


def _faster(place: float) -> str:
    """`99.9 %` at one of 1,000."""
    return f"{plain(100 * (1 - 1 / place), 12)} %"


def race_tails(race: Sequence[RepeatedCase], name: str) -> Chart | None:
    """Engines side by side in the operation that the case is about."""
    lines: list[Tail] = []
    for group in race[:_MOST_LINES]:
        way = "intended" if group.case.loop == "open" else "service"
        lines += [
            (group.case.title, group.case.engine, "solid", one)
            for one in group.latencies
            if one.operation == group.main and one.counted == way
        ]
    about = (
        "The further to the right, the fewer operations are slower: at 99 % one of a hundred is."
        " All operations of all repeats that count."
    )
    return tails(lines, name, f"Latencies, {race[0].case.what}", about)


def loop_tails(one: LoopComparison, name: str) -> Chart | None:
    """The closed loop, and both ways to count in the open one."""
    case, lines = one.open.case, list[Tail]()
    for group, loop in ((one.closed, "closed loop"), (one.open, "open loop")):
        for known in group.latencies if group else []:
            if known.operation == one.operation:
                way = f", {COUNTED[known.counted]}" if loop == "open loop" else ""
                opened = "dot" if known.counted == "service" else "solid"
                dash = "dash" if loop == "closed loop" else opened
                lines.append((f"{loop}{way}", case.engine, dash, known))
    return tails(lines, name, f"{case.title}, {one.operation} at {amount(case.rate, '/s')}")


# ---- Members


def recoveries(groups: Sequence[RepeatedCase]) -> Chart | None:
    """Throughput around the first kill, as a share of the level before."""
    traces: list[dict[str, Any]] = []
    for group in [one for one in groups if one.case.kill and one.measured][:_MOST_LINES]:
        case, found = group.shown
        if found.dip is None:
            continue
        length, dip = case.windows.length, found.dip
        name = f"{case.title}, {label_shown(case.label)}".strip(", ")
        of_engine = sum(one["legendgroup"] == case.engine for one in traces)
        traces.append(
            _steps(
                name,
                [round(n * length - dip.killed_at, 3) for n in range(len(case.windows.operations))],
                [round(made / length / dip.level * 100, 1) for made in case.windows.operations],
                _colour(case),
                ("solid", "dash", "dot", "dashdot")[of_engine % 4],
            )
            | {"legendgroup": case.engine, "hovertemplate": "%{y} % at %{x} s"}
        )
    if not traces:
        return None
    return figure(
        traces,
        x={"title": "time since the kill [s]"},
        y={"title": "throughput, of the level before [%]", "rangemode": "tozero"},
        label="Throughput around the kill, as a share of the level before",
        name="recovery",
        layout={"showlegend": len(traces) > 1, "shapes": [_mark(0.0)]},
    )


def balance(groups: Sequence[RepeatedCase]) -> Chart | None:
    """Objects of each member over the mean, by engine; of the case with the most members."""
    chosen: dict[str, DataGridCase] = {}
    for group in groups:
        case, found = group.shown
        if group.measured and found.memory is not None and any(found.memory.entries):
            before = chosen.get(case.engine)
            if before is None or len(before.members) < len(case.members):
                chosen[case.engine] = case
    traces: list[dict[str, Any]] = []
    for case in chosen.values():
        mean = sum(one.entries for one in case.members) / len(case.members)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": case.title,
                "x": [round(one.entries / mean * 100, 2) for one in case.members],
                "y": [case.title] * len(case.members),
                "text": [f"member {one.index}: {one.entries:,} objects" for one in case.members],
                "hovertemplate": "%{text}, %{x} % of the mean<extra></extra>",
                "marker": {"color": _colour(case), "size": 11, "opacity": 0.75},
            }
        )
    if not traces:
        return None
    return figure(
        traces,
        x={"title": "objects [% of the mean]", "zeroline": False},
        y={"title": "", "autorange": "reversed"},
        label="Objects of each member against the mean of all members",
        name="balance",
        title="Objects of each member",
        about="Of the case with the most members of each product.",
        height=120 + 34 * len(traces),
        layout={"showlegend": False},
    )


# ---- One case, task by task


def shown_cases(groups: Sequence[RepeatedCase]) -> list[RepeatedCase]:
    """Of all cases that have tasks, as many as find room, evenly picked; those in which a member
    was killed are among them."""
    having = [group for group in groups if group.measured and group.shown[0].tasks.id]
    killed = [group for group in having if group.case.kill][: _MOST_CASES // 2]
    others = [group for group in having if not group.case.kill]
    room = _MOST_CASES - len(killed)
    stored = downsample(others, room) if len(others) > room > 1 else others[:room]
    chosen = {id(group) for group in (*killed, *stored)}
    return [group for group in having if id(group) in chosen]


def task_chart(case: DataGridCase, name: str, cases: int) -> Chart:
    """When each task began and ended, client by client; of many tasks the first ones of each
    client, if so many `cases` are shown."""
    tasks, unit = case.tasks, scale(max(case.tasks.ended, default=1.0), "s")
    drawn = _drawn(case, min(_MOST_OF_CASE, _MOST_TASKS // max(1, cases)))
    clients = list(dict.fromkeys(tasks.client[at] for at in drawn))
    row = {client: number for number, client in enumerate(clients)}
    began = [round(tasks.began[at] * unit.factor, 5) for at in drawn]
    ended = [round(tasks.ended[at] * unit.factor, 5) for at in drawn]
    bars = {
        "type": "bar",
        "orientation": "h",
        "name": "task",
        "showlegend": False,
        "y": [row[tasks.client[at]] for at in drawn],
        "base": began,
        "x": [round(end - begin, 5) for begin, end in zip(began, ended, strict=True)],
        "width": 0.8,
        "hovertext": [f"task {tasks.id[at]}, client {tasks.client[at]}" for at in drawn],
        "hovertemplate": f"%{{hovertext}}<br>from %{{base}} to %{{x}} {unit.suffix}<extra></extra>",
        "marker": {"color": _colour(case), "line": {"color": "var(--paper)", "width": 1}},
    }
    bad = [at for at in drawn if tasks.why[at]]
    failed = {
        "type": "scatter",
        "mode": "markers",
        "name": "an operation failed",
        "showlegend": True,
        "cliponaxis": False,
        "x": [round(tasks.ended[at] * unit.factor, 5) for at in bad],
        "y": [row[tasks.client[at]] for at in bad],
        "text": [f"task {tasks.id[at]}: {' '.join(tasks.why[at].split())[:120]}" for at in bad],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"symbol": "x", "size": 8, "color": "var(--ink)"},
    }
    ticks = list(range(0, len(clients), max(1, math.ceil(len(clients) / 30))))
    return figure(
        [bars, failed] if bad else [bars],
        x={"title": f"{_TIME} [{unit.suffix}]", "rangemode": "tozero"},
        y=names_axis(
            clients,
            title="client",
            tickvals=ticks,
            ticktext=[str(clients[tick]) for tick in ticks],
        ),
        label="When each task of the case began and ended, client by client",
        name=name,
        title="Tasks of each client",
        about=f"If a case has more than {_MOST_CLIENTS} clients or very many tasks, some of the"
        " clients and the first tasks of each are drawn.",
        height=min(900, max(190, 110 + len(clients) * 18)),
        layout={"barmode": "overlay", **_kills(case, unit.factor)},
    )


def throughput_chart(case: DataGridCase, name: str) -> Chart | None:
    """Operations and errors per second over time; of very many windows, several are one."""
    made, failed = case.windows.operations, case.windows.errors
    if not made:
        return None
    unit = scale(max(case.tasks.ended, default=1.0), "s")
    several = max(1, -(-len(made) // _MOST_WINDOWS))
    length = case.windows.length * several
    x = [round(n * length * unit.factor, 5) for n in range(-(-len(made) // several))]

    def rates(counts: Sequence[int]) -> list[float]:
        starts = range(0, len(made), several)
        return [rounded(sum(counts[at : at + several]) / length, 5) for at in starts]

    hover = {"hovertemplate": f"%{{y:,}}/s at %{{x}} {unit.suffix}"}
    traces = [_steps("done", x, rates(made), _colour(case), "solid") | hover]
    if any(failed):
        traces.append(_steps("failed", x, rates(failed), "var(--ink)", "dot") | hover)
    return figure(
        traces,
        x={"title": f"{_TIME} [{unit.suffix}]", "rangemode": "tozero"},
        y={"title": "operations/s", "rangemode": "tozero", "tickformat": "~s"},
        label="Operations per second over time",
        name=name,
        title="Throughput over time",
        height=330,
        layout={"showlegend": len(traces) > 1, **_kills(case, unit.factor)},
    )


def case_tails(group: RepeatedCase, name: str) -> Chart | None:
    """Latencies of each operation of a case."""
    lines: list[Tail] = [
        (
            f"{one.operation}{', ' + COUNTED[one.counted] if group.case.loop == 'open' else ''}",
            "",
            "dot" if one.counted == "intended" else "solid",
            one,
        )
        for one in group.latencies
    ]
    return tails(lines, name, "Latencies")


def _drawn(case: DataGridCase, most: int) -> list[int]:
    """The tasks that are drawn, by client and time."""
    tasks = case.tasks
    stored = set(downsample(sorted(set(tasks.client)), _MOST_CLIENTS))
    each = max(1, most // max(1, len(stored)))
    count: dict[int, int] = {}
    drawn = []
    for at in sorted(range(len(tasks.id)), key=lambda at: (tasks.client[at], tasks.began[at])):
        client = tasks.client[at]
        count[client] = count.get(client, 0) + 1
        if client in stored and count[client] <= each:
            drawn.append(at)
    return drawn


def _colour(case: DataGridCase) -> str:
    return engine_colours([case.engine])[case.engine]


def _steps(
    name: str, x: Sequence[float], y: Sequence[float], colour: str, dash: str
) -> dict[str, Any]:
    """Values of windows, the last of which has an end too."""
    step = x[1] - x[0] if len(x) > 1 else 1.0
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [*x, round(x[-1] + step, 5)],
        "y": [*y, y[-1]],
        "line": {"shape": "hv", "color": colour, "width": 1.8, "dash": dash},
    }


def _kills(case: DataGridCase, factor: float) -> Mapping[str, Any]:
    """Marks where members were killed."""
    kills = [(one.index, one.killed_at) for one in case.members if one.killed_at is not None]
    top = {"yref": "paper", "yanchor": "top", "xanchor": "left"}
    return {
        "shapes": [_mark(at * factor) for _, at in kills],
        "annotations": [note(f"member {n} killed", at * factor, 1, **top) for n, at in kills],
    }


def _mark(at: float) -> dict[str, Any]:
    return vertical(at, "var(--soft)")
