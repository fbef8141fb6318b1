"""Real runs, as `gridbench.result_kind.ResultKind`, and their rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed
from gridbench.placement.real.record import BEST, FORM, RealRun
from gridbench.result_kind import ResultRow, only
from gridbench.rules import Rules, Seen, broken_by, enough, recorded, undisturbed

if TYPE_CHECKING:
    from gridbench.pages.document import Document

title = "gridbench placement run"
model: str | None = None
rules = "gridbench.placement.real.result_kind"
compares = True
holds = FORM.holds


def rows(source: Path) -> Iterator[ResultRow]:
    """The total times of each run. InputError if they cannot be read."""
    for one in FORM.read(source)[1]:
        if one.status != "done":
            continue
        for metric, value in (("total time", one.total), ("first total time", one.first)):
            yield ResultRow(
                engine=one.policy,
                what=metric,
                metric=metric,
                value=value,
                repeat=one.repeat,
                valid=not disturbed(one),
                disturbed=disturbed(one),
            )


def nothing_valid(source: Path) -> InputError:
    """Why no run is valid."""
    return InputError(
        "has no run that counts: none was done, or other programs disturbed all of them",
        file=source,
        remedy=f"run `{FORM.command}` again with the same --out, on a quiet machine",
    )


def document(sources: Sequence[Path], page: Path | None = None) -> Document:
    """The policies beside the best assignment, and beside their simulation."""
    del page
    from gridbench.placement.real.document import document_of

    return document_of(*FORM.read(only(sources, title)))


def to_record(source: Path) -> dict[str, Any]:
    """All runs, and how policies compare."""
    from gridbench.placement.real.document import answer_values

    found = FORM.read(source)[1]
    return {"runs": [asdict(one) for one in found], "policies": answer_values(found)}


# ---- Rules

_Found = tuple[Header, list[RealRun]]


def _complete(found: _Found) -> Seen:
    failed = [f"{one.told()} ({one.why})" for one in found[1] if one.status != "done"]
    return broken_by(failed, "not done", f"{counted(len(found[1]), 'run')} came to their end")


def _same_calls(found: _Found) -> Seen:
    done = [one for one in found[1] if one.status == "done"]
    calls = {one.told(): sorted(call[:2] for call in one.calls) for one in done}
    first = next(iter(calls.values()), [])
    wrong = [name for name, own in calls.items() if own != first]
    return broken_by(wrong, "had other calls", f"all runs had the same {len(first):,} calls")


def _has_best(found: _Found) -> Seen:
    lacking = [
        one.told()
        for one in found[1]
        if one.status == "done"
        and not any(
            other.policy == BEST and other.repeat == one.repeat and other.status == "done"
            for other in found[1]
        )
    ]
    return broken_by(
        lacking, "no best assignment in the same round", "each round has the best assignment"
    )


def _repeated(found: _Found) -> Seen:
    names = dict.fromkeys(one.policy for one in found[1])
    sound = [one for one in found[1] if one.status == "done" and not disturbed(one)]
    return enough([(name, sum(one.policy == name for one in sound)) for name in names], "round")


def _quiet(found: _Found) -> Seen:
    done = [one for one in found[1] if one.status == "done"]
    sound = [one for one in done if not disturbed(one)]
    looked = [(one.told(), one.load) for one in sound or done]
    return undisturbed(looked, "run", len(done) - len(looked))


def _recorded(found: _Found) -> Seen:
    header = found[0]
    lacks = [] if header.options.get("scenario") else ["the scenario"]
    return recorded(header.machine, header.versions, lacks)


RULES = Rules(
    key="placement-run",
    read=FORM.read,
    each={
        "complete": _complete,
        "the same calls": _same_calls,
        "the best assignment is there": _has_best,
        "repeated": _repeated,
        "nothing else was at work": _quiet,
        "who measured what, where": _recorded,
    },
)
