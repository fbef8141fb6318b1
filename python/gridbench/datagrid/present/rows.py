"""The tables of cases: the same in the terminal, in Markdown and on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gridbench.datagrid.cases import RepeatedCase
from gridbench.datagrid.comparisons import LoopComparison
from gridbench.datagrid.present.cells import (
    NOT_COUNTED,
    TOO_SHORT,
    data_cell,
    engine_cell,
    mark_of,
    measured_cell,
    number_cell,
    worst_of,
)
from gridbench.datagrid.record import COUNTED, WINDOW
from gridbench.datagrid.windows import FEWEST
from gridbench.datagrid.workload import label_shown, size_shown
from gridbench.formats import NOTHING, amount, counted, digits, percent, size, times
from gridbench.pages.table import Cell, Table
from gridbench.statistics.interval import measured


def cases_table(groups: Sequence[RepeatedCase]) -> Table:
    """One row for each case."""
    scenarios = any(group.case.scenario is not None for group in groups)
    variants = any(group.case.variant for group in groups)
    head = [
        "engine",
        *(["scenario"] if scenarios else []),
        "operation",
        "object",
        "clients",
        "members",
        *(["how"] if variants else []),
        "repeats",
        "throughput",
        "data rate",
        "task time",
        "with start-up",
        "p50",
        "p99",
        "data",
    ]
    rows: list[list[str | Cell]] = []
    for group in groups:
        case = group.case
        # What a client waits for in an open loop counts from when it should have begun.
        way: str = "intended" if case.loop == "open" else "service"
        rows.append(
            [
                engine_cell(group),
                *([f"{case.scenario or NOTHING}"] if scenarios else []),
                label_shown(case.label) or NOTHING,
                size_shown(case.parameters.get("ObjectSize", 0)),
                f"{case.clients:,}",
                f"{case.member_count or NOTHING}",
                *([Cell(case.variant or NOTHING)] if variants else []),
                _counted(group),
                measured_cell(group.interval(lambda f: f.throughput), "/s"),
                measured_cell(group.interval(lambda f: f.bandwidth), "bytes/s"),
                measured_cell(group.task_times(), "s"),
                measured_cell(group.task_times(start_up=True), "s"),
                *(
                    measured_cell(group.latency(group.main, of, way), "s")  # type: ignore[arg-type]
                    for of in (lambda q: q.p50, lambda q: q.p99)
                ),
                data_cell(group) if group.measured else Cell("failed", style="bad"),
            ]
        )
    styles = ["" if group.counts else "uncounted" for group in groups]
    return Table(head, rows, styles, "cases")


def latency_table(groups: Iterable[RepeatedCase]) -> Table:
    """One row for each operation of each case, of all its operations together."""
    rows: list[list[str | Cell]] = [
        [
            engine_cell(group),
            Cell(group.case.what, style="left"),
            one.operation,
            COUNTED[one.counted],
            f"{found.count:,}",
            *(
                amount(value, "s")
                for value in (found.p50, found.p90, found.p99, found.p999, found.max)
            ),
        ]
        for group in groups
        for one in group.latencies
        if (found := group.quantiles(one.operation, one.counted)) is not None
    ]
    head = ["engine", "case", "operation", "counted", "operations"]
    return Table([*head, "p50", "p90", "p99", "p99.9", "longest"], rows)


def loops_table(compared: Iterable[LoopComparison]) -> Table:
    """Closed against open loop."""
    rows: list[list[str | Cell]] = []
    for one in compared:
        closed = one.closed.interval(lambda f: f.throughput) if one.closed else None
        rows.append(
            [
                engine_cell(one.open),
                Cell(_without_loop(one.open), style="left"),
                one.operation,
                measured_cell(closed, "/s"),
                measured_cell(one.closed_service, "s"),
                amount(one.open.case.rate, "/s"),
                measured_cell(one.service, "s"),
                measured_cell(one.intended, "s"),
                times(one.factor) if one.factor is not None else NOTHING,
            ]
        )
    head = [
        "engine",
        "case",
        "operation",
        "closed loop: rate",
        "closed loop: p99",
        "open loop: rate offered",
        "open loop: p99 from when it began",
        "open loop: p99 from when it should have",
        "open over closed p99",
    ]
    return Table(head, rows)


def kills_table(groups: Iterable[RepeatedCase]) -> Table:
    """What happened when members were killed, one row for each run."""
    rows: list[list[str | Cell]] = []
    for group in groups:
        for case, found in zip(group.cases, group.all_figures, strict=True):
            if not case.kill or case.status == "failed":
                continue
            dip = found.dip
            data = found.correctness
            back = NOTHING
            if dip is not None:
                back = "not before the end" if dip.recovered is None else amount(dip.recovered, "s")
            said = max(case.errors, key=lambda text: case.errors[text], default="")
            rows.append(
                [
                    Cell(case.title, f"run {case.repeat + 1}" if len(group.cases) > 1 else ""),
                    Cell(f"{label_shown(case.label)}, {case.kill_shown}".strip(", ")),
                    number_cell(dip.level if dip else None, "/s"),
                    number_cell(dip.lowest if dip else None, "/s"),
                    percent(dip.depth, 0) if dip else NOTHING,
                    number_cell(dip.stalled if dip else None, "s"),
                    back,
                    f"{sum(case.errors.values()):,}",
                    Cell(f"{data.lost:,}", style="bad" if data.lost else "")
                    if case.checked
                    else Cell(NOTHING),
                    Cell(said or NOTHING, style="left"),
                ]
            )
    head = [
        "engine",
        "what",
        "throughput before",
        "lowest throughput",
        "drop at the lowest",
        "no operation for",
        "90 % again after",
        "operations failed",
        "objects lost",
        "most frequent error",
    ]
    return Table(head, rows)


def memory_table(groups: Iterable[RepeatedCase]) -> Table:
    """What members took, and how evenly the objects lie."""
    rows: list[list[str | Cell]] = []
    for group in groups:
        known = [found.memory for found in group.figures if found.memory is not None]
        if not known or not any(one.each or one.entries for one in known):
            continue
        each = [float(value) for one in known for value in one.each]
        used = [float(value) for one in known for value in one.used]
        joined = [member.joined_in for case, _ in group.counting for member in case.members]
        rows.append(
            [
                engine_cell(group),
                size_shown(group.case.parameters.get("ObjectSize", 0)),
                f"{known[0].members}",
                size(known[0].data) if known[0].data else NOTHING,
                _sizes(used),
                _ratio(group, lambda m: m.times_data),
                _sizes(each),
                _ratio(group, lambda m: m.imbalance),
                _share(group),
                measured_cell(measured(joined, 0.0), "s"),
            ]
        )
    head = [
        "engine",
        "object",
        "members",
        "data stored",
        "in use of a member",
        "in use of all / data",
        "resident of a member",
        "fullest member / mean",
        "standard deviation of objects",
        "joined in",
    ]
    return Table(head, rows)


def loading_table(groups: Iterable[RepeatedCase]) -> Table:
    """Storing the objects beforehand."""
    rows: list[list[str | Cell]] = []
    for group in groups:
        known = [case.loading for case, _ in group.counting if case.loading is not None]
        known = [one for one in known if one.seconds > 0]
        if not known:
            continue
        most = max(one.client_memory for one in known)
        rows.append(
            [
                engine_cell(group),
                size_shown(group.case.parameters.get("ObjectSize", 0)),
                f"{group.case.member_count or NOTHING}",
                f"{known[0].objects:,}",
                size(known[0].bytes),
                measured_cell(measured((one.seconds for one in known), 0.0), "s"),
                measured_cell(measured((one.objects / one.seconds for one in known), 0.0), "/s"),
                measured_cell(measured((one.bytes / one.seconds for one in known), 0.0), "bytes/s"),
                size(most) if most else NOTHING,
            ]
        )
    head = [
        "engine",
        "object",
        "members",
        "objects",
        "data",
        "time",
        "objects stored",
        "data stored",
        "most memory of a client process",
    ]
    return Table(head, rows)


def correctness_table(groups: Iterable[RepeatedCase]) -> Table:
    """What the check after each run found, the worst of the repeats of each case."""
    rows: list[list[str | Cell]] = []
    for group in groups:
        if not group.measured:
            continue
        worst = worst_of(group)
        pairs = list(zip(group.cases, group.all_figures, strict=True))
        case = next((case for case, found in pairs if found.correctness is worst), group.case)
        data = case.checked
        rows.append(
            [
                engine_cell(group),
                Cell(case.what, style="left"),
                *(
                    [
                        f"{data.expected:,}",
                        f"{data.found:,}",
                        f"{data.read:,}",
                        f"{data.missing:,}",
                        f"{worst.wrong:,}",
                        f"{data.updates:,} of {data.updates_expected:,}",
                        f"{data.in_doubt:,}",
                    ]
                    if data
                    else [NOTHING] * 7
                ),
                data_cell(group),
                Cell("; ".join(worst.told) or NOTHING, style="left"),
            ]
        )
    head = [
        "engine",
        "case",
        "objects expected",
        "found",
        "read back",
        "missing",
        "wrong values",
        "updates",
        "in doubt",
        "data",
        "what is not as it should be",
    ]
    styles = [
        "" if worst_of(group).outcome == "right" else "noted" for group in groups if group.measured
    ]
    return Table(head, rows, styles)


def trouble_table(groups: Iterable[RepeatedCase]) -> Table:
    """Cases that do not count, and why."""
    rows: list[list[str | Cell]] = [
        [
            engine_cell(group),
            Cell(case.what, f"run {case.repeat + 1}" if len(group.cases) > 1 else ""),
            Cell(found.verdict, style="bad" if found.verdict == "failed" else ""),
            Cell("; ".join(found.reasons)),
        ]
        for group in groups
        for case, found in zip(group.cases, group.all_figures, strict=True)
        if found.verdict != "valid"
    ]
    return Table(["engine", "case", "verdict", "why"], rows, style="left")


def _counted(group: RepeatedCase) -> str:
    """How many repeats there are, and how many of them count, if not all do."""
    count = sum(found.verdict == "valid" for found in group.all_figures)
    of = len(group.cases)
    return f"{count} of {of}" if 0 < count < of else f"{of}"


def _without_loop(group: RepeatedCase) -> str:
    parts = group.case.what.split(", ")
    return ", ".join(part for part in parts if not part.startswith("open loop"))


def _sizes(values: Sequence[float]) -> Cell:
    found = measured(values, 0.0)
    if found is None:
        return Cell(NOTHING)
    low, high = size(found.low), size(found.high)
    return Cell(size(found.value), f"{low} to {high}" if low != high else "")


def _ratio(group: RepeatedCase, of: object) -> Cell:
    found = group.interval(lambda f: of(f.memory) if f.memory else NAN)  # type: ignore[operator]
    if found is None:
        return Cell(NOTHING)
    same = digits(found.low) == digits(found.high)
    return Cell(times(found.value), "" if same else f"{digits(found.low)}–{digits(found.high)}")


NAN = float("nan")


def _share(group: RepeatedCase) -> Cell:
    found = group.interval(lambda f: f.memory.variation if f.memory else NAN)
    return Cell(percent(found.value) if found else NOTHING)


def marks_told(groups: Iterable[RepeatedCase]) -> str:
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
