"""Charts of runs. A page has to open fast and stay small enough to be sent, so charts of single
tasks show a part of many tasks; the timeline has all of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gridbench.analysis.columns import Floats, Integers, numbered, seconds
from gridbench.analysis.summary import thinned
from gridbench.formats import counted, digits, duration, round_amount, shortened
from gridbench.pages.chart import Chart, figure, horizontal, names_axis, note, vertical
from gridbench.pages.colours import PHASES, engine_colours
from gridbench.pages.document import ChartChoice
from gridbench.pages.table import Table
from gridbench.report.prose import certain
from gridbench.report.run_analysis import Study, counts, label

MOST_TASKS = 1_500
"""Single tasks on a page, of all runs together."""
FEWEST_TASKS = 200
"""Single tasks of each run, however many runs there are."""
_MOST_STEPS = 400
"""Last steps of the critical path."""
_CURVE_POINTS = 1_000
_NAMED_LANES = 45
"""Most workers with their names at the axis."""
_DECIMALS = 7
"""Of a second: finer than any timestamp is accurate."""
_OWN = "sleep"
"""The part that is no cost, and is not drawn."""
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SINCE_START = {"title": "time since t = 0 [s]", "rangemode": "tozero"}
# Stamps that mostly coincide are drawn wide below narrow.
_STAMPS = (
    ("retrieve", PHASES["output"], 5),
    ("calc_out", PHASES["sleep"], 1.5),
    ("calc_in", PHASES["input"], 5),
    ("queued", PHASES["queue"], 1.5),
    ("submit", PHASES["dispatch"], 2),
)


def totals_chart(studies: Sequence[Study]) -> Chart:
    """Total time of each engine: the median as a bar, each round as a tick; the fastest first."""
    found = [(s, totals_of(s)) for s in studies if math.isfinite(s.end) and s.end > 0]
    bars = sorted(((s, t, statistics.median(t)) for s, t in found), key=lambda bar: bar[2])
    rows = list(range(len(bars)))
    longest = [max(totals) for _, totals, _ in bars]
    colours = [_colour(study) for study, _, _ in bars]
    texts = [
        f"  {duration(median)}" + (f" ({digits(median / bars[0][2])} times)" if row else "")
        for row, (_, _, median) in enumerate(bars)
    ]
    solid = [s.rounds.totals if s.rounds else counts(s) for s, _, _ in bars]
    traces: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": "median",
            "y": rows,
            "x": [median for *_, median in bars],
            "width": 0.6,
            "marker": {
                "color": [c if ok else f"{c}55" for c, ok in zip(colours, solid, strict=True)],
                "line": {"width": 1.5, "color": colours},
            },
            "hovertemplate": "%{x:.4f} s<extra></extra>",
        },
        {
            "mode": "markers",
            "name": "round",
            "x": [total for _, totals, _ in bars for total in totals],
            "y": [row for row, (_, totals, _) in enumerate(bars) for _ in totals],
            "marker": {
                "symbol": "line-ns-open",
                "size": 14,
                "color": "var(--ink)",
                "line": {"width": 1.5},
            },
            "hovertemplate": "a round: %{x:.4f} s<extra></extra>",
        },
        {
            "mode": "text",
            "x": longest,
            "y": rows,
            "text": texts,
            "textposition": "middle right",
            "textfont": {"size": 13, "color": "var(--ink)"},
            "hoverinfo": "skip",
            "cliponaxis": False,
        },
    ]
    return figure(
        traces if bars else (),
        x={"title": "total time [s]", "range": [0, 1.3 * max(longest, default=1.0)]},
        y=names_axis([shortened(study.run.name, 28) for study, _, _ in bars], ticks=""),
        label="Total time of each engine",
        name="totals",
        about="Bars are medians, ticks single rounds; pale bars are provisional.",
        height=84 + 36 * len(bars),
        layout={"margin": {"l": 20, "r": 16, "t": 6, "b": 52}, "showlegend": False},
    )


def totals_of(study: Study) -> tuple[float, ...]:
    """Total times of its rounds: of those that count or, if none does, of disturbed ones."""
    rounds = study.rounds
    return (rounds.totals or rounds.disturbed if rounds else ()) or (study.end,)


def running_chart(studies: Sequence[Study], *, title: str = "") -> Chart:
    """Tasks that run at the same time."""
    several = len(studies) > 1
    traces, highest = [], 0
    for study in studies:
        steps = thinned(study.concurrency, _CURVE_POINTS)
        if not len(steps.time):
            continue
        running = [0, *steps.running.tolist()]
        highest = max(highest, study.run.nnodes, *running)
        traces.append(
            {
                "name": study.run.name,
                "x": [0, *_numbers(steps.time)],
                "y": running,
                "mode": "lines",
                "line": {
                    "shape": "hv",
                    "width": 1.6,
                    "color": _colour(study),
                    "dash": _dash(study, studies),
                },
                "fill": "none" if several else "tozeroy",
                "fillcolor": f"{_colour(study)}1f",
                "showlegend": several,
                "hovertemplate": "%{y} tasks at %{x:.4f} s<extra>%{fullData.name}</extra>",
            }
        )
    return figure(
        traces,
        x=_SINCE_START,
        y={"title": "tasks running", "range": [0, 1.06 * highest]},
        label="Tasks running over time",
        name="running",
        title=title,
        height=360,
        layout={"shapes": [*map(horizontal, sorted({s.run.nnodes for s in studies}))]},
    )


def cost_chart(studies: Sequence[Study], title: str = "", table: Table | None = None) -> Chart:
    """Seconds of a worker beside the tasks themselves, by what they went into."""
    parts = [study.cost.parts() if study.cost else {} for study in studies]
    shown = {"name": "cost", "label": "Cost of the job, per worker", "title": title}
    return _parts_chart(studies, parts, "seconds per worker", table=table, **shown)


def phases_chart(studies: Sequence[Study], title: str = "", table: Table | None = None) -> Chart:
    """Mean phases of a task, without the task itself."""
    parts = [study.phases.means() for study in studies]
    shown = {"name": "phases", "label": "Phases of a task, mean", "title": title}
    return _parts_chart(studies, parts, "seconds per task, mean", table=table, **shown)


def _parts_chart(
    studies: Sequence[Study], parts: Sequence[Mapping[str, float]], unit: str, **shown: Any
) -> Chart:
    """Parts of a time end to end, a bar for each run."""
    known = [
        (study, own)
        for study, own in zip(studies, parts, strict=True)
        if any(math.isfinite(value) for part, value in own.items() if part != _OWN)
    ]
    names = [part for part in (known[0][1] if known else ()) if part != _OWN]
    seen = [part for part in names if any(_drawn(own[part]) for _, own in known)]
    top = 34 + 20 * math.ceil(len(seen) / 2)
    return figure(
        [
            {
                "type": "bar",
                "orientation": "h",
                "name": label(part),
                "y": list(range(len(known))),
                "x": [_number(own[part]) for _, own in known],
                "width": 0.55,
                "marker": {"color": PHASES[label(part)]},
                "text": [certain(part, own[part], study) for study, own in known],
                "textposition": "none",
                "hovertemplate": f"{label(part)}: %{{text}}<extra></extra>",
            }
            for part in seen
        ],
        x={"title": unit, "rangemode": "tozero"},
        y=names_axis([_in_lines(study.run.name) for study, _ in known]),
        height=100 + top + 44 * len(known),
        layout={"barmode": "relative", "margin": {"l": 20, "r": 24, "t": top, "b": 52}},
        **shown,
    )


def _drawn(value: float) -> bool:
    return math.isfinite(value) and value != 0


def overhead_chart(studies: Sequence[Study]) -> Chart:
    """Share of the tasks with at most this overhead."""
    traces, hidden = [], False
    for study in studies:
        for kind, of in (("handling", study.handling), ("round trip", study.round_trip)):
            values, share = of.curve(_CURVE_POINTS // 2)
            # A logarithmic axis has no place for 0 and less.
            stored = values > 0
            hidden = hidden or not stored.all()
            if not stored.any():
                continue
            handling = kind == "handling"
            traces.append(
                {
                    "name": f"{study.run.name}: {kind}" if len(studies) > 1 else kind,
                    "x": _numbers(values[stored], 9),
                    "y": _numbers(share[stored] * 100, 4),
                    "mode": "lines" if stored.sum() > 1 else "markers",
                    "line": {
                        "shape": "hv",
                        "width": 2.2 if handling else 1.6,
                        "color": _colour(study),
                        "dash": "solid" if handling else "dot",
                    },
                    "hovertemplate": "%{y:.2f} % of the tasks: at most %{x:.4s}s"
                    "<extra>%{fullData.name}</extra>",
                }
            )
    levels = (50, 90, 99)
    soft = {"font": {"size": 11, "color": "var(--soft)"}}
    left = {"xref": "paper", "xanchor": "left", "yanchor": "top", **soft}
    notes = [note(f"p{level}", 0.004, level, **left) for level in levels]
    if hidden:
        text = "overheads of 0 and less have no place on this axis"
        corner = {"xref": "paper", "yref": "paper", "xanchor": "right", "yanchor": "bottom"}
        notes.append(note(text, 1, 1, **corner, **soft))
    decades = [10.0**power for power in range(-7, 6)]
    return figure(
        traces,
        x={
            "title": "overhead per task, logarithmic",
            "type": "log",
            "tickvals": decades,
            "ticktext": [round_amount(value, "s") for value in decades],
            "minor": {"ticks": "outside", "ticklen": 3, "dtick": "D1"},
        },
        y={"title": "share of the tasks [%]", "range": [0, 101.5]},
        label="Overhead per task",
        name="overhead",
        height=400,
        layout={"shapes": [*map(horizontal, levels)], "annotations": notes},
    )


# ---- Single tasks


def most_tasks(studies: Sequence[Study]) -> int:
    """How many tasks of each of these runs a page shows at most."""
    return max(FEWEST_TASKS, MOST_TASKS // max(1, len(studies)))


def shown_tasks(study: Study, most: int) -> Integers:
    """Rows of the tasks that a page shows, in order: all, or `most`.

    A quarter of these are at the end of the critical path, a quarter are the longest, and the rest
    is an even sample of all others.
    """
    count = study.tasks
    if count <= most:
        return np.arange(count)
    taken = np.zeros(count, dtype=np.bool_)
    path = dict.fromkeys(step.row for step in reversed(study.path))
    taken[list(path)[: most // 4]] = True
    table = study.run.table
    length = np.nan_to_num(seconds(table, "retrieve") - seconds(table, "submit"), nan=-np.inf)
    taken[np.argsort(-length, kind="stable")[: most // 4]] = True
    others = np.flatnonzero(~taken)
    missing = most - int(taken.sum())
    taken[others[np.linspace(0, len(others) - 1, missing).round().astype(np.int64)]] = True
    return np.flatnonzero(taken)


def stamps_choice(study: Study, number: int, rows: Integers) -> ChartChoice:
    """The stamps of the tasks in `rows`, in the order of the first stamp or of the last."""
    orders = (
        ("submit", "Sorted by submit time: the beginning shows start-up, shared data and inputs."),
        ("retrieve", "Sorted by retrieve time: the end shows outputs."),
    )
    charts = [
        (f"by {order} time", _stamps_chart(study, number, rows, order, about))
        for order, about in orders
    ]
    return ChartChoice("Order of the tasks", charts)


def _stamps_chart(study: Study, number: int, rows: Integers, order: str, about: str) -> Chart:
    by = seconds(study.run.table, order)[rows]
    rows = rows[np.argsort(by, kind="stable")][: int(np.isfinite(by).sum())]
    tasks = _ids(study, rows)
    table = study.run.table
    stamps = [(name, seconds(table, name)[rows], colour, wide) for name, colour, wide in _STAMPS]
    return figure(
        [
            {
                "name": label(column),
                "x0": 1,
                "y": _numbers(values),
                "mode": "lines" if len(rows) > 100 else "lines+markers",
                "marker": {"size": width + 3, "color": colour},
                "line": {"color": colour, "width": width},
                "hovertemplate": "%{y:.6f} s",
                # One label shows all stamps of a task, so that one of them names it.
                **(
                    {"customdata": tasks, "hovertemplate": "%{y:.6f} s, task %{customdata}"}
                    if column == order
                    else {}
                ),
            }
            for column, values, colour, width in stamps
            if np.isfinite(values).any()
        ],
        x={"title": f"tasks, sorted by {order} time", "hoverformat": ",d"},
        y=_SINCE_START,
        label="The stamps of each task",
        name=f"stamps-{number}-{order}",
        title="The stamps of each task",
        about=about,
        height=440,
        layout={"legend": {"traceorder": "reversed"}, "hovermode": "x unified"},
    )


def gantt_chart(study: Study, number: int, rows: Integers) -> Chart:
    """The tasks in `rows` as bars over time, a line for each worker, and the critical path."""
    lane, names = study.lanes.lane, study.lanes.names
    rows = rows[lane[rows] >= 0]
    begin, calc_in = study.input_begin[rows], seconds(study.run.table, "calc_in")[rows]
    calc_out, back = (seconds(study.run.table, n)[rows] for n in ("calc_out", "retrieve"))
    first = (study.lanes.previous[rows] < 0) & study.run.cold
    phases = (
        ("start-up and first input", PHASES["start-up"], begin, calc_in, first),
        ("input", PHASES["input"], begin, calc_in, ~first),
        ("processing", PHASES["sleep"], calc_in, calc_out, True),
        ("output", PHASES["output"], calc_out, back, True),
    )
    # A light edge separates tasks that follow each other, while there is room for it.
    edge = 0.6 if len(names) <= 120 and len(rows) <= 40 * len(names) else 0
    traces: list[dict[str, Any]] = []
    for name, colour, start, stop, those in phases:
        drawn = np.flatnonzero((stop > start) & those)
        if not len(drawn):
            continue
        trace = {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": lane[rows[drawn]].tolist(),
            "base": _numbers(start[drawn]),
            "x": _numbers((stop - start)[drawn]),
            "width": 0.8,
            "marker": {"color": colour, "line": {"width": 0}},
            "customdata": _ids(study, rows[drawn]),
            "hovertemplate": f"task %{{customdata}}: {name} %{{x:.4s}}s,"
            " from %{base:.6f} s<extra></extra>",
        }
        if name == "processing":
            trace["marker"] = {"color": colour, "line": {"color": "var(--paper)", "width": edge}}
            trace["hovertext"] = [shortened(names[n], 60) for n in lane[rows[drawn]].tolist()]
            trace["hovertemplate"] = (
                "task %{customdata} on %{hovertext}<br>calc-in %{base:.6f} s,"
                " processing %{x:.4s}s<extra></extra>"
            )
        traces.append(trace)
    if not traces:
        return figure((), x={}, y={}, label="Gantt chart", name=f"gantt-{number}")
    traces += _path_trace(study)
    named = len(names) <= _NAMED_LANES
    some = (
        f" {len(rows):,} of {counted(study.tasks, 'task')} are shown."
        if len(rows) < study.tasks
        else ""
    )
    end, top = study.end, {"yref": "paper", "xanchor": "right", "yanchor": "bottom"}
    mark = {
        "shapes": [vertical(end)],
        "annotations": [note(f"end of job, {duration(end)}", end, 1, **top)],
    }
    axis = names_axis([shortened(name, 24) for name in names])
    if not named:
        axis |= {"title": "worker", "tickvals": None, "ticktext": None}
    return figure(
        traces,
        x=_SINCE_START,
        y=axis,
        label="What each worker did, over time",
        name=f"gantt-{number}",
        title="Gantt chart",
        about=f"One line per worker.{some}",
        height=min(860, max(220, 130 + 18 * len(names))),
        layout={"barmode": "overlay", **(mark if math.isfinite(end) else {})},
    )


def _path_trace(study: Study) -> list[dict[str, Any]]:
    steps = study.path[-_MOST_STEPS:]
    if not steps:
        return []
    texts = [f"critical path: {step.kind}, {duration(step.length)}" for step in steps]
    lanes = [int(study.lanes.lane[step.row]) for step in steps]
    return [
        {
            "name": "critical path",
            "mode": "lines",
            "x": [x for step in steps for x in (_number(step.begin), _number(step.end))],
            "y": [lane for lane in lanes for _ in range(2)],
            "text": [text for text in texts for _ in range(2)],
            "line": {"color": "var(--ink)", "width": 2},
            "hovertemplate": "%{text}<extra></extra>",
        }
    ]


def tasks_table(study: Study, rows: Integers) -> Table:
    """The timeline of the tasks in `rows`."""
    table = study.run.table
    columns: dict[str, list[str]] = {"task": [f"{task}" for task in _ids(study, rows)]}
    for name in ("submit", "queued", "calc_in", "calc_out", "retrieve"):
        columns[label(name)] = [duration(value) for value in seconds(table, name)[rows].tolist()]
    for name in ("worker", "host", "status"):
        words, codes = numbered(table, name)
        columns[name] = [words[code] for code in codes[rows].tolist()]
    return Table([*columns], list(zip(*columns.values(), strict=True)))


# ---- What charts share


def _colour(study: Study) -> str:
    """Its engine's; runs of one engine differ in their dashes."""
    return engine_colours([study.run.engine])[study.run.engine]


def _dash(study: Study, studies: Sequence[Study]) -> str:
    own = [id(one) for one in studies if one.run.engine == study.run.engine]
    return _DASHES[own.index(id(study)) % len(_DASHES)]


def _in_lines(name: str) -> str:
    """A case, its engine and where the workers were have a line each, so that none is cut off."""
    lines = name.replace(" on ", ", on ").split(", ")
    return "\n".join(shortened(line, 40) for line in lines)


def _ids(study: Study, rows: Integers) -> list[Any]:
    return [study.run.table["tid"][row].as_py() for row in rows.tolist()]


def _numbers(values: Floats, decimals: int = _DECIMALS) -> list[float | None]:
    return [v if math.isfinite(v) else None for v in np.round(values, decimals).tolist()]


def _number(value: float) -> float | None:
    return round(value, 9) if math.isfinite(value) else None
