"""Results of `gridbench placement`, as `gridbench.result_kind.ResultKind`, and their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.jsonl_store import Header
from gridbench.placement.record import FORM, PlacementCase, PlacementTotals
from gridbench.result_kind import ResultRow, only
from gridbench.rules import Rules, Seen, broken_by, enough, recorded

if TYPE_CHECKING:
    from gridbench.pages.document import Document

title = "gridbench placement"
model: str | None = None
rules = "gridbench.placement.result_kind"
compares = True
holds = FORM.holds

_FIGURES: dict[str, Callable[[PlacementTotals], float]] = {
    "mean response": lambda one: one.mean,
    "median response": lambda one: one.median,
    "95 % of responses": lambda one: one.p95,
    "total time": lambda one: one.total,
}


def rows(source: Path) -> Iterator[ResultRow]:
    """The response times of each case. InputError if they cannot be read."""
    for one in FORM.read(source)[1]:
        if one.totals is None:
            continue
        for metric, of in _FIGURES.items():
            yield ResultRow(
                engine=one.policy,
                what=f"{one.setting}: {metric}",
                metric=metric,
                value=of(one.totals),
                repeat=one.seed,
                valid=True,
                disturbed=False,
                parameters={
                    "workload": one.workload,
                    "load": one.offered,
                    "interval": one.interval,
                    "servers": one.servers,
                    "clients": one.clients,
                },
            )


def nothing_valid(source: Path) -> InputError:
    """No case was done."""
    return InputError(
        "has no case that was done",
        file=source,
        remedy=f"run `{FORM.command}` again with the same --out",
    )


def document(sources: Sequence[Path], page: Path | None = None) -> Document:
    """Which policy wins when, and what stale information costs."""
    del page
    from gridbench.placement.document import document_of

    return document_of(*FORM.read(only(sources, title)))


def to_record(source: Path) -> dict[str, Any]:
    """All cases, and how policies compare."""
    from gridbench.placement.document import answer_values

    found = FORM.read(source)[1]
    return {"cases": [asdict(one) for one in found], **answer_values(found)}


# ---- Rules

_Found = tuple[Header, list[PlacementCase]]


def _complete(found: _Found) -> Seen:
    failed = [f"{one.told()} ({one.why})" for one in found[1] if one.status != "done"]
    return broken_by(failed, "not done", f"{counted(len(found[1]), 'case')} came to their end")


def _same_calls(found: _Found) -> Seen:
    by_seed: dict[object, set[int]] = {}
    for one in found[1]:
        if one.totals is not None and one.workload != "steps":
            by_seed.setdefault(one.key_without("policy"), set()).add(one.totals.calls)
    wrong = [str(key) for key, counts in by_seed.items() if len(counts) > 1]
    return broken_by(wrong, "policies got different calls", "all policies got the same calls")


def _repeated(found: _Found) -> Seen:
    seeds: dict[str, int] = {}
    for one in found[1]:
        name = f"{one.setting}, {one.policy}"
        seeds[name] = seeds.get(name, 0) + (one.status == "done")
    return enough(seeds.items(), "seed")


def _recorded(found: _Found) -> Seen:
    header = found[0]
    lacks = [] if header.options.get("scenario") else ["the scenario"]
    return recorded(header.machine, header.versions, lacks)


RULES = Rules(
    key="placement",
    read=FORM.read,
    each={
        "complete": _complete,
        "the same calls": _same_calls,
        "repeated": _repeated,
        "who measured what, where": _recorded,
    },
)
