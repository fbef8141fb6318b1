"""The rules for cases of data grids: see docs/rules.md.

They judge the repeats that figures are of: those that are valid, or all that came to an end of a
case that has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from gridbench.datagrid.cases import RepeatedCase, repeats_of
from gridbench.datagrid.figures import CaseFigures, operations, unsteady
from gridbench.datagrid.record import FORM, DataGridCase
from gridbench.datagrid.windows import FEWEST
from gridbench.formats import as_given, counted, named
from gridbench.jsonl_store import folder_of
from gridbench.rules import Measured, Rules, Seen, broken_by, enough, recorded, undisturbed

_EXACT = 1e-6
"""Seconds by which the end of the last task may differ from that of the case."""


_Found = Measured[RepeatedCase]


def read(source: Path) -> _Found:
    """The results in a folder. InputError if they cannot be read."""
    header, cases = FORM.read(source)
    return Measured(folder_of(source), header, tuple(repeats_of(cases)))


def _cases(found: _Found) -> list[DataGridCase]:
    """All cases with their repeats."""
    return [case for group in found.cases for case in group.cases]


def _counting(found: _Found) -> list[tuple[DataGridCase, CaseFigures]]:
    """Those that figures are of."""
    return [pair for group in found.cases for pair in group.counting]


def _complete(found: _Found) -> Seen:
    cases = _cases(found)
    if not cases:
        return "broken", "no case was measured"
    failed = [_name(case) for case in cases if case.status == "failed"]
    return broken_by(failed, "failed", f"{counted(len(cases), 'run')} came to the end")


def _data(found: _Found) -> Seen:
    looked = [
        (case, one.correctness)
        for group in found.cases
        for case, one in zip(group.cases, group.all_figures, strict=True)
        if case.status == "done"
    ]
    wrong = [f"{_name(case)}: {data.told[0]}" for case, data in looked if data.outcome == "wrong"]
    unknown = sum(data.outcome == "not checked" for _, data in looked)
    lost = sum(data.outcome == "lost" for _, data in looked)
    if unknown and not wrong:
        return "not known", f"of {unknown:,} of {counted(len(looked), 'run')} nothing was checked"
    text = f"checked in {counted(len(looked), 'run')}"
    if lost:
        text += f"; in {lost:,} of them what was lost is what had to be"
    return broken_by(wrong, "the data were wrong", text)


def _figures(found: _Found) -> Seen:
    wrong = [f"{_name(case)}: {why}" for case, _ in _counting(found) if (why := _differs(case))]
    text = "operations and time, worked out again from tasks, windows and latencies"
    return broken_by(wrong, "the record does not agree with itself", text)


def _differs(case: DataGridCase) -> str:
    """How what is recorded of a case differs from what follows from it; empty: it does not."""
    made = operations(case)
    counts = {
        "tasks": sum(case.tasks.operations),
        "windows": sum(case.windows.operations),
        "latencies": sum(sum(o.counts) for o in case.latencies if o.counted == "service"),
    }
    for name, count in counts.items():
        if count != made:
            return f"{made:,} operations, and by the {name} {count:,}"
    end = max(case.tasks.ended, default=0.0)
    if not math.isclose(end, case.seconds, abs_tol=_EXACT):
        return f"{as_given(case.seconds)}, and the last task ended after {as_given(end)}"
    return ""


def _quiet(found: _Found) -> Seen:
    looked = [(_name(case), case.load) for case, _ in _counting(found)]
    return undisturbed(looked, "run", len(_cases(found)) - len(_counting(found)))


def _steady(found: _Found) -> Seen:
    cold = [_name(case) for case, _ in _counting(found) if case.warm_up is None]
    if cold:
        return "broken", f"there was no warm-up: {named(cold)}"
    # The remedy follows a semicolon.
    wrong = [
        f"{_name(case)}: {why[0].partition(';')[0]}"
        for case, _ in _counting(found)
        if (why := unsteady(case))
    ]
    return broken_by(wrong, "not steady", "throughput was steady, and clients were warm")


def _long_enough(found: _Found) -> Seen:
    # What a killed member does to throughput is looked at in another way.
    short = [
        f"{_name(case)} {counted(one.steadiness.windows, 'window')}"
        for case, one in _counting(found)
        if not case.kill and one.steadiness.steady is None
    ]
    text = f"all clients worked for {FEWEST} windows at least"
    return broken_by(short, f"less than {FEWEST} windows in which all clients worked", text)


def _repeated(found: _Found) -> Seen:
    times = [
        (group.case.name, sum(one.verdict == "valid" for one in group.all_figures))
        for group in found.cases
    ]
    return enough(times, "valid run")


def _recorded(found: _Found) -> Seen:
    unknown = sorted({case.title for case in _cases(found) if not case.version})
    lacks = [f"the version of {title}" for title in unknown]
    return recorded(found.header.machine, found.header.versions, lacks)


def _name(case: DataGridCase) -> str:
    return f"{case.name}, run {case.repeat + 1}"


_EACH: dict[str, Callable[[_Found], Seen]] = {
    "complete": _complete,
    "data were right": _data,
    "figures follow from the stamps": _figures,
    "nothing else was at work": _quiet,
    "warm and steady": _steady,
    "long enough to judge": _long_enough,
    "repeated": _repeated,
    "who measured what, where": _recorded,
}

RULES = Rules(key="cases", read=read, each=_EACH)
