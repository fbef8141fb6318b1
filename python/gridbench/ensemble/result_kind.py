"""Results of the weather ensemble, as `gridbench.result_kind.ResultKind`, and their rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from gridbench.ensemble.record import FORM, EnsembleRun
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed
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


def _rows(runs: list[EnsembleRun]) -> Iterator[ResultRow]:
    """Times and efficiencies of each run."""
    for one in runs:
        if one.status != "done":
            continue
        figures = [
            Figure("run time", one.run_time),
            Figure("call time", one.call_time),
            Figure("transfer time", one.transfer_time),
            Figure("elapsed time", one.elapsed),
            Figure("start-up", one.start),
            Figure("call efficiency", one.call_efficiency, "", "more"),
            Figure("efficiency", one.efficiency, "", "more"),
        ]
        if one.ahead:
            # Calls wait for their processors.
            figures = [figure for figure in figures if not figure.metric.startswith("call")]
        yield from rows_of_case(
            figures,
            engine=one.engine,
            case=one.describe(),
            repeat=one.repeat,
            valid=not disturbed(one),
            disturbed=disturbed(one),
            parameters={
                "layout": one.layout,
                "clusters": one.shares,
                "processors": one.processors,
                "samples": one.samples,
                "grain": one.grain,
                "request": one.request,
                "ahead": one.ahead,
            },
        )


def _without_samples(one: EnsembleRun) -> Mapping[str, Any]:
    return {**asdict(one), "runs": len(one.runs)}


def _answer(header: Header, runs: list[EnsembleRun]) -> Mapping[str, Any]:
    """The figures of each case."""
    del header
    from gridbench.ensemble.document import answer_values

    return answer_values(runs)


ENSEMBLE = RecordsKind(
    form=FORM,
    title="gridbench ensemble",
    rules="gridbench.ensemble.result_kind",
    rows_of=_rows,
    document_module="gridbench.ensemble.document",
    record_name="runs",
    record_of=_without_samples,
    answer_of=_answer,
)

# ---- Rules

_Found = Measured[EnsembleRun]


def _done(found: _Found) -> list[EnsembleRun]:
    return [one for one in found.cases if one.status == "done"]


def _all_samples(found: _Found) -> Seen:
    wrong = [
        f"{one.describe()}: {len(one.runs):,} samples, {one.wrong:,} of them wrong"
        for one in _done(found)
        if len(one.runs) != one.samples or one.wrong
    ]
    total = sum(len(one.runs) for one in _done(found))
    return broken_by(wrong, "samples are missing or wrong", f"all {total:,} samples are there")


def _in_order(found: _Found) -> Seen:
    def is_possible(one: EnsembleRun) -> bool:
        return all(row.submitted <= row.started <= row.computed <= row.ended for row in one.rows)

    wrong = [one.describe() for one in _done(found) if not is_possible(one)]
    return broken_by(wrong, "times run backwards", "each sample was sent, run and returned")


def _one_at_a_time(found: _Found) -> Seen:
    wrong = []
    for one in _done(found):
        events = [(row.submitted, 1) for row in one.rows] + [(row.ended, -1) for row in one.rows]
        # The next call begins just before the stamps of the last one are read.
        under_way = most = 0
        for _, change in sorted(events, key=lambda event: (event[0], event[1])):
            under_way += change
            most = max(most, under_way)
        if most > one.processors * (1 + one.ahead):
            wrong.append(f"{one.describe()}: {most:,} calls at a time")
    return broken_by(
        wrong, "more calls than were to be", "no processor had more calls than it was to have"
    )


RULES = Rules(
    key="ensemble",
    read=reader_of(FORM),
    each={
        "complete": all_complete("run"),
        "all samples": _all_samples,
        "times in order": _in_order,
        "calls for each processor": _one_at_a_time,
        "repeated": all_repeated("round"),
        "nothing else was at work": all_quiet("run"),
        "who measured what, where": all_recorded("time_scale", "the time scale"),
    },
)
