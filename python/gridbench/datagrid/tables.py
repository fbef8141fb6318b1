"""The tables about cases on data grids."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gridbench.datagrid.cases import Axis, DataGridSweep, LoopComparison, RepeatedCase, SizeFit
from gridbench.datagrid.figures import CaseFigures, MemberMemory, Quantiles
from gridbench.datagrid.record import (
    COUNTED,
    WINDOW,
    Checked,
    Counted,
    DataGridCase,
    Latencies,
    Loading,
    WarmUp,
)
from gridbench.datagrid.windows import FEWEST, Dip
from gridbench.datagrid.workload import label_shown, size_shown
from gridbench.formats import (
    NOTHING,
    amount,
    as_given,
    counted,
    digits,
    percent,
    processors,
    size,
    times,
    whole,
)
from gridbench.pages.table import Cell, Column, Table, cell_of, table_of
from gridbench.published.figures import FIT_OPERATIONS, data_grid_slides
from gridbench.statistics.interval import Interval, measured

K = TypeVar("K")
V = TypeVar("V")

NOT_COUNTED = "*"
"""Behind the name of a case without a valid repeat."""
TOO_SHORT = "†"
"""Behind the name of one that counts, but was too short to judge whether throughput was steady."""
OUTCOMES = {
    "right": "right",
    "wrong": "WRONG",
    "lost": "incomplete",
    "not checked": "not checked",
}
_MOST_ERRORS = 3
SLIDES = "Coherence, slides"
"""The name of the published figures."""


def cases_table(groups: Sequence[RepeatedCase]) -> Table:
    """One row for each case."""
    columns: list[Column[RepeatedCase]] = [
        Column("engine", engine_shown, words=True),
        Column(
            "scenario",
            lambda group: f"{group.case.scenario or NOTHING}",
            condition=any(group.case.scenario is not None for group in groups),
            from_width=118,
        ),
        Column("operation", lambda group: label_shown(group.case.label) or NOTHING, words=True),
        Column("object", _object, from_width=78),
        Column("clients", lambda group: group.case.clients, from_width=70),
        Column("members", _members, from_width=107),
        Column(
            "how",
            lambda group: group.case.variant or NOTHING,
            condition=any(group.case.variant for group in groups),
            words=True,
            from_width=131,
        ),
        Column("repeats", _repeats, from_width=167),
        Column("throughput", lambda group: group.interval(lambda f: f.throughput), "/s"),
        Column(
            "data rate",
            lambda group: group.interval(lambda f: f.bandwidth),
            "bytes/s",
            from_width=144,
        ),
        Column("task time", lambda group: group.task_times(), "s", from_width=87),
        Column("with start-up", lambda group: group.task_times(start_up=True), "s", from_width=156),
        Column("p50", lambda group: _main_latency(group, lambda q: q.p50), "s", from_width=97),
        Column("p99", lambda group: _main_latency(group, lambda q: q.p99), "s"),
        Column("data", _data, words=True),
    ]
    return table_of(
        columns, groups, style="cases", row_style=lambda group: "" if group.counts else "uncounted"
    )


def latency_table(groups: Iterable[RepeatedCase]) -> Table:
    """One row for each operation of each case, of all repeats that count together."""
    rows = [
        (group, one, found)
        for group in groups
        for one in group.latencies
        if (found := group.quantiles(one.operation, one.counted)) is not None
    ]
    columns: list[Column[tuple[RepeatedCase, Latencies, Quantiles]]] = [
        Column("engine", lambda row: engine_shown(row[0])),
        Column("case", lambda row: _left(row[0].case.what), words=True),
        Column("operation", lambda row: row[1].operation),
        Column("counted", lambda row: COUNTED[row[1].counted]),
        Column("operations", lambda row: row[2].count),
        Column("p50", lambda row: row[2].p50, "s"),
        Column("p90", lambda row: row[2].p90, "s"),
        Column("p99", lambda row: row[2].p99, "s"),
        Column("p99.9", lambda row: row[2].p999, "s"),
        Column("longest", lambda row: row[2].max, "s"),
    ]
    return table_of(columns, rows)


def loops_table(compared: Iterable[LoopComparison]) -> Table:
    """Closed against open loop."""

    def closed_rate(one: LoopComparison) -> Interval | None:
        return _of(one.closed, lambda group: group.interval(lambda f: f.throughput))

    def case(one: LoopComparison) -> Cell:
        parts = one.open.case.what.split(", ")
        return _left(", ".join(part for part in parts if not part.startswith("open loop")))

    columns: list[Column[LoopComparison]] = [
        Column("engine", lambda one: engine_shown(one.open)),
        Column("case", case, words=True),
        Column("operation", lambda one: one.operation),
        Column("closed loop: rate", closed_rate, "/s"),
        Column("closed loop: p99", lambda one: one.closed_service, "s"),
        Column("open loop: rate offered", lambda one: one.open.case.rate, "/s"),
        Column("open loop: p99 from when it began", lambda one: one.service, "s"),
        Column("open loop: p99 from when it should have", lambda one: one.intended, "s"),
        Column(
            "open over closed p99", lambda one: None if one.factor is None else times(one.factor)
        ),
    ]
    return table_of(columns, compared)


def kills_table(groups: Iterable[RepeatedCase]) -> Table:
    """The effect of killed members, one row for each run."""
    rows = [
        (group, case, found)
        for group in groups
        for case, found in group.runs
        if case.kill and case.status != "failed"
    ]

    def dip(of: Callable[[Dip], str | float]) -> Callable[[_Run], str | float | None]:
        return lambda row: _of(row[2].dip, of)

    def recovered(dip: Dip) -> str | float:
        return "not before the end" if dip.recovered is None else dip.recovered

    def lost(row: _Run) -> Cell | None:
        if not row[1].checked:
            return None
        count = row[2].correctness.lost
        return Cell(f"{count:,}", style="bad" if count else "")

    def said(row: _Run) -> Cell:
        errors = row[1].errors
        return _left(max(errors, key=lambda text: errors[text], default=NOTHING) or NOTHING)

    columns: list[Column[_Run]] = [
        Column("engine", lambda row: Cell(row[1].title, _number(row))),
        Column(
            "what",
            lambda row: f"{label_shown(row[1].label)}, {row[1].kill_shown}".strip(", "),
            words=True,
        ),
        Column("throughput before", dip(lambda one: one.level), "/s"),
        Column("lowest throughput", dip(lambda one: one.lowest), "/s"),
        Column("drop at the lowest", dip(lambda one: percent(one.depth, 0))),
        Column("no operation for", dip(lambda one: one.stalled), "s"),
        Column("90 % again after", dip(recovered), "s"),
        Column("operations failed", lambda row: sum(row[1].errors.values())),
        Column("objects lost", lost),
        Column("most frequent error", said, words=True),
    ]
    return table_of(columns, rows)


def memory_table(groups: Iterable[RepeatedCase]) -> Table:
    """What members took, and how evenly the objects lie."""
    rows = [
        (group, known)
        for group in groups
        if (known := [found.memory for found in group.figures if found.memory is not None])
        and any(one.each or one.entries for one in known)
    ]

    def figure(of: Callable[[MemberMemory], float]) -> Callable[[_Memory], Interval | None]:
        return lambda row: row[0].interval(lambda f: of(f.memory) if f.memory else math.nan)

    def ratio(of: Callable[[MemberMemory], float]) -> Callable[[_Memory], Cell | None]:
        return lambda row: _ratio(figure(of)(row))

    def share(row: _Memory) -> str | None:
        return _of(figure(lambda m: m.variation)(row), lambda found: percent(found.value))

    def joined(row: _Memory) -> Interval | None:
        every = [member.joined_in for case, _ in row[0].counting for member in case.members]
        return measured(every, 0.0)

    columns: list[Column[_Memory]] = [
        Column("engine", lambda row: engine_shown(row[0])),
        Column("object", lambda row: _object(row[0])),
        Column("members", lambda row: row[1][0].members),
        Column("data stored", lambda row: size(row[1][0].data) if row[1][0].data else None),
        Column("in use of a member", lambda row: _sizes(v for one in row[1] for v in one.used)),
        Column("in use of all / data", ratio(lambda m: m.times_data)),
        Column("resident of a member", lambda row: _sizes(v for one in row[1] for v in one.each)),
        Column("fullest member / mean", ratio(lambda m: m.imbalance)),
        Column("standard deviation of objects", share),
        Column("joined in", joined, "s"),
    ]
    return table_of(columns, rows)


def loading_table(groups: Iterable[RepeatedCase]) -> Table:
    """Storing the objects beforehand."""
    loads = [
        (group, [case.loading for case, _ in group.counting if case.loading is not None])
        for group in groups
    ]
    rows = [
        (group, measured_loads)
        for group, known in loads
        if (measured_loads := [one for one in known if one.seconds > 0])
    ]
    columns: list[Column[tuple[RepeatedCase, list[Loading]]]] = [
        Column("engine", lambda row: engine_shown(row[0])),
        Column("object", lambda row: _object(row[0])),
        Column("members", lambda row: _members(row[0])),
        Column("objects", lambda row: row[1][0].objects),
        Column("data", lambda row: size(row[1][0].bytes)),
        Column("time", lambda row: measured((one.seconds for one in row[1]), 0.0), "s"),
        Column(
            "objects stored",
            lambda row: measured((one.objects / one.seconds for one in row[1]), 0.0),
            "/s",
        ),
        Column(
            "data stored",
            lambda row: measured((one.bytes / one.seconds for one in row[1]), 0.0),
            "bytes/s",
        ),
        Column(
            "most memory of a client process",
            lambda row: size(most) if (most := max(one.client_memory for one in row[1])) else None,
        ),
    ]
    return table_of(columns, rows)


def correctness_table(groups: Iterable[RepeatedCase]) -> Table:
    """The check after each run, the worst of the repeats of each case."""
    rows = [
        (
            group,
            next((case for case, f in group.runs if f.correctness is group.worst), group.case),
        )
        for group in groups
        if group.measured
    ]

    def checked(of: Callable[[Checked], str | int]) -> Callable[[_Case], str | int | None]:
        return lambda row: _of(row[1].checked, of)

    columns: list[Column[_Case]] = [
        Column("engine", lambda row: engine_shown(row[0])),
        Column("case", lambda row: _left(row[1].what), words=True),
        Column("objects expected", checked(lambda data: data.expected)),
        Column("found", checked(lambda data: data.found)),
        Column("read back", checked(lambda data: data.read)),
        Column("missing", checked(lambda data: data.missing)),
        Column("wrong values", lambda row: row[0].worst.wrong if row[1].checked else None),
        Column("updates", checked(lambda data: f"{data.updates:,} of {data.updates_expected:,}")),
        Column("in doubt", checked(lambda data: data.in_doubt)),
        Column("data", lambda row: _data(row[0])),
        Column(
            "what is not as it should be",
            lambda row: _left("; ".join(row[0].worst.told) or NOTHING),
            words=True,
        ),
    ]
    return table_of(
        columns, rows, row_style=lambda row: "" if row[0].worst.outcome == "right" else "noted"
    )


def trouble_table(groups: Iterable[RepeatedCase]) -> Table:
    """Runs that do not count, and why."""
    rows = [
        (group, case, found)
        for group in groups
        for case, found in group.runs
        if found.verdict != "valid"
    ]
    columns: list[Column[_Run]] = [
        Column("engine", lambda row: engine_shown(row[0])),
        Column("case", lambda row: Cell(row[1].what, _number(row)), words=True),
        Column(
            "verdict",
            lambda row: Cell(row[2].verdict, style="bad" if row[2].verdict == "failed" else ""),
        ),
        Column("why", lambda row: "; ".join(row[2].reasons), words=True),
    ]
    return table_of(columns, rows, style="left")


def runs_table(shown: Iterable[tuple[str, RepeatedCase]]) -> Table:
    """The run in the middle of each case, by its name."""
    rows = [(name, *group.shown) for name, group in shown]

    def steady(row: _Shown) -> str | None:
        def describe(warm: WarmUp) -> str:
            return f"{amount(warm.seconds, 's')}, {'' if warm.steady else 'not '}steady"

        return _of(row[1].warm_up, describe)

    def used(row: _Shown) -> str | None:
        cpu, seconds = row[1].client_cpu, row[1].seconds
        return processors(cpu / seconds) if cpu > 0 and seconds > 0 else None

    columns: list[Column[_Shown]] = [
        Column("run", lambda row: row[0]),
        Column("where", lambda row: row[1].placed),
        Column("version", lambda row: row[1].version),
        Column("tasks", lambda row: int(row[1].parameters.get("NTasks", 0))),
        Column("operations", lambda row: row[2].operations),
        Column("time", lambda row: row[1].seconds, "s"),
        Column("client processes", lambda row: row[1].processes),
        Column("members together after", lambda row: row[1].cluster_in or None, "s"),
        Column("clients connected after", lambda row: row[1].clients_in or None, "s"),
        Column("warm-up", steady),
        Column("processors of clients", used),
        Column("collecting garbage", lambda row: row[1].client_gc or None, "s"),
        Column("atomic updates tried again", lambda row: row[1].conflicts),
        Column("data", lambda row: OUTCOMES[row[2].correctness.outcome]),
        Column("why it is not valid", lambda row: _left("; ".join(row[2].reasons) or NOTHING)),
        Column("errors", lambda row: _left(_errors(row[1]))),
    ]
    return table_of(columns, rows)


def _errors(case: DataGridCase) -> str:
    """The most frequent errors."""
    frequent = sorted(case.errors.items(), key=lambda error: -error[1])[:_MOST_ERRORS]
    return ", ".join(f"{times:,} × {text}" for text, times in frequent) or NOTHING


def products_table(groups: Iterable[RepeatedCase]) -> Table:
    """How each product was set up, as its engine file states it."""
    columns: list[Column[DataGridCase]] = [
        Column("product", lambda case: case.title),
        Column("version", lambda case: case.stated.get("version") or case.version),
        Column("settings", lambda case: _left(case.stated.get("settings") or "not stated")),
    ]
    return table_of(columns, {g.case.engine: g.case for g in groups}.values(), style="left")


def scaled_table(cases: Iterable[DataGridCase]) -> Table:
    """Parameters that are not the scenario's own."""
    found: dict[tuple[str, str, str], str] = {}
    for case in cases:
        for name, own in case.scaled.items():
            value = as_given(case.parameters.get(name, 0), "")
            scenario = f"scenario {case.scenario}" if case.scenario else label_shown(case.label)
            found.setdefault((scenario, name, value), own)
    head = ("where", "parameter", "here", "the scenario's own")
    columns: list[Column[tuple[str, ...]]] = [
        Column(name, lambda row, n=n: row[n])  # type: ignore[misc]
        for n, name in enumerate(head)
    ]
    return table_of(columns, [(*key, own) for key, own in sorted(found.items())], style="left")


# ---- Over object size, clients or members


def place_shown(axis: Axis, value: float) -> str:
    """A value of the axis."""
    if axis == "ObjectSize":
        return size_shown(value)
    return counted(int(value), "client" if axis == "NNodes" else "member")


def line_name(sweep: DataGridSweep) -> str:
    """`Hazelcast`, or `Hazelcast, 1 KB, atomic updates`."""
    case = sweep.first.case
    apart = [place_shown(name, case.parameters.get(name, 0)) for name in sweep.apart]
    return ", ".join(filter(None, (case.title, *apart, case.variant)))


def times_table(sweeps: Sequence[DataGridSweep]) -> Table:
    """Time of a task by engine and operation, over the axis."""

    def time(sweep: DataGridSweep, place: float) -> Cell | None:
        group = next((one for one in sweep.groups if sweep.place(one) == place), None)
        if group is None:
            return None
        spread = group.task_times()
        found = cell_of(spread and spread.times(sweep.share(group)), "s")
        style = "" if group.counts else "soft"
        return Cell(f"{found.text}{mark_of(group)}", found.note, style)

    return _over(sweeps, Column("a task", _task), time)


def relative_table(sweeps: Sequence[DataGridSweep]) -> Table:
    """Time of a task against the first place, with throughput."""

    def relative(sweep: DataGridSweep, place: float) -> Cell:
        time, rate = (
            dict(known).get(place) for known in (sweep.relative_times(), sweep.relative_rates())
        )
        note = "" if rate is None else f"throughput {times(rate)}"
        return Cell(NOTHING if time is None else times(time), note)

    known = [one for one in sweeps if one.relative_times() or one.relative_rates()]
    operation: Column[DataGridSweep] = Column(
        "operation", lambda sweep: label_shown(sweep.first.case.label) or NOTHING
    )
    return _over(known, operation, relative) if known else Table((), ())


def fits_table(sweeps: Sequence[DataGridSweep]) -> Table:
    """Lines through the times over object size, and the published one."""
    rows = [
        _FitRow(
            f"{line_name(sweep)}{mark_of(sweep.first)}", _task(sweep), fit, sweep.operation_fit()
        )
        for sweep in sweeps
        if (fit := sweep.task_fit()) is not None
    ]
    if any(sweep.first.case.label == "update" for sweep in sweeps):
        rows.append(_FitRow(SLIDES, f"update × {FIT_OPERATIONS}", None, None))
    slides = data_grid_slides()
    each = 1e3 / FIT_OPERATIONS

    def published(
        row: _FitRow, text: str, own: Cell | Interval | None
    ) -> str | Cell | Interval | None:
        return text if row.engine == SLIDES else own

    columns: list[Column[_FitRow]] = [
        Column("engine", lambda row: row.engine),
        Column("a task", lambda row: row.task),
        Column(
            "task, for each MB",
            lambda row: published(row, f"{slides.update_per_mb.text} s/MB", _slope(row.times, 1.0)),
        ),
        Column(
            "task, constant",
            lambda row: published(
                row,
                f"{slides.update_constant.text} s",
                _of(row.times, lambda fit: fit.constant),
            ),
            "s",
        ),
        Column(
            "operation, for each MB",
            lambda row: published(
                row,
                as_given(slides.update_per_mb.value * each, "ms/MB"),
                _slope(row.operation, 1e3),
            ),
        ),
        Column(
            "operation, constant",
            lambda row: published(
                row,
                as_given(slides.update_constant.value * each, "ms"),
                _of(row.operation, lambda fit: fit.constant),
            ),
            "s",
        ),
    ]
    return table_of(columns, rows)


@dataclass(frozen=True, slots=True)
class _FitRow:
    engine: str
    task: str
    times: SizeFit | None
    """Of a task."""
    operation: SizeFit | None


def _over(
    sweeps: Sequence[DataGridSweep],
    second: Column[DataGridSweep],
    cell: Callable[[DataGridSweep, float], Cell | None],
) -> Table:
    places = sorted({sweep.place(group) for sweep in sweeps for group in sweep.groups})
    columns: list[Column[DataGridSweep]] = [
        Column("engine", line_name),
        second,
        *(
            Column(
                place_shown(sweeps[0].axis, place),
                lambda sweep, place=place: cell(sweep, place),  # type: ignore[misc]
            )
            for place in places
        ),
    ]
    return table_of(columns, sweeps)


def _task(sweep: DataGridSweep) -> str:
    return f"{label_shown(sweep.first.case.label)} × {whole(sweep.operations)}".strip()


def _slope(fit: SizeFit | None, factor: float) -> Cell | None:
    """Seconds for each MB, or milliseconds by a factor of 1000."""
    if fit is None:
        return None
    shown = fit.per_mb.times(factor)
    known = math.isfinite(shown.low + shown.high)
    unit = "s/MB" if factor == 1 else "ms/MB"
    note = f"{digits(shown.low)}–{digits(shown.high)}" if known else ""
    return Cell(f"{digits(shown.value)} {unit}", note)


# ---- Cells

_Run = tuple[RepeatedCase, DataGridCase, CaseFigures]
_Case = tuple[RepeatedCase, DataGridCase]
_Shown = tuple[str, DataGridCase, CaseFigures]
_Memory = tuple[RepeatedCase, list[MemberMemory]]


def mark_of(group: RepeatedCase) -> str:
    """The mark behind a name or figure that a reader has to know more of."""
    if not group.counts:
        return NOT_COUNTED
    return TOO_SHORT if group.too_short else ""


def engine_shown(group: RepeatedCase) -> str:
    """The product, with its mark."""
    return f"{group.case.title}{mark_of(group)}"


def marks_text(groups: Iterable[RepeatedCase]) -> str:
    """The sentences about cases with a mark; empty: there are none."""
    marks = Counter(map(mark_of, groups))
    found = []
    if count := marks[NOT_COUNTED]:
        found.append(
            f"{NOT_COUNTED} No repeat of {counted(count, 'case')} is valid: figures of a row with"
            " a star are shown, and nothing is claimed from them."
        )
    if count := marks[TOO_SHORT]:
        least = amount(FEWEST * WINDOW, "s")
        found.append(
            f"{TOO_SHORT} {counted(count, 'case')} {'was' if count == 1 else 'were'} too short to"
            f" judge whether throughput was steady: all clients worked for less than {least}."
        )
    return " ".join(found)


def _object(group: RepeatedCase) -> str:
    return size_shown(group.case.parameters.get("ObjectSize", 0))


def _members(group: RepeatedCase) -> str:
    return f"{group.case.member_count or NOTHING}"


def _of(known: K | None, figure: Callable[[K], V]) -> V | None:
    return None if known is None else figure(known)


def _left(text: str) -> Cell:
    return Cell(text, style="left")


def _number(row: _Run) -> str:
    return f"run {row[1].repeat + 1}" if len(row[0].cases) > 1 else ""


def _repeats(group: RepeatedCase) -> str:
    """How many repeats there are, and how many of them count, if not all do."""
    count = sum(found.verdict == "valid" for found in group.all_figures)
    of = len(group.cases)
    return f"{count} of {of}" if 0 < count < of else f"{of}"


def _main_latency(group: RepeatedCase, of: Callable[[Quantiles], float]) -> Interval | None:
    """In an open loop, clients wait from when an operation should have begun."""
    way: Counted = "intended" if group.case.loop == "open" else "service"
    return group.latency(group.main, of, way)


def _data(group: RepeatedCase) -> Cell:
    """Whether the data were right in all repeats."""
    if not group.measured:
        return Cell("failed", style="bad")
    outcome = group.worst.outcome
    return Cell(OUTCOMES[outcome], style="bad" if outcome in ("wrong", "lost") else "")


def _sizes(values: Iterable[float]) -> Cell | None:
    found = measured(map(float, values), 0.0)
    if found is None:
        return None
    low, high = size(found.low), size(found.high)
    return Cell(size(found.value), f"{low} to {high}" if low != high else "")


def _ratio(found: Interval | None) -> Cell | None:
    if found is None:
        return None
    low, high = digits(found.low), digits(found.high)
    return Cell(times(found.value), "" if low == high else f"{low}–{high}")
