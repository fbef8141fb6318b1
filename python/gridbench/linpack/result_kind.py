"""Results of remote Linpack, as `gridbench.result_kind.ResultKind`, and their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.jsonl_store import folder_of
from gridbench.linpack.record import FORM, LinpackCase, operations, transferred, wrong_solution
from gridbench.machine.judgement import disturbed
from gridbench.result_kind import ResultRow, only
from gridbench.rules import Measured, Rules, Seen, broken_by, enough, recorded, undisturbed

if TYPE_CHECKING:
    from gridbench.linpack.model_kind import LinpackSeries, SizeCase
    from gridbench.pages.document import Document

title = "gridbench linpack"
model: str | None = "gridbench.linpack.model_kind"
rules = "gridbench.linpack.result_kind"
compares = True
holds = FORM.holds
nothing_valid = FORM.nothing_valid


def rows(source: Path) -> Iterator[ResultRow]:
    """Time, performance and throughput of each run of a client. InputError if they cannot be
    read."""
    for one in FORM.read(source)[1]:
        if one.status != "done":
            continue
        figures = [
            ("time of a call", one.seconds, "s"),
            ("performance", operations(one.n) / one.seconds, "flop/s"),
        ]
        if one.communication > 0:
            rate = transferred(one.n) / one.communication
            figures.append(("throughput", rate, "bytes/s"))
        for metric, value, unit in figures:
            yield ResultRow(
                engine=one.path,
                what=f"{one.told()}: {metric}",
                metric=metric,
                value=value,
                unit=unit,
                better="less" if unit == "s" else "more",
                repeat=one.repeat,
                valid=not disturbed(one),
                disturbed=disturbed(one),
                parameters={
                    "client": one.client,
                    "path": one.path,
                    "n": one.n,
                    "client_speed": one.speed,
                },
            )


def document(sources: Sequence[Path], page: Path | None = None) -> Document:
    """Performance, overtaking, throughput and models of one."""
    del page
    from gridbench.linpack.document import document_of

    return document_of(*FORM.read(only(sources, title)))


def to_record(source: Path) -> dict[str, Any]:
    """Cases, sizes from which on servers are faster, and models."""
    from gridbench.linpack.document import answer_values

    found = FORM.read(source)[1]
    return {"cases": [asdict(one) for one in found], **answer_values(found)}


# ---- Rules

_Found = Measured[LinpackCase]


def _read(source: Path) -> _Found:
    header, found = FORM.read(source)
    return Measured(folder_of(source), header, tuple(found))


def _sizes(found: _Found) -> Iterator[tuple[str, SizeCase]]:
    from gridbench.linpack.model_kind import series_of

    series: list[LinpackSeries] = series_of(found.cases)
    for one in series:
        for case in one.cases:
            yield case.all[0].told(), case


def _complete(found: _Found) -> Seen:
    done = [one for one in found.cases if one.status == "done"]
    if not done:
        return "broken", "nothing was measured"
    failed = [one.told() for one in found.cases if one.status == "failed"]
    skipped = sum(one.status == "skipped" for one in found.cases)
    left = f"; {skipped:,} skipped, with the reason" if skipped else ""
    return broken_by(failed, "failed", f"{len(done):,} cases came to their end{left}")


def _correct(found: _Found) -> Seen:
    done = [one for one in found.cases if one.status == "done"]
    wrong = [f"{one.told()}: {why}" for one in done if (why := wrong_solution(one.solves))]
    solves = sum(len(one.solves) for one in done)
    return broken_by(wrong, "wrong solutions", f"{solves:,} solutions are correct")


def _quiet(found: _Found) -> Seen:
    looked = [(name, one.load) for name, case in _sizes(found) for one in case.counting]
    left_out = sum(len(case.all) - len(case.counting) for _, case in _sizes(found))
    return undisturbed(looked, "case", left_out)


def _repeated(found: _Found) -> Seen:
    times = [(name, sum(not disturbed(one) for one in case.all)) for name, case in _sizes(found)]
    return enough(times, "undisturbed run")


def _recorded(found: _Found) -> Seen:
    lacks = [] if found.header.options.get("solver") else ["the version of OpenBLAS"]
    return recorded(found.header.machine, found.header.versions, lacks)


_EACH: dict[str, Callable[[_Found], Seen]] = {
    "complete": _complete,
    "correct": _correct,
    "nothing else was at work": _quiet,
    "repeated": _repeated,
    "who measured what, where": _recorded,
}

RULES = Rules(key="solves", read=_read, each=_EACH)
