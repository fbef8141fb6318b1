"""Chart of one round: each task as a bar over time, and the counters of its hosts below."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gridbench.formats import amount, rounded, scale, shortened, size
from gridbench.pages.chart import Chart, downsample, figure, names_axis, note
from gridbench.pages.colours import SERIES
from gridbench.sync.cases import SyncCase
from gridbench.sync.figures import stragglers
from gridbench.sync.plots import INSTANT
from gridbench.sync.record import STATUSES, HostUse, Round, Sample, TaskRun

_MOST_ROUNDS = 40
_MOST_TASKS = 12_000
"""Tasks of all rounds that are drawn; with more tasks, fewer rounds are."""
_MOST_DRAWN = 400
"""Workers of a round."""
_MOST_SAMPLES = 6_000
"""Samples of all rounds together."""
_MOST_HOSTS = 8
_DASHES = {"solid": "solid", "dash": "dashed", "dot": "dotted"}
"""With their names for people."""
_PANEL = 120
"""Height of the counters, in pixels."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """Counters of hosts over time, below the tasks of a round."""

    title: str
    unit: str
    lines: Sequence[tuple[str, Callable[[Sample], float]]]
    """One for each host, with its name."""


_PANELS = (
    _Panel(
        "Processors",
        "",
        (("busy", lambda s: s.processors), ("waiting for a disk", lambda s: s.waiting)),
    ),
    _Panel("Busiest disk: busy", "%", (("", lambda s: s.disk_busy * 100),)),
    _Panel(
        "Disk traffic",
        "bytes/s",
        (("read", lambda s: s.disk_read), ("written", lambda s: s.disk_written)),
    ),
    _Panel(
        "Network traffic",
        "bytes/s",
        (
            ("in", lambda s: s.network_in),
            ("out", lambda s: s.network_out),
            ("loopback", lambda s: s.loopback),
        ),
    ),
    _Panel("Memory still to be written", "bytes", (("", lambda s: s.dirty),)),
    _Panel(
        "Pressure: time in which something waited",
        "%",
        (
            ("cpu", lambda s: s.pressure.get("cpu", math.nan) * 100),
            ("io", lambda s: s.pressure.get("io", math.nan) * 100),
            ("memory", lambda s: s.pressure.get("memory", math.nan) * 100),
        ),
    ),
)


def shown_rounds(cases: Sequence[SyncCase]) -> list[Round]:
    """The median round of each case, or of evenly picked cases; the most workers first."""
    if not cases:
        return []
    most = max(cases, key=lambda case: case.workers)
    others = [case.shown for case in cases if case is not most]
    largest = max(len(one.tasks) for one in (most.shown, *others))
    room = max(1, min(_MOST_ROUNDS, _MOST_TASKS // max(1, largest)))
    return [most.shown, *(downsample(others, room - 1) if room > 2 else others[: room - 1])]


def round_charts(rounds: Sequence[Round]) -> list[tuple[str, Chart]]:
    """Tasks of each round as bars over time, with the counters of its hosts below them."""
    samples = sum(len(use.during) for one in rounds for use in one.hosts[:_MOST_HOSTS])
    every = max(1, math.ceil(samples / _MOST_SAMPLES))
    return [
        (one.named(), _round_chart(one, f"round-{number}", every))
        for number, one in enumerate(rounds)
        if one.tasks
    ]


def _round_chart(one: Round, name: str, every: int) -> Chart:
    late = {task.worker for task in stragglers(one)}
    tasks = _drawn_tasks(one, late)
    everyone = sorted(one.tasks, key=lambda task: task.worker)
    hosts = list(dict.fromkeys([*(t.host for t in everyone), *(use.host for use in one.hosts)]))
    moments = [m for t in one.tasks for m in (t.began, t.ended) if m is not None]
    unit = scale(max(map(abs, moments), default=1.0), "s")
    panels = _panels(one)
    bars = max(120, 14 * len(tasks) + 30) if len(tasks) < 50 else 700
    height = bars + _PANEL * len(panels)
    domains = [
        [1 - (bars + _PANEL * (n + 1) - 8) / height, 1 - (bars + _PANEL * n + 30) / height]
        for n in range(len(panels))
    ]
    traces = _bars(tasks, hosts, unit.factor) + _marks(tasks, late, unit.factor)
    layout: dict[str, Any] = {"barmode": "overlay", "annotations": []}
    for number, (panel, domain) in enumerate(zip(panels, domains, strict=True), 2):
        lines, suffix = _counter_lines(
            panel, one, hosts, axis=f"y{number}", every=every, factor=unit.factor
        )
        traces += lines
        layout[f"yaxis{number}"] = {
            "domain": domain,
            "rangemode": "tozero",
            "gridcolor": "var(--grid)",
            "linecolor": "var(--axis)",
            "zerolinecolor": "var(--axis)",
            "automargin": True,
        }
        place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        layout["annotations"].append(note(_panel_title(panel, suffix), 0, domain[1], **place))
    some = f" ({len(tasks)} of {len(one.tasks):,} drawn)" if len(tasks) < len(one.tasks) else ""
    ticks = list(range(0, len(tasks), math.ceil(len(tasks) / 40)))
    return figure(
        traces,
        x={
            "title": f"{INSTANT} [{unit.suffix}]",
            "zeroline": True,
            "anchor": f"y{len(panels) + 1}" if panels else "y",
        },
        y=names_axis(
            tasks,
            title=f"worker{some}",
            tickvals=ticks,
            ticktext=[str(tasks[n].worker) for n in ticks],
            domain=[1 - bars / height, 1],
        ),
        label=f"Begin and end of each task, and counters of the hosts: {one.named()}",
        name=name,
        height=height + 100,
        layout=layout,
    )


def _drawn_tasks(one: Round, late: set[int]) -> list[TaskRun]:
    """All tasks by worker; of many, failed tasks and stragglers among evenly picked ones."""
    tasks = sorted(one.tasks, key=lambda task: task.worker)
    if len(tasks) <= _MOST_DRAWN:
        return tasks
    special = [t for t in tasks if t.worker in late or t.status != "ok"][: _MOST_DRAWN // 2]
    picked = downsample(tasks, _MOST_DRAWN - len(special))
    return sorted({t.worker: t for t in (*picked, *special)}.values(), key=lambda t: t.worker)


def _bars(tasks: Sequence[TaskRun], hosts: Sequence[str], factor: float) -> list[dict[str, Any]]:
    """The tasks of each host in its colour."""
    traces = []
    for place, host in enumerate(hosts):
        own = [
            (n, t, t.began, t.ended)
            for n, t in enumerate(tasks)
            if t.host == host and t.began is not None and t.ended is not None
        ]
        if own:
            traces.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": shortened(host, 30),
                    "showlegend": 1 < len(hosts) <= 12,
                    "y": [n for n, *_ in own],
                    "base": [round(began * factor, 6) for *_, began, _ in own],
                    "x": [round((ended - began) * factor, 6) for *_, began, ended in own],
                    # By default bars are as wide as the distance of workers of one host.
                    "width": 1 if len(tasks) > 120 else 0.75,
                    "marker": {"color": SERIES[place % len(SERIES)]},
                    "text": [_hover(task) for _, task, *_ in own],
                    "textposition": "none",
                    "hovertemplate": "%{text}<extra></extra>",
                }
            )
    return traces


def _marks(tasks: Sequence[TaskRun], late: set[int], factor: float) -> list[dict[str, Any]]:
    """Marks at the ends of stragglers and of tasks that did not end well."""
    kinds = (
        ("straggler", "triangle-left", lambda t: t.worker in late),
        ("failed", "x", lambda t: t.status == "failed"),
        ("timed out", "hourglass", lambda t: t.status == "timeout"),
        ("lost", "cross", lambda t: t.status == "lost"),
    )
    traces = []
    for name, symbol, has in kinds:
        if picked := [(n, task) for n, task in enumerate(tasks) if has(task)]:
            ends = [t.began if t.ended is None else t.ended for _, t in picked]
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "showlegend": True,
                    "y": [n for n, _ in picked],
                    "x": [round((end or 0.0) * factor, 6) for end in ends],
                    "text": [_hover(task) for _, task in picked],
                    "marker": {"symbol": symbol, "size": 10, "color": "var(--ink)"},
                    "cliponaxis": False,
                    "hovertemplate": "%{text}<extra></extra>",
                }
            )
    return traces


def _hover(task: TaskRun) -> str:
    reported = [f"worker {task.worker} on {task.host}: {STATUSES[task.status]}"]
    if task.began is not None:
        reported.append(f"began {amount(task.began, 's')} after the agreed instant")
    if task.began is not None and task.ended is not None:
        used = amount(task.user + task.system, "s")
        reported.append(
            f"ran {amount(task.ended - task.began, 's')}; processor time {used},"
            f" memory {size(task.memory)}"
        )
    reported += [task.why] if task.why else []
    reported += [f"{phase.name}: {amount(phase.seconds, 's')}" for phase in task.phases[:6]]
    return "\n".join(shortened(line, 100) for line in reported)


def _panels(one: Round) -> list[_Panel]:
    """The panels with values other than 0."""
    samples = [sample for use in one.hosts for sample in use.during]
    names = sorted({name for sample in samples for name in sample.watched})
    watched = _Panel("Watched programs: processors", "", [(n, _watched(n)) for n in names])
    return [
        panel
        for panel in (*_PANELS, watched)
        if any(math.isfinite(of(s)) and of(s) for s in samples for _, of in panel.lines)
    ]


def _watched(name: str) -> Callable[[Sample], float]:
    return lambda sample: sample.watched.get(name, math.nan)


def _panel_title(panel: _Panel, suffix: str) -> str:
    unit = f" [{suffix}]" if suffix else ""
    names = [name for name, _ in panel.lines if name]
    dashes = itertools.cycle(_DASHES.values())
    reported = [f"{name} ({dash})" for name, dash in zip(names, dashes, strict=False)]
    return f"{panel.title}{unit}{': ' if reported else ''}{', '.join(reported)}"


def _counter_lines(
    panel: _Panel, one: Round, hosts: Sequence[str], *, axis: str, every: int, factor: float
) -> tuple[list[dict[str, Any]], str]:
    """The lines of the busiest hosts, in the colours of their tasks, and the unit."""
    found = []
    busiest = sorted(one.hosts, key=_load, reverse=True)[:_MOST_HOSTS]
    for use in sorted(busiest, key=lambda use: hosts.index(use.host)):
        for way, (name, of) in enumerate(panel.lines):
            stored = [sample for sample in use.during[::every] if math.isfinite(of(sample))]
            if stored:
                found.append((use.host, way, name, stored, [of(sample) for sample in stored]))
    largest = max((abs(y) for *_, values in found for y in values), default=0.0)
    unit = scale(largest, panel.unit)
    traces = [
        {
            "name": ", ".join(filter(None, [name, host])),
            # A sample counts from the end of the one before; the first begins earlier.
            "x": [round(at * factor, 6) for at in _times(stored)],
            "y": [rounded(y * unit.factor, 4) for y in (values[0], *values)],
            "yaxis": axis,
            "mode": "lines" if len(stored) > 1 else "lines+markers",
            "showlegend": False,
            "line": {
                "shape": "vh",
                "width": 1.8,
                "color": SERIES[hosts.index(host) % len(SERIES)],
                "dash": list(_DASHES)[way % len(_DASHES)],
            },
            "hovertemplate": "%{fullData.name}<br>%{y} at %{x}<extra></extra>",
        }
        for host, way, name, stored, values in found
    ]
    return traces, unit.suffix if panel.unit else ""


def _times(samples: Sequence[Sample]) -> Iterable[float]:
    return (samples[0].at - samples[0].seconds, *(sample.at for sample in samples))


def _load(use: HostUse) -> float:
    """How busy a host was."""
    samples = use.during or ((use.whole,) if use.whole else ())
    return sum(sample.processors + sample.waiting for sample in samples)
