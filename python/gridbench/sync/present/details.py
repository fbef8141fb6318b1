"""The rounds that the page shows worker by worker: of each case the one in the middle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gridbench.formats import NOTHING, amount, fixed, percent, processors, rounded, scale, size
from gridbench.machine.rule import disturbed
from gridbench.pages.downsample import evenly
from gridbench.sync.cases import SyncCase
from gridbench.sync.figures import figures_of, stragglers, timed
from gridbench.sync.record import STATUSES, HostUse, Round, Sample, TaskRun

_MOST_ROUNDS = 40
_MOST_TASKS = 12_000
"""Tasks of all rounds that are shown: of more, fewer rounds are."""
_MOST_DRAWN = 400
"""Workers of a round."""
_MOST_SAMPLES = 6_000
"""Looks at hosts, of all rounds together: of more, some are left out."""
_MOST_HOSTS = 8

Number = Callable[[Sample], float]


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture of counters."""

    name: str
    title: str
    y_title: str
    unit: str
    lines: tuple[tuple[str, Number], ...]
    """What is shown of each host, with what it is called where there are several."""


PANELS = (
    Panel(
        "processors",
        "Processors",
        "processors",
        "",
        (("busy", lambda s: s.processors), ("waiting for a disk", lambda s: s.waiting)),
    ),
    Panel("busy", "Busiest disk", "busy [%]", "%", (("", lambda s: s.disk_busy * 100),)),
    Panel(
        "disks",
        "Disk traffic",
        "all disks",
        "bytes/s",
        (("read", lambda s: s.disk_read), ("written", lambda s: s.disk_written)),
    ),
    Panel(
        "network",
        "Network traffic",
        "all interfaces",
        "bytes/s",
        (
            ("in", lambda s: s.network_in),
            ("out", lambda s: s.network_out),
            ("loopback", lambda s: s.loopback),
        ),
    ),
    Panel("dirty", "Memory still to be written", "dirty", "bytes", (("", lambda s: s.dirty),)),
    Panel(
        "pressure",
        "Pressure: time in which something waited",
        "share of the time [%]",
        "%",
        tuple(
            (kind, lambda s, kind=kind: s.pressure.get(kind, math.nan) * 100)  # type: ignore[misc]
            for kind in ("cpu", "io", "memory")
        ),
    ),
)
WATCHED = Panel("watched", "Watched programs", "processors", "", ())
"""Its lines are the programs that were watched."""


def shown_rounds(cases: Sequence[SyncCase]) -> list[Round]:
    """One round of each case, or of evenly picked ones; the first is of the most workers."""
    if not cases:
        return []
    most = max(cases, key=lambda case: case.workers)
    others = [case.shown for case in cases if case is not most]
    largest = max(len(one.tasks) for one in (most.shown, *others))
    room = max(1, min(_MOST_ROUNDS, _MOST_TASKS // max(1, largest)))
    return [most.shown, *(evenly(others, room - 1) if room > 2 else others[: room - 1])]


def panels(rounds: Sequence[Round]) -> list[Panel]:
    """Those of which any of the rounds has values."""
    samples = [sample for one in rounds for use in one.hosts for sample in use.during]
    found = [
        panel
        for panel in PANELS
        if any(
            math.isfinite(of(sample)) and of(sample) for sample in samples for _, of in panel.lines
        )
    ]
    return [*found, *([WATCHED] if any(sample.watched for sample in samples) else [])]


def details(rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """What the page's script needs of each."""
    samples = sum(len(use.during) for one in rounds for use in one.hosts[:_MOST_HOSTS])
    every = max(1, math.ceil(samples / _MOST_SAMPLES))
    return [_detail(one, every) for one in rounds]


HOSTS_HEAD = (
    "host",
    "processors busy",
    "waiting for a disk",
    "busiest disk",
    "read",
    "written",
    "network in",
    "network out",
    "busiest link",
    "dirty",
    "available",
    "watched programs",
)
"""Of the table of what a round's hosts did."""


def _detail(one: Round, every: int) -> dict[str, Any]:
    began, ended = timed(one.tasks)
    moments = [*began, *ended, *(t.began for t in one.tasks if t.began is not None)]
    unit = scale(max(map(abs, moments), default=1.0), "s")
    return {
        "name": one.named(),
        "about": _about(one),
        "unit": unit.suffix,
        "tasks": _tasks(one, unit.factor),
        "counters": {panel.name: _panel(panel, one, every) for panel in panels([one])},
        "hosts": [_host(use) for use in one.hosts],
    }


def _about(one: Round) -> str:
    """What a reader has to know of it."""
    found = figures_of(one)
    running = fixed(found.running, 1)
    parts = [
        f"Agreed instant {one.at}; tasks were prepared in {amount(one.prepared_in, 's')}.",
        f"On average {running} of {found.tasks} tasks ran at a time.",
        "Other programs disturbed it." if disturbed(one) else "",
    ]
    return " ".join(part for part in parts if part)


def _tasks(one: Round, factor: float) -> dict[str, Any]:
    """One column for each property, by worker."""
    late = {task.worker for task in stragglers(one)}
    tasks = sorted(one.tasks, key=lambda task: task.worker)
    if len(tasks) > _MOST_DRAWN:
        special = [t for t in tasks if t.worker in late or t.status != "ok"][: _MOST_DRAWN // 2]
        even = evenly(tasks, _MOST_DRAWN - len(special))
        tasks = sorted({t.worker: t for t in (*even, *special)}.values(), key=lambda t: t.worker)
    hosts = _hosts_of(one)

    def moment(value: float | None) -> float | None:
        return None if value is None else round(value * factor, 6)

    return {
        "all": len(one.tasks),
        "hosts": hosts,
        "worker": [task.worker for task in tasks],
        "host": [hosts.index(task.host) for task in tasks],
        "began": [moment(task.began) for task in tasks],
        "ended": [moment(task.ended) for task in tasks],
        "status": [task.status for task in tasks],
        "late": [task.worker in late for task in tasks],
        "hover": [_hover(task) for task in tasks],
    }


def _hosts_of(one: Round) -> list[str]:
    """In the order of the workers; a host has the same colour in all pictures of the round."""
    tasks = sorted(one.tasks, key=lambda task: task.worker)
    return list(dict.fromkeys([*(t.host for t in tasks), *(use.host for use in one.hosts)]))


def _hover(task: TaskRun) -> list[str]:
    told = [f"worker {task.worker} on {task.host}: {STATUSES[task.status]}"]
    if task.began is not None:
        told.append(f"began {amount(task.began, 's')} after the agreed instant")
    if task.began is not None and task.ended is not None:
        used = amount(task.user + task.system, "s")
        told.append(
            f"ran {amount(task.ended - task.began, 's')}; processor time {used},"
            f" memory {size(task.memory)}"
        )
    told += [task.why] if task.why else []
    told += [f"{phase.name}: {amount(phase.seconds, 's')}" for phase in task.phases[:6]]
    return told


def _panel(panel: Panel, one: Round, every: int) -> dict[str, Any]:
    lines: list[dict[str, Any]] = []
    hosts = _hosts_of(one)
    busiest = sorted(one.hosts, key=_load, reverse=True)[:_MOST_HOSTS]
    for use in sorted(busiest, key=lambda use: hosts.index(use.host)):
        ways = panel.lines
        if panel is WATCHED:
            names = sorted({name for sample in use.during for name in sample.watched})
            ways = tuple((name, _watched(name)) for name in names)
        for way, (name, of) in enumerate(ways):
            kept = [s for s in use.during[::every] if math.isfinite(of(s))]
            if kept:
                lines.append(
                    {
                        "what": name,
                        "host": use.host,
                        "place": hosts.index(use.host),
                        "way": way,
                        # From where the first look begins to count.
                        "x": [round(at, 4) for at in (kept[0].at - kept[0].seconds, *_ats(kept))],
                        "y": [_digits(of(sample)) for sample in (kept[0], *kept)],
                    }
                )
    shown = scale(max((abs(y) for line in lines for y in line["y"]), default=0.0), panel.unit)
    for line in lines:
        line["y"] = [_digits(y * shown.factor) for y in line["y"]]
    suffix = "" if panel.unit in ("", "%") else f" [{shown.suffix}]"
    return {"y": f"{panel.y_title}{suffix}", "lines": lines}


def _ats(samples: Iterable[Sample]) -> list[float]:
    return [sample.at for sample in samples]


def _watched(name: str) -> Number:
    return lambda sample: sample.watched.get(name, math.nan)


def _load(use: HostUse) -> float:
    """By how busy a host was it is chosen, where there are too many."""
    samples = use.during or ((use.whole,) if use.whole else ())
    return sum(sample.processors + sample.waiting for sample in samples)


def _digits(value: float) -> float:
    return rounded(value, 4)


def _host(use: HostUse) -> list[str]:
    one = use.whole
    if one is None:
        return [use.host, *([NOTHING] * (len(HOSTS_HEAD) - 1))]
    watched = [f"{name} {processors(value)}" for name, value in one.watched.items()]
    return [
        use.host,
        f"{processors(one.processors)} of {use.cores}",
        fixed(one.waiting, 2),
        f"{percent(one.disk_busy, 0)} ({one.disk})" if one.disk else NOTHING,
        amount(one.disk_read, "bytes/s"),
        amount(one.disk_written, "bytes/s"),
        amount(one.network_in, "bytes/s"),
        amount(one.network_out, "bytes/s"),
        f"{percent(one.link_used, 0)} ({one.link})" if one.link else NOTHING,
        amount(one.dirty, "bytes"),
        f"{size(one.available)} of {size(use.memory)}",
        ", ".join(watched) or NOTHING,
    ]
