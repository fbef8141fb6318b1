"""Conclusions about synchronised rounds, in sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from gridbench.formats import amount, counted, digits, percent, shortened
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbance, disturbed
from gridbench.pages.document import subheading as line_of
from gridbench.pages.table import range_of
from gridbench.statistics.claims import busy_in, marked
from gridbench.statistics.interval import Interval, measured
from gridbench.sync.cases import SyncCase, counts, phases_of_all, rate_of, scaling_of
from gridbench.sync.figures import RoundFigures, frequent_stragglers
from gridbench.sync.record import HOLD_POINTS, Round
from gridbench.sync.tables import not_ok

_MOST_PHASES = 6
_MOST_LATE = 3
_MOST_CASES = 30
_LONGEST_REASON = 200


def headline(cases: Sequence[SyncCase]) -> list[str]:
    """The outcome, most important first."""
    if not cases:
        return ["No round was made yet."]
    counting = [case for case in cases if case.counts]
    rounds = _rounds(cases)
    failed = any(task.status != "ok" for one in rounds for task in one.tasks)
    # If nothing counts because of them, their reason comes first.
    first = failed and not counting
    indicated = _together(counting or list(cases)) + _best(counting or list(cases))
    found = [_ended(rounds)] if first else []
    found += indicated if counting else marked(indicated, _uncounted(rounds))
    if not first:
        found.append(_ended(rounds))
    found += _late(cases)
    found += _limiting(counting or list(cases))
    return found


def notices(cases: Sequence[SyncCase]) -> list[str]:
    """Caveats for a reader of the tables and charts."""
    rounds = _rounds(cases)
    found = []
    if reported := disturbance(rounds, "rounds"):
        found.append(f"{reported} Such rounds count only where a case has no others.")
    unknown = sum((one.load or {}).get("judgement") == "not known" for one in rounds)
    if unknown:
        found.append(
            f"It is not known whether other programs disturbed {counted(unknown, 'round')}, as some"
            " processes of the workers cannot be distinguished from others."
        )
    failed = sum(one.status == "failed" for one in rounds)
    if failed:
        found.append(
            f"In {failed:,} of {counted(len(rounds), 'round')} a task did not end well. Such rounds"
            " count only where a case has no others."
        )
    found += _clocks(cases)
    late = [task for one in rounds for task in one.tasks if task.late > 0]
    if late:
        found.append(
            f"{_capital(counted(len(late), 'task'))} got the order to start late, up to"
            f" {amount(max(task.late for task in late), 's')} after the agreed instant. This delay"
            " is part of the start skew."
        )
    if rounds and max(len(case.rounds) for case in cases) == 1:
        found.append("Each case has a single round, so the scatter of its figures is not known.")
    return found


def own_part(cases: Sequence[SyncCase]) -> str:
    """An upper bound of the benchmark's own part of task times; empty if no task ended well."""
    lengths = [task.seconds for one in _rounds(cases) for task in one.tasks]
    # By clocks with errors a task may seem to end before it begins.
    shortest = min((length for length in lengths if length and length > 0), default=None)
    if shortest is None:
        return ""
    return (
        "The benchmark's own part of a task's time is the delay until it sees the task's end. It is"
        f" below {amount(shortest, 's')}, the time of the shortest task."
    )


def subheading(header: Header, cases: Sequence[SyncCase]) -> str:
    """Rounds, workers, hosts, machine and day in a line."""
    host = header.machine.get("host")
    hosts = {task.host for one in _rounds(cases) for task in one.tasks}
    most = max((case.workers for case in cases), default=0)
    return line_of(
        header,
        counted(sum(len(case.rounds) for case in cases), "round"),
        f"up to {counted(most, 'worker')} on {counted(len(hosts), 'host')}" if hosts else "",
        f"client on {host}" if host else "",
    )


def bottleneck_sentences(cases: Sequence[SyncCase]) -> list[tuple[str, list[str]]]:
    """For each bottleneck the cases that have it, with a sentence of each."""
    found: dict[str, list[str]] = {}
    for case in cases:
        of = counted(len(case.counting), "round")
        for what, times, reported in case.bottlenecks:
            line = f"{case.describe()}, {times} of {of}: {reported}"
            found.setdefault(_capital(what), []).append(line)
    for lines in found.values():
        more = len(lines) - _MOST_CASES
        if more > 0:
            lines[_MOST_CASES:] = [f"and {counted(more, 'case')} more"]
    return list(found.items())


def scaling_sentences(rounds: Sequence[Round]) -> list[str]:
    """For each phase and sweep the number of workers from which on more add nothing, by the rounds
    that count; by all if none does."""
    several = len({one.start for one in rounds}) > 1
    found = []
    for one in scaling_of(list(filter(counts, rounds)) or rounds):
        held = HOLD_POINTS[one.start] if several else ""
        name = ", ".join(part for part in (one.phase, one.parameter, held) if part)
        found.append(f"{name}: {one.told}")
    more = len(found) - _MOST_CASES
    return [*found[:_MOST_CASES], f"and {counted(more, 'sweep')} more"] if more > 0 else found


def _uncounted(rounds: Sequence[Round]) -> str:
    """Why no round counts."""
    busy, bad = sum(map(disturbed, rounds)), sum(one.status != "done" for one in rounds)
    reported = [busy_in(busy, len(rounds), "round")] if busy else []
    if bad:
        reported.append(f"tasks failed in {bad:,} of {counted(len(rounds), 'round')}")
    return " and ".join(reported)


def _rounds(cases: Sequence[SyncCase]) -> list[Round]:
    return [one for case in cases for one in case.rounds]


def _together(cases: Sequence[SyncCase]) -> list[str]:
    """How simultaneous the rounds with the most workers were, for each hold point."""
    found = []
    starts = dict.fromkeys(case.start for case in cases)
    for start in starts:
        own = [case for case in cases if case.start == start]
        most = max(case.workers for case in own)
        largest = [case for case in own if case.workers == most]
        figures = [one for case in largest for one in case.figures]
        skew, share = (_over(figures, of) for of in (_skew, _simultaneity))
        span = _over(figures, lambda f: f.span)
        if skew is None or share is None or span is None:
            found.append(f"With {counted(most, 'worker')} no task both began and ended.")
            continue
        hosts = {task.host for case in largest for one in case.rounds for task in one.tasks}
        error = max(one.clock_error for one in figures)
        sure = f"; the clocks are synchronised to ±{amount(error, 's')}" if error else ""
        held = f", {HOLD_POINTS[start]}" if len(starts) > 1 or start == "exec" else ""
        medians = f" (medians of {len(figures)} rounds)" if len(figures) > 1 else ""
        found += [
            f"With {counted(most, 'worker')} on {counted(len(hosts), 'host')}{held}, the tasks"
            f" started within {_with_range(skew, 's')} of each other{sure}.",
            f"The round took {_with_range(span, 's')}. All tasks ran at the same time for"
            f" {_shares(share)} of it{medians}.",
        ]
    return found


def _best(cases: Sequence[SyncCase]) -> list[str]:
    """For each phase the case with the highest rate, and that with the most workers."""
    found = []
    for name in phases_of_all(cases)[:_MOST_PHASES]:
        if (rate := rate_of(cases, name)) is not None:
            _, unit, of = rate
            values = [(case.phase_interval(name, of), case) for case in cases]
            known = [(one, case) for one, case in values if one is not None]
            found.append(_best_of(name, unit, known))
    return found


def _best_of(name: str, unit: str, known: Sequence[tuple[Interval, SyncCase]]) -> str:
    value, best = max(known, key=lambda one: one[0].value)
    if len(known) == 1:
        return f"The rate of {name} is {_rate(value, unit)} with {_in_words(best)}."
    reported = f"The highest rate of {name} is {_rate(value, unit)}, with {_in_words(best)}"
    many = max(case.workers for _, case in known)
    if best.workers == many:
        low, worst = min(known, key=lambda one: one[0].value)
        return f"{reported}; the lowest is {_rate(low, unit)}, with {_in_words(worst)}."
    # Of the same parameter, if that was measured with all workers too.
    others = [one for one in known if one[1].workers == many]
    alike = [one for one in others if one[1].parameter == best.parameter]
    most, largest = max(alike or others, key=lambda one: one[0].value)
    return f"{reported}; with {_in_words(largest)} it is {_rate(most, unit)}."


def _rate(rate: Interval, unit: str) -> str:
    """The median, with the range if rounds differ."""
    if unit != "operations/s":
        reported, span = amount(rate.value, unit), range_of(rate, unit, alone=False)
    else:
        reported = f"{digits(rate.value)} {unit}"
        low, high = digits(rate.low), digits(rate.high)
        span = f"{low}–{high}" if low != high else ""
    return f"{reported} ({span})" if span else reported


def _in_words(case: SyncCase) -> str:
    reported = counted(case.workers, "worker")
    return f"{reported} and the parameter {case.parameter}" if case.parameter else reported


def _ended(rounds: Sequence[Round]) -> str:
    tasks = sum(len(one.tasks) for one in rounds)
    bad = sum(task.status != "ok" for one in rounds for task in one.tasks)
    if not bad:
        return f"All {counted(tasks, 'task')} ended well." if tasks > 1 else "The task ended well."
    reported = f"Of {counted(tasks, 'task')}, {bad:,} did not end well: {not_ok(rounds)}"
    reasons = Counter(t.why for one in rounds for t in one.tasks if t.status != "ok" and t.why)
    if not reasons:
        return f"{reported}."
    (why, times) = reasons.most_common(1)[0]
    of = "" if times == bad else f" for {times:,} of them"
    return f"{reported}; the reason{of}: {shortened(why, _LONGEST_REASON)}."


def _late(cases: Sequence[SyncCase]) -> list[str]:
    tasks = [len(found.stragglers) for case in cases for found in case.all_figures]
    if not any(tasks):
        return []
    late = frequent_stragglers(_rounds(cases))
    named = [
        f"{one.host if one.worker is None else f'worker {one.worker} on {one.host}'} in {one.times}"
        f" of {one.rounds}"
        for one in late[:_MOST_LATE]
    ]
    most = f"; in most of their rounds: {', '.join(named)}" if named else ""
    more = f", and {len(late) - len(named)} more" if len(late) > len(named) else ""
    rounds = sum(count > 0 for count in tasks)
    return [
        f"{_capital(counted(sum(tasks), 'task'))} in {rounds} of {counted(len(tasks), 'round')}"
        f" {'was a straggler' if sum(tasks) == 1 else 'were stragglers'}{most}{more}."
    ]


def _limiting(cases: Sequence[SyncCase]) -> list[str]:
    """The bottlenecks of at least half of the rounds with the most workers."""
    most = max(case.workers for case in cases)
    rounds, found = 0, Counter[str]()
    reported: dict[str, str] = {}
    for case in cases:
        if case.workers == most:
            rounds += len(case.counting)
            for what, times, sentence in case.bottlenecks:
                found[what] += times
                reported.setdefault(what, sentence)
    return [
        f"Bottleneck with {counted(most, 'worker')}: {what}, in {times} of"
        f" {counted(rounds, 'round')}. {reported[what]}"
        for what, times in found.most_common()
        if 2 * times >= rounds
    ]


def _clocks(cases: Sequence[SyncCase]) -> list[str]:
    """Rounds whose start skew is within the error of the clocks."""
    unsure = [
        one
        for case in cases
        for one in case.figures
        if math.isfinite(one.skew) and 0 < one.skew <= one.clock_error
    ]
    if not unsure:
        return []
    total = sum(len(case.figures) for case in cases)
    error = max(one.clock_error for one in unsure)
    return [
        f"In {len(unsure):,} of {counted(total, 'round')} the start skew is within the error of the"
        f" hosts' clocks, up to {amount(error, 's')}: there it is only an upper bound."
    ]


def _skew(one: RoundFigures) -> float:
    return one.skew


def _simultaneity(one: RoundFigures) -> float:
    return one.simultaneity


def _over(figures: Sequence[RoundFigures], of: Callable[[RoundFigures], float]) -> Interval | None:
    return measured((of(one) for one in figures), 0.0)


def _with_range(found: Interval, unit: str) -> str:
    reported = amount(found.value, unit)
    if found.low == found.high:
        return reported
    return f"{reported} ({amount(found.low, unit)} to {amount(found.high, unit)})"


def _shares(found: Interval) -> str:
    reported = percent(found.value)
    if percent(found.low) == percent(found.high):
        return reported
    return f"{reported} ({percent(found.low)} to {percent(found.high)})"


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
