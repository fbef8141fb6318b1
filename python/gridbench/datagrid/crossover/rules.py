"""The rules for results of the crossover: see docs/rules.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gridbench.datagrid.crossover.answer import SharingCase, SharingCurve, curves_of
from gridbench.datagrid.crossover.record import FORM, SharingRecord
from gridbench.formats import counted, size
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed
from gridbench.rules import Rules, Seen, broken_by, enough, recorded, undisturbed


@dataclass(frozen=True, slots=True)
class Measured:
    """The results, as the rules look at them."""

    header: Header
    all: tuple[SharingRecord, ...]

    @property
    def cases(self) -> Iterator[tuple[str, SharingCase]]:
        """Those that were done, with what each is called."""
        for curve in curves_of(self.all):
            if not curve.there:  # the same measurements as those with the loading
                for case in curve.cases:
                    yield _name(curve, case), case


def read(source: Path) -> Measured:
    """The results in a folder. InputError if they cannot be read."""
    header, found = FORM.read(source)
    return Measured(header, tuple(found))


def _complete(found: Measured) -> Seen:
    if not any(one.status == "done" for one in found.all):
        return "broken", "nothing was measured"
    failed = [
        f"{one.title or one.engine}, {size(one.bytes)} for {counted(one.readers, 'reader')}"
        for one in found.all
        if one.status == "failed"
    ]
    skipped = sum(one.status == "skipped" for one in found.all)
    left = f"; {skipped:,} skipped, with the reason" if skipped else ""
    done = len(found.all) - skipped
    return broken_by(failed, "failed", f"{counted(done, 'measurement')} came to the end{left}")


def _quiet(found: Measured) -> Seen:
    looked = [(name, one.load) for name, case in found.cases for one in case.counting]
    left_out = sum(len(case.all) - len(case.counting) for _, case in found.cases)
    return undisturbed(looked, "measurement", left_out)


def _repeated(found: Measured) -> Seen:
    times = [(name, sum(not disturbed(one) for one in case.all)) for name, case in found.cases]
    return enough(times, "undisturbed measurement")


def _recorded(found: Measured) -> Seen:
    unknown = {
        one.title or one.engine for one in found.all if one.status == "done" and not one.version
    }
    lacks = [f"the version of {name}" for name in sorted(unknown)]
    return recorded(found.header.machine, found.header.versions, lacks)


def _name(curve: SharingCurve, case: SharingCase) -> str:
    return f"{curve.name}, {size(case.bytes)} for {counted(case.readers, 'reader')}"


_EACH: dict[str, Callable[[Measured], Seen]] = {
    "complete": _complete,
    "nothing else was at work": _quiet,
    "repeated": _repeated,
    "who measured what, where": _recorded,
}

RULES = Rules(key="crossovers", read=read, each=_EACH)
