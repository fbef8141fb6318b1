"""Results of `gridbench linpack` and `gridbench linpack clients`, as
`gridbench.result_kind.ResultKind`, and their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from gridbench.formats import counted
from gridbench.jsonl_store import Header
from gridbench.linpack.record import (
    CLIENTS_FORM,
    FORM,
    ClientsCase,
    ClientsCell,
    LinpackCase,
    ServedCall,
    Spread,
    operations,
    transferred,
    wrong_solution,
)
from gridbench.machine.judgement import disturbed
from gridbench.result_kind import Better, Figure, RecordsKind, ResultRow, rows_of_case
from gridbench.rules import (
    Measured,
    Rules,
    Seen,
    all_complete,
    all_quiet,
    all_recorded,
    all_repeated,
    broken_by,
    enough,
    reader_of,
    undisturbed,
)

if TYPE_CHECKING:
    from gridbench.linpack.model_kind import LinpackSeries, SizeCase

# ---- One client


def _rows(cases: list[LinpackCase]) -> Iterator[ResultRow]:
    """Time, performance and throughput of each run of a client."""
    for one in cases:
        if one.status != "done":
            continue
        figures = [
            Figure("time of a call", one.seconds),
            Figure("performance", operations(one.n) / one.seconds, "flop/s", "more"),
        ]
        if one.communication > 0:
            rate = transferred(one.n) / one.communication
            figures.append(Figure("throughput", rate, "bytes/s", "more"))
        yield from rows_of_case(
            figures,
            engine=one.path,
            case=one.describe(),
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


def _answer(header: Header, cases: list[LinpackCase]) -> Mapping[str, Any]:
    """Sizes from which on servers are faster, and models."""
    del header
    from gridbench.linpack.document import answer_values

    return answer_values(cases)


SINGLE = RecordsKind(
    form=FORM,
    title="gridbench linpack",
    model="gridbench.linpack.model_kind",
    rules="gridbench.linpack.result_kind",
    rows_of=_rows,
    document_module="gridbench.linpack.document",
    answer_of=_answer,
)

_Found = Measured[LinpackCase]


def _sizes(found: _Found) -> Iterator[tuple[str, SizeCase]]:
    from gridbench.linpack.model_kind import series_of

    series: list[LinpackSeries] = series_of(found.cases)
    for one in series:
        for case in one.cases:
            yield case.all[0].describe(), case


def _correct(found: _Found) -> Seen:
    done = [one for one in found.cases if one.status == "done"]
    wrong = [f"{one.describe()}: {why}" for one in done if (why := wrong_solution(one.solves))]
    solves = sum(len(one.solves) for one in done)
    return broken_by(wrong, "wrong solutions", f"{solves:,} solutions are correct")


def _quiet(found: _Found) -> Seen:
    looked = [(name, one.load) for name, case in _sizes(found) for one in case.counting]
    left_out = sum(len(case.all) - len(case.counting) for _, case in _sizes(found))
    return undisturbed(looked, "case", left_out)


def _repeated(found: _Found) -> Seen:
    times = [(name, sum(not disturbed(one) for one in case.all)) for name, case in _sizes(found)]
    return enough(times, "undisturbed run")


RULES = Rules(
    key="solves",
    read=reader_of(FORM),
    each={
        "complete": all_complete("case"),
        "correct": _correct,
        "nothing else was at work": _quiet,
        "repeated": _repeated,
        "who measured what, where": all_recorded("solver", "the version of OpenBLAS"),
    },
)


# ---- Many clients

_FIGURES: dict[str, tuple[str, Better, Callable[[ClientsCell], Spread | None]]] = {
    "performance": ("flop/s", "more", lambda cell: cell.performance),
    "response": ("s", "less", lambda cell: cell.response),
    "wait": ("s", "less", lambda cell: cell.wait),
    "throughput": ("bytes/s", "more", lambda cell: cell.throughput),
}


def _clients_rows(cases: list[ClientsCase]) -> Iterator[ResultRow]:
    """The mean figures of each case."""
    for one, (metric, (unit, better, of)) in product(cases, _FIGURES.items()):
        found = of(ClientsCell([one]))
        if found is not None:
            yield ResultRow(
                engine=one.describe(),
                what=f"{metric}, mean",
                metric=metric,
                value=found.mean,
                unit=unit,
                better=better,
                repeat=one.repeat,
                valid=one.status == "done" and not disturbed(one),
                disturbed=one.status == "done" and disturbed(one),
                parameters={
                    "server": one.server,
                    "policy": one.policy,
                    "n": one.n,
                    "clients": one.clients,
                    "steps": one.steps,
                },
            )


CLIENTS = RecordsKind(
    form=CLIENTS_FORM,
    title="gridbench linpack clients",
    rules="gridbench.linpack.result_kind:CLIENTS_RULES",
    rows_of=_clients_rows,
    document_module="gridbench.linpack.clients_document",
)

_Clients = Measured[ClientsCase]


def _answered(found: _Clients) -> Seen:
    bad = [
        f"{one.named()}: client {call.client}, {call.ending} {call.why}".rstrip()
        for one, call in _calls(found.cases)
        if call.ending != "ok"
    ]
    stored = (
        f"{counted(sum(len(one.calls) for one in found.cases), 'call')} returned a right result"
    )
    return broken_by(bad, "calls were not answered", stored)


def _in_order(found: _Clients) -> Seen:
    def wrong(one: ClientsCase, call: ServedCall) -> bool:
        stamps = (call.submit, call.enqueue, call.dequeue, call.returned, call.complete)
        known = [stamp for stamp in stamps if stamp is not None]
        return any(later < earlier - one.clock_error for earlier, later in pairwise(known))

    bad = [
        f"{one.named()}, client {call.client}"
        for one, call in _calls(found.cases)
        if wrong(one, call)
    ]
    return broken_by(bad, "stamps are out of order", "submit, enqueue, dequeue, complete")


def _one_at_a_time(found: _Clients) -> Seen:
    bad = []
    for one in found.cases:
        most = 1 if one.policy == "all" else one.cores
        if (running := _most_running(one)) > most:
            bad.append(f"{one.named()}: {running} calls ran at a time")
    return broken_by(bad, "the server did not keep its policy", "no more calls ran than it allows")


def _most_running(case: ClientsCase) -> int:
    """The most functions that ran at a time."""
    events = [
        event
        for call in case.calls
        if call.dequeue is not None and call.returned is not None
        # Of two at one moment the end comes first; clocks of workers are exact to that error.
        for event in ((call.dequeue + case.clock_error, 1), (call.returned, -1))
    ]
    running = most = 0
    for _, change in sorted(events):
        running += change
        most = max(most, running)
    return most


def _calls(cases: Sequence[ClientsCase]) -> Iterator[tuple[ClientsCase, ServedCall]]:
    return ((one, call) for one in cases for call in one.calls)


CLIENTS_RULES = Rules(
    key="clients",
    read=reader_of(CLIENTS_FORM),
    each={
        "complete": all_complete("case", ClientsCase.named),
        "every call was answered": _answered,
        "stamps are in order": _in_order,
        "the policy was kept": _one_at_a_time,
        "nothing else was at work": all_quiet("case", ClientsCase.named),
        "repeated": all_repeated("undisturbed round"),
        "who measured what, where": all_recorded("solver", "the version of OpenBLAS"),
    },
)
