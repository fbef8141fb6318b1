"""The rules for results of the crossover: see docs/rules.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gridbench.datagrid.crossover.answer import SharingCase, SharingCurve, curves_of
from gridbench.datagrid.crossover.record import FORM, SharingRecord
from gridbench.formats import counted, size
from gridbench.machine.judgement import disturbed
from gridbench.rules import (
    Measured,
    Rules,
    Seen,
    broken_by,
    enough,
    reader_of,
    recorded,
    undisturbed,
)

_Found = Measured[SharingRecord]


def _cases(found: _Found) -> Iterator[tuple[str, SharingCase]]:
    """The cases that were done, with what each is called."""
    for curve in curves_of(found.cases):
        if not curve.there:  # the same measurements as those with the loading
            for case in curve.cases:
                yield _name(curve, case), case


def _complete(found: _Found) -> Seen:
    if not any(one.status == "done" for one in found.cases):
        return "broken", "nothing was measured"
    failed = [
        f"{one.title or one.engine}, {size(one.bytes)} for {counted(one.readers, 'reader')}"
        for one in found.cases
        if one.status == "failed"
    ]
    skipped = sum(one.status == "skipped" for one in found.cases)
    left = f"; {skipped:,} skipped, with the reason" if skipped else ""
    done = len(found.cases) - skipped
    return broken_by(failed, "failed", f"{counted(done, 'measurement')} came to the end{left}")


def _quiet(found: _Found) -> Seen:
    looked = [(name, one.load) for name, case in _cases(found) for one in case.counting]
    left_out = sum(len(case.all) - len(case.counting) for _, case in _cases(found))
    return undisturbed(looked, "measurement", left_out)


def _repeated(found: _Found) -> Seen:
    times = [(name, sum(not disturbed(one) for one in case.all)) for name, case in _cases(found)]
    return enough(times, "undisturbed measurement")


def _recorded(found: _Found) -> Seen:
    unknown = {
        one.title or one.engine for one in found.cases if one.status == "done" and not one.version
    }
    lacks = [f"the version of {name}" for name in sorted(unknown)]
    return recorded(found.header.machine, found.header.versions, lacks)


def _name(curve: SharingCurve, case: SharingCase) -> str:
    return f"{curve.name}, {size(case.bytes)} for {counted(case.readers, 'reader')}"


_EACH: dict[str, Callable[[_Found], Seen]] = {
    "complete": _complete,
    "nothing else was at work": _quiet,
    "repeated": _repeated,
    "who measured what, where": _recorded,
}

RULES = Rules(key="crossovers", read=reader_of(FORM), each=_EACH)
