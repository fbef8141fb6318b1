"""The conclusions about cases in sentences: the outcome and the bottleneck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gridbench.datagrid.cases import Axis, RepeatedCase, SizeFit, compared_loops, sweeps_of
from gridbench.datagrid.figures import CaseFigures
from gridbench.datagrid.record import DataGridCase
from gridbench.datagrid.tables import line_name, place_shown
from gridbench.datagrid.workload import label_shown, size_shown
from gridbench.formats import amount, counted, digits, shortened, times
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbance, disturbed
from gridbench.pages.document import subheading as line_of
from gridbench.published.figures import FIT_OPERATIONS, data_grid_slides
from gridbench.statistics.claims import ENOUGH, busy_in, marked
from gridbench.statistics.interval import Interval

_MOST_TOLD = 4
"""Cases, products or reasons that are named one by one."""
_LONGEST_REASON = 160
_NOTABLE = 1.1
"""Smallest error of a closed loop that is reported, as a factor."""
_NOUNS = {"read": "reads", "update": "updates", "insert": "insertions"}


def headline(groups: Sequence[RepeatedCase]) -> list[str]:
    """The outcome, most important first."""
    if not groups:
        return ["No case was measured yet."]
    if not any(group.measured for group in groups):
        why = next((case.why for group in groups for case in group.cases if case.why), "")
        return [f"No case came to its end: {_shortened(why)}"]
    found = [_race(race) for race in races(groups)]
    if not any(group.counts for group in groups):
        found = marked(found, _uncounted(groups))
    found.append(_data(groups))
    found += _sizes(groups)
    found += _contention(groups)
    found += _kills(groups)
    found += _loops(groups)
    return found


def _uncounted(groups: Sequence[RepeatedCase]) -> str:
    """Why no case counts."""
    runs = [
        (case, found) for group in groups for case, found in group.runs if case.status == "done"
    ]
    busy = sum(disturbed(case) for case, _ in runs)
    if busy:
        return busy_in(busy, len(runs), "run")
    reasons = Counter(reason for _, found in runs for reason in found.reasons[:1])
    reported = f": {reasons.most_common(1)[0][0]}" if reasons else ""
    return f"no run is valid{reported}"


def races(groups: Sequence[RepeatedCase]) -> list[list[RepeatedCase]]:
    """For each label the case that most products can be compared in, the fastest first; of several,
    the one with the highest throughput."""
    stored = [group for group in groups if group.measured and not group.case.kill]
    valid = [group for group in stored if group.counts] or stored
    found: dict[tuple[str, str], dict[object, list[RepeatedCase]]] = {}
    for group in valid:
        case = group.case
        # A comparison is of what is usual, if there is anything.
        shapes = found.setdefault((case.label, case.variant), {})
        shapes.setdefault(case.key_without("engine", "repeat"), []).append(group)
    chosen = []
    labels = {label for label, how in found if not how}
    for (label, how), shapes in found.items():
        if how and label in labels:
            continue
        best = max(shapes.values(), key=lambda own: (len(own), max(map(_rate, own))))
        chosen.append(sorted(best, key=_rate, reverse=True))
    return chosen


def notices(groups: Sequence[RepeatedCase]) -> list[str]:
    """What could mislead someone who looks at tables and pictures only."""
    cases = [case for group in groups for case in group.cases]
    found = []
    bad = [group for group in groups if group.worst.outcome in ("wrong", "lost")]
    for group in bad[:_MOST_TOLD]:
        found.append(f"{group.case.name}: {'; '.join(group.worst.told)}.")
    if len(bad) > _MOST_TOLD:
        found.append(f"The data were not right in {len(bad) - _MOST_TOLD} more cases.")
    found += _failed(cases)
    found += filter(None, [disturbance(cases, "runs")])
    found += _invalid(groups)
    unchecked = sum(case.status == "done" and case.checked is None for case in cases)
    if unchecked:
        found.append(f"The data of {counted(unchecked, 'run')} were not checked.")
    unknown = sum((case.load or {}).get("judgement") == "not known" for case in cases)
    if unknown:
        found.append(
            f"Of {counted(unknown, 'run')} it is not known whether other programs disturbed it."
        )
    if groups and max(len(group.cases) for group in groups) == 1:
        found.append("Each case was measured once, so the scatter of its figures is not known.")
    scaled = {name for case in cases for name in case.scaled}
    if scaled:
        found.append(
            f"The scenarios are scaled down: {', '.join(sorted(scaled))}"
            f" {'is' if len(scaled) == 1 else 'are'} not the scenarios' own."
        )
    return found


def clients_part(groups: Sequence[RepeatedCase]) -> str:
    """How much of the latencies can be the clients' own programs; empty without any latency."""
    shortest: dict[str, float] = {}
    for group in groups:
        engine = group.case.engine
        for found in group.figures:
            for (_, counting), latency in found.latencies.items():
                if counting == "service":
                    shortest[engine] = min(shortest.get(engine, latency.p50), latency.p50)
    if not shortest:
        return ""
    each = ", ".join(f"{name} {amount(shortest[name], 's')}" for name in sorted(shortest))
    return (
        "The benchmark's own client programs are in all latencies. Their part of an operation is"
        f" below the shortest median latency that each data grid has: {each}."
    )


def subheading(header: Header, groups: Sequence[RepeatedCase]) -> str:
    """Products, runs, clients, members, machine and day in a line."""
    cases = [case for group in groups for case in group.cases]
    return line_of(
        header,
        counted(len({case.engine for case in cases}), "data grid"),
        counted(len(cases), "run"),
        f"up to {counted(max((case.clients for case in cases), default=0), 'client')}",
        f"up to {counted(max((case.member_count for case in cases), default=0), 'member')}",
        ", ".join(dict.fromkeys(case.placed for case in cases)),
    )


def _race(race: Sequence[RepeatedCase]) -> str:
    """Who is the fastest, by how much, and whether that is certain."""
    first = race[0]
    case = first.case
    noun = _NOUNS.get(case.label, f"operations of {label_shown(case.label)}" if case.label else "")
    members = case.member_count
    on = f" on {counted(members, 'member')}" if members else ""
    how = f" ({case.variant})" if case.variant else ""
    what = (
        f"{noun or 'tasks'} with objects of {size_shown(case.parameters.get('ObjectSize', 0))},"
        f" {counted(case.clients, 'client')}{on}{how}"
    )
    rate = first.interval(_throughput)
    reported = f"{_operations(rate)}{_latency(first)}"
    if len(race) == 1:
        return f"{case.title} does {reported}, in {what}."
    second = race[1].interval(_throughput)
    enough = all(len(group.figures) >= ENOUGH for group in race[:2])
    others = ", ".join(
        f"{group.case.title} {amount(found.value, '/s')}"
        for group in race[1:]
        if (found := group.interval(_throughput)) is not None
    )
    if rate and second and enough and rate.above(second):
        return f"{case.title} is the fastest in {what}: {reported}. Others: {others}."
    return (
        f"In {what}, {case.title} does {reported}; others: {others}."
        " Which of the first two is faster is not certain."
    )


def _operations(rate: Interval | None) -> str:
    if rate is None:
        return "nothing that could be measured"
    reported = f"{digits(rate.value)} operations/s"
    if rate.low == rate.high:
        return reported
    return f"{reported} ({digits(rate.low)} to {digits(rate.high)})"


def _latency(group: RepeatedCase) -> str:
    found = group.quantiles(group.main)
    if found is None:
        return ""
    return f", {amount(found.p50, 's')} at the median and {amount(found.p99, 's')} at p99"


def _data(groups: Sequence[RepeatedCase]) -> str:
    """Whether the data were right."""
    outcomes = Counter(group.worst.outcome for group in groups if group.measured)
    checked = outcomes.total() - outcomes["not checked"]
    if not checked:
        return "The data were not checked."
    if outcomes["right"] == checked:
        every = "the case" if checked == 1 else f"all {counted(checked, 'case')}"
        return f"All values, objects and updates were correct in {every}."
    parts = []
    if outcomes["wrong"]:
        bad = [g.case.title for g in groups if g.measured and g.worst.outcome == "wrong"]
        names = ", ".join(dict.fromkeys(bad))
        parts.append(f"were WRONG in {outcomes['wrong']:,} ({names})")
    if outcomes["lost"]:
        parts.append(f"incomplete, as was to be expected, in {outcomes['lost']:,}")
    return f"Of {counted(checked, 'case')}, the data {' and '.join(parts)}."


def _sizes(groups: Sequence[RepeatedCase]) -> list[str]:
    """Lines over object size of updates, beside the published one."""
    updates = [
        sweep for sweep in sweeps_of(groups, "ObjectSize") if sweep.first.case.label == "update"
    ]
    fits = [(sweep, fit) for sweep in updates if (fit := sweep.task_fit()) is not None]
    if not fits:
        return []
    slides = data_grid_slides()
    parts = [
        f"{_line_shown(fit.times(FIT_OPERATIONS / sweep.operations))} ({line_name(sweep)})"
        for sweep, fit in fits[:_MOST_TOLD]
    ]
    return [
        f"{FIT_OPERATIONS} updates take {', '.join(parts)}; the slides have"
        f" {slides.update_per_mb.text} s/MB × size + {slides.update_constant.text} s."
    ]


def _line_shown(fit: SizeFit) -> str:
    """`0.9 s/MB × size + 91 ms`."""
    constant = fit.constant.value
    sign = "-" if constant < 0 else "+"
    return f"{digits(fit.per_mb.value)} s/MB × size {sign} {amount(abs(constant), 's')}"


def _contention(groups: Sequence[RepeatedCase]) -> list[str]:
    """What more clients and more members change, of the label that is there first."""
    found = []
    axes: tuple[tuple[Axis, str], ...] = (("NNodes", "with"), ("MNodes", "on"))
    for axis, word in axes:
        sweeps = sweeps_of(groups, axis)
        own = [one for one in sweeps if one.first.case.label == sweeps[0].first.case.label]
        parts = []
        for sweep in own[:_MOST_TOLD]:
            known = sweep.relative_times()
            if len(known) > 1 and known[-1][1] > 0:
                parts.append((known[0][0], *known[-1], line_name(sweep)))
        if not parts:
            continue
        least, most = parts[0][:2]
        alike = [one for one in parts if one[:2] == (least, most)]
        # What is longer stands first.
        shorter = alike[0][2] < 1
        ends = (least, most) if shorter else (most, least)
        reported = [
            f"{times(1 / ratio if shorter else ratio)} ({name})" for _, _, ratio, name in alike
        ]
        label = own[0].first.case.label
        found.append(
            f"{word.capitalize()} {place_shown(axis, ends[0])}, a task of"
            f" {_NOUNS.get(label, label or 'operations')} takes {', '.join(reported)} as long as"
            f" {word} {place_shown(axis, ends[1])}."
        )
    return found


def _kills(groups: Sequence[RepeatedCase]) -> list[str]:
    """Recovery times of products, and their losses."""
    parts: dict[str, list[str]] = {}
    for group in groups:
        if not group.case.kill or not group.measured:
            continue
        dips = [found.dip for found in group.figures if found.dip is not None]
        back = [dip.recovered for dip in dips if dip.recovered is not None]
        lost = group.worst.lost
        if dips and len(back) < len(dips):
            reported = f"{group.case.title} not before the end of the run"
        elif back:
            reported = f"{group.case.title} after {amount(max(back), 's')}"
        else:
            continue
        reported += f", with {counted(lost, 'object')} lost" if lost else ", with nothing lost"
        parts.setdefault(group.case.kill_shown, []).append(reported)
    return [
        f"With {what}, 90 % of the throughput is there again: {'; '.join(lines[: 2 * _MOST_TOLD])}."
        for what, lines in parts.items()
    ]


def _loops(groups: Sequence[RepeatedCase]) -> list[str]:
    """The largest error of a closed loop."""
    known = [one for one in compared_loops(groups) if one.closed and (one.factor or 0) > _NOTABLE]
    if not known:
        return []
    worst = max(known, key=lambda one: one.factor or 0.0)
    closed, intended = worst.closed_service, worst.intended
    if closed is None or intended is None:
        return []
    return [
        f"What a closed loop leaves out: its p99 of {worst.operation} is"
        f" {amount(closed.value, 's')} on {worst.open.case.title}, and"
        f" {amount(intended.value, 's')} if operations arrive at"
        f" {amount(worst.open.case.rate, '/s')} whether or not earlier ones have ended."
    ]


def _failed(cases: Iterable[DataGridCase]) -> list[str]:
    failed = [case for case in cases if case.status == "failed"]
    reported = [f"{case.name} failed: {_shortened(case.why)}" for case in failed[:_MOST_TOLD]]
    if len(failed) > _MOST_TOLD:
        reported.append(f"{len(failed) - _MOST_TOLD} more runs failed.")
    return reported


def _invalid(groups: Sequence[RepeatedCase]) -> list[str]:
    """Number of runs that are invalid for reasons not reported yet."""
    found = [
        figures
        for group in groups
        for case, figures in group.runs
        if figures.verdict == "invalid" and not disturbed(case)
    ]
    if not found:
        return []
    reasons = Counter(figures.reasons[0] for figures in found)
    named = [
        f"{why} ({many})" if many > 1 else why for why, many in reasons.most_common(_MOST_TOLD)
    ]
    more = ", and others" if len(reasons) > _MOST_TOLD else ""
    runs = sum(len(group.cases) for group in groups)
    return [
        f"{len(found):,} of {counted(runs, 'run')} {'is' if len(found) == 1 else 'are'} not valid:"
        f" {'; '.join(named)}{more}. Their figures stand only where a case has no valid run."
    ]


def _shortened(why: str) -> str:
    short = shortened(why, _LONGEST_REASON) or "no reason is known"
    return short if short.endswith((".", "…")) else f"{short}."


def _throughput(found: CaseFigures) -> float:
    return found.throughput


def _rate(group: RepeatedCase) -> float:
    found = group.interval(_throughput)
    return found.value if found else 0.0
