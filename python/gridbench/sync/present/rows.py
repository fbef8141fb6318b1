"""The tables of cases: the same in the terminal, in Markdown and on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gridbench.formats import NOTHING, amount, counted, interval, percent
from gridbench.pages.table import Cell, Table
from gridbench.statistics.interval import Interval
from gridbench.sync.cases import SyncCase, counts, phases_of_all
from gridbench.sync.present.limiting import Limits, limited_by
from gridbench.sync.record import STATUSES, Round

NOT_COUNTED = "*"
"""Behind the workers of a case none of whose rounds counts."""
_MOST_PHASES = 6
"""Phases of a case in one cell."""
_MOST_ROWS = 500
"""Rows of phases."""
LINES = "lines"
"""The style of a cell with several lines."""


def cases_table(cases: Sequence[SyncCase], limits: Limits, *, ranges: bool = True) -> Table:
    """One row for each case, with the smallest and the largest of the repeats where `ranges`."""
    parameters, starts = _vary(cases)
    phases = any(case.phases for case in cases)
    limited = [_limited(case, limits) for case in cases]
    failed = any(found.ok < found.tasks for case in cases for found in case.all_figures)
    late = any(found.stragglers for case in cases for found in case.all_figures)
    head = [
        "workers",
        *(["parameter"] if parameters else []),
        *(["start"] if starts else []),
        "rounds",
        "tasks ok",
        *(["not ok"] if failed else []),
        "start skew",
        "span",
        "all run",
        "task time",
        *(["rate"] if phases else []),
        *(["stragglers"] if late else []),
        *(["limited by"] if any(limited) else []),
    ]
    rows = [
        [
            f"{case.workers:,}{'' if case.counts else NOT_COUNTED}",
            *([case.parameter] if parameters else []),
            *([case.start] if starts else []),
            _counted(case),
            *_ended(case)[: 2 if failed else 1],
            timing(case.skew()),
            timing(case.span()),
            _share(case.interval(lambda f: f.simultaneity)),
            timing(case.interval(lambda f: f.median)),
            *(
                [Cell("\n".join(_rates(case, ranges=ranges)) or NOTHING, style=LINES)]
                if phases
                else []
            ),
            *([f"{sum(len(found.stragglers) for found in case.all_figures)}"] if late else []),
            *([Cell(told or NOTHING, style=LINES)] if any(limited) else []),
        ]
        for case, told in zip(cases, limited, strict=True)
    ]
    styles = ["" if case.counts else "uncounted" for case in cases]
    return Table(head, rows, styles, "cases")


def phases_table(cases: Sequence[SyncCase]) -> Table:
    """One row for each phase of each case: both ways to add up rates, and latencies."""
    parameters, starts = _vary(cases)
    head = [
        "phase",
        "workers",
        *(["parameter"] if parameters else []),
        *(["start"] if starts else []),
        "slowest task",
        "rate",
        "sum of the tasks' own",
        "p50",
        "p99, at most",
        "longest",
    ]
    rows: list[list[str | Cell]] = []
    for name in phases_of_all(cases):
        for case in cases:
            for unit, rate, summed in _quantities(case, name):
                latency = [
                    timing(
                        case.phase_interval(name, lambda p: p.latency.p50 if p.latency else NAN)
                    ),
                    timing(
                        case.phase_interval(name, lambda p: p.latency.p99 if p.latency else NAN)
                    ),
                    timing(
                        case.phase_interval(name, lambda p: p.latency.max if p.latency else NAN)
                    ),
                ]
                rows.append(
                    [
                        name,
                        f"{case.workers:,}{'' if case.counts else NOT_COUNTED}",
                        *([case.parameter] if parameters else []),
                        *([case.start] if starts else []),
                        timing(case.phase_interval(name, lambda p: p.seconds)),
                        _cell(rate, unit),
                        _cell(summed, unit),
                        *latency,
                    ]
                )
    return Table(head, rows[:_MOST_ROWS])


NAN = float("nan")


def timing(found: Interval | None) -> Cell:
    """A time, with its range as a note."""
    return _cell(found, "s")


def not_ok(rounds: Iterable[Round]) -> str:
    """`2 failed, 1 lost`; empty if all ended well."""
    count = Counter(task.status for one in rounds for task in one.tasks if task.status != "ok")
    return ", ".join(f"{many:,} {STATUSES[status]}" for status, many in sorted(count.items()))


def _vary(cases: Sequence[SyncCase]) -> tuple[bool, bool]:
    """Whether there are parameters, and more than one way to start."""
    return any(case.parameter for case in cases), len({case.start for case in cases}) > 1


def _counted(case: SyncCase) -> str:
    """How many rounds there are, and how many of them count, if not all do."""
    count = sum(map(counts, case.rounds))
    of = len(case.rounds)
    return f"{count} of {of}" if 0 < count < of else f"{of}"


def _ended(case: SyncCase) -> list[str | Cell]:
    ok = sum(found.ok for found in case.all_figures)
    of = sum(found.tasks for found in case.all_figures)
    return [f"{ok:,}", Cell(f"{of - ok:,}", not_ok(case.rounds), "bad" if of > ok else "")]


def _share(found: Interval | None) -> Cell:
    if found is None:
        return Cell(NOTHING)
    low, high = percent(found.low), percent(found.high)
    return Cell(percent(found.value), f"{low.removesuffix(' %')}–{high}" if low != high else "")


def _cell(found: Interval | None, unit: str) -> Cell:
    if found is None:
        return Cell(NOTHING)
    return Cell(amount(found.value, unit), between(found, unit, alone=True))


def between(found: Interval, unit: str, *, alone: bool = False) -> str:
    """`251–290`, in the unit of the value, and with it if that stands `alone`; empty if there is no
    range."""
    if found.low >= found.high:
        return ""
    return interval(found.low, found.high, unit, around=found.value, alone=alone)


def _quantities(case: SyncCase, name: str) -> list[tuple[str, Interval | None, Interval | None]]:
    """Bandwidth and operations per second, as far as the phase has them, each also as the sum of
    the tasks' own; if it has neither, nothing is known."""
    found = [
        (
            "bytes/s",
            case.phase_interval(name, lambda p: p.bandwidth),
            case.phase_interval(name, lambda p: p.bandwidth_summed),
        ),
        (
            "operations/s",
            case.phase_interval(name, lambda p: p.rate),
            case.phase_interval(name, lambda p: p.rate_summed),
        ),
    ]
    return [one for one in found if one[1]] or (found[:1] if name in case.phases else [])


def _rates(case: SyncCase, *, ranges: bool) -> list[str]:
    """`write 1.20 GB/s (1.1–1.3)`, a line for each."""
    lines = []
    for name in case.phases[:_MOST_PHASES]:
        for unit, rate, _ in _quantities(case, name)[:1]:
            if rate is not None:
                span = between(rate, unit) if ranges else ""
                lines.append(f"{name} {amount(rate.value, unit)}{f' ({span})' if span else ''}")
    more = len(case.phases) - _MOST_PHASES
    return [*lines, f"and {counted(more, 'phase')} more"] if more > 0 else lines


def _limited(case: SyncCase, limits: Limits) -> str:
    """What limits at least half of the rounds, a line each."""
    rounds = case.counting
    found = limited_by(rounds, limits)
    return "\n".join(what for what, times, _ in found if 2 * times >= len(rounds))
