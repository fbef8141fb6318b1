"""Results with many clients, as `gridbench.result_kind.ResultKind`, and their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.formats import counted
from gridbench.jsonl_store import Header
from gridbench.linpack.clients.record import FORM, ClientsCase, ClientsCell, ServedCall, Spread
from gridbench.machine.judgement import disturbed
from gridbench.result_kind import Better, ResultRow, only
from gridbench.rules import Rules, Seen, broken_by, enough, recorded, undisturbed

if TYPE_CHECKING:
    from gridbench.pages.document import Document

title = "gridbench linpack clients"
model: str | None = None
rules = "gridbench.linpack.clients.result_kind"
compares = True
holds = FORM.holds
nothing_valid = FORM.nothing_valid

_FIGURES: dict[str, tuple[str, Better, Callable[[ClientsCell], Spread | None]]] = {
    "performance": ("flop/s", "more", lambda cell: cell.performance),
    "response": ("s", "less", lambda cell: cell.response),
    "wait": ("s", "less", lambda cell: cell.wait),
    "throughput": ("bytes/s", "more", lambda cell: cell.throughput),
}


def rows(source: Path) -> Iterator[ResultRow]:
    """The mean figures of each case. InputError if they cannot be read."""
    for one in FORM.read(source)[1]:
        for metric, (unit, better, of) in _FIGURES.items():
            found = of(ClientsCell([one]))
            if found is not None:
                yield ResultRow(
                    engine=one.told(),
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


def document(sources: Sequence[Path], page: Path | None = None) -> Document:
    """The findings and tables of one."""
    del page
    from gridbench.linpack.clients.document import document_of

    return document_of(*FORM.read(only(sources, title)))


def to_record(source: Path) -> dict[str, Any]:
    """All cases."""
    return {"cases": [asdict(one) for one in FORM.read(source)[1]]}


# ---- Rules


def _complete(found: tuple[Header, list[ClientsCase]]) -> Seen:
    failed = [f"{one.named()} ({one.why})" for one in found[1] if one.status == "failed"]
    return broken_by(failed, "failed", f"{counted(len(found[1]), 'case')} came to their end")


def _answered(found: tuple[Header, list[ClientsCase]]) -> Seen:
    bad = [
        f"{one.named()}: client {call.client}, {call.ending} {call.why}".rstrip()
        for one, call in _calls(found[1])
        if call.ending != "ok"
    ]
    kept = f"{counted(sum(len(one.calls) for one in found[1]), 'call')} returned a right result"
    return broken_by(bad, "calls were not answered", kept)


def _in_order(found: tuple[Header, list[ClientsCase]]) -> Seen:
    def wrong(one: ClientsCase, call: ServedCall) -> bool:
        stamps = (call.submit, call.enqueue, call.dequeue, call.returned, call.complete)
        known = [stamp for stamp in stamps if stamp is not None]
        return any(later < earlier - one.clock_error for earlier, later in pairwise(known))

    bad = [
        f"{one.named()}, client {call.client}" for one, call in _calls(found[1]) if wrong(one, call)
    ]
    return broken_by(bad, "stamps are out of order", "submit, enqueue, dequeue, complete")


def _one_at_a_time(found: tuple[Header, list[ClientsCase]]) -> Seen:
    bad = []
    for one in found[1]:
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


def _quiet(found: tuple[Header, list[ClientsCase]]) -> Seen:
    done = [one for one in found[1] if one.status == "done"]
    sound = [one for one in done if not disturbed(one)]
    looked = [(one.named(), one.load) for one in sound or done]
    return undisturbed(looked, "case", len(done) - len(looked))


def _repeated(found: tuple[Header, list[ClientsCase]]) -> Seen:
    names = dict.fromkeys(one.told() for one in found[1])
    times = [
        (name, sum(one.told() == name and not disturbed(one) for one in found[1])) for name in names
    ]
    return enough(times, "undisturbed round")


def _recorded(found: tuple[Header, list[ClientsCase]]) -> Seen:
    header = found[0]
    without = [] if header.options.get("solver") else ["the version of OpenBLAS"]
    return recorded(header.machine, header.versions, without)


def _calls(cases: Sequence[ClientsCase]) -> Iterator[tuple[ClientsCase, ServedCall]]:
    return ((one, call) for one in cases for call in one.calls)


RULES = Rules(
    key="clients",
    read=FORM.read,
    each={
        "complete": _complete,
        "every call was answered": _answered,
        "stamps are in order": _in_order,
        "the policy was kept": _one_at_a_time,
        "nothing else was at work": _quiet,
        "repeated": _repeated,
        "who measured what, where": _recorded,
    },
)
