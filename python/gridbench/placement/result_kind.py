"""Results of `gridbench placement simulate` and `gridbench placement run`, as
`gridbench.result_kind.ResultKind`, and their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed
from gridbench.placement.record import (
    BEST,
    FORM,
    REAL_FORM,
    PlacementCase,
    PlacementTotals,
    RealRun,
)
from gridbench.result_kind import Figure, RecordsKind, ResultRow, rows_of_case
from gridbench.rules import (
    Measured,
    Rules,
    Seen,
    all_complete,
    all_quiet,
    all_recorded,
    all_repeated,
    broken_by,
    reader_of,
)

# ---- Simulated

_FIGURES: dict[str, Callable[[PlacementTotals], float]] = {
    "mean response": lambda one: one.mean,
    "median response": lambda one: one.median,
    "95 % of responses": lambda one: one.p95,
    "total time": lambda one: one.total,
}


def _rows(cases: list[PlacementCase]) -> Iterator[ResultRow]:
    """The response times of each case."""
    for one in cases:
        if one.totals is None:
            continue
        yield from rows_of_case(
            [Figure(metric, of(one.totals)) for metric, of in _FIGURES.items()],
            engine=one.policy,
            case=one.setting,
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


def _answer(header: Header, cases: list[PlacementCase]) -> Mapping[str, Any]:
    """How policies compare."""
    del header
    from gridbench.placement.document import answer_values

    return answer_values(cases)


SIMULATED = RecordsKind(
    form=FORM,
    title="gridbench placement",
    rules="gridbench.placement.result_kind",
    rows_of=_rows,
    document_module="gridbench.placement.document",
    answer_of=_answer,
)

_Simulated = Measured[PlacementCase]


def _same_calls(found: _Simulated) -> Seen:
    by_seed: dict[object, set[int]] = {}
    for one in found.cases:
        if one.totals is not None and one.workload != "steps":
            by_seed.setdefault(one.key_without("policy"), set()).add(one.totals.calls)
    wrong = [str(key) for key, counts in by_seed.items() if len(counts) > 1]
    return broken_by(wrong, "policies got different calls", "all policies got the same calls")


RULES = Rules(
    key="placement",
    read=reader_of(FORM),
    each={
        "complete": all_complete("case"),
        "the same calls": _same_calls,
        "repeated": all_repeated("seed", lambda one: f"{one.setting}, {one.policy}"),
        "who measured what, where": all_recorded("scenario", "the scenario"),
    },
)


# ---- Real


def _real_rows(runs: list[RealRun]) -> Iterator[ResultRow]:
    """The total times of each run."""
    for one in runs:
        if one.status == "done":
            yield from rows_of_case(
                [Figure("total time", one.total), Figure("first total time", one.first)],
                engine=one.policy,
                repeat=one.repeat,
                valid=not disturbed(one),
                disturbed=disturbed(one),
                parameters={},
            )


def _real_answer(header: Header, runs: list[RealRun]) -> Mapping[str, Any]:
    """How policies compare."""
    del header
    from gridbench.placement.real_document import answer_values

    return {"policies": answer_values(runs)}


REAL = RecordsKind(
    form=REAL_FORM,
    title="gridbench placement run",
    rules="gridbench.placement.result_kind:REAL_RULES",
    rows_of=_real_rows,
    document_module="gridbench.placement.real_document",
    record_name="runs",
    answer_of=_real_answer,
)

_Real = Measured[RealRun]


def _real_same_calls(found: _Real) -> Seen:
    done = [one for one in found.cases if one.status == "done"]
    calls = {one.describe(): sorted(call[:2] for call in one.calls) for one in done}
    first = next(iter(calls.values()), [])
    wrong = [name for name, own in calls.items() if own != first]
    return broken_by(wrong, "had other calls", f"all runs had the same {len(first):,} calls")


def _has_best(found: _Real) -> Seen:
    lacking = [
        one.describe()
        for one in found.cases
        if one.status == "done"
        and not any(
            other.policy == BEST and other.repeat == one.repeat and other.status == "done"
            for other in found.cases
        )
    ]
    return broken_by(
        lacking, "no best assignment in the same round", "each round has the best assignment"
    )


REAL_RULES = Rules(
    key="placement-run",
    read=reader_of(REAL_FORM),
    each={
        "complete": all_complete("run"),
        "the same calls": _real_same_calls,
        "the best assignment is there": _has_best,
        "repeated": all_repeated("round", lambda one: str(one.policy)),
        "nothing else was at work": all_quiet("run"),
        "who measured what, where": all_recorded("scenario", "the scenario"),
    },
)
