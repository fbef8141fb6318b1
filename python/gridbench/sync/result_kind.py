"""Results of synchronised rounds, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.errors import InputError
from gridbench.result_kind import Measure, Quantity, only
from gridbench.sync.record import FORM, Round

title = "gridbench sync"
model = "gridbench.sync.model_kind"
rules = "gridbench.sync.rules"
compares = True
holds = FORM.holds


def measures(source: Path) -> dict[Quantity, Measure]:
    """The figures of each case, of the rounds that count. InputError if none does, with why."""
    from gridbench.sync.cases import SyncCase, cases_of

    found: dict[Quantity, Measure] = {}
    _, rounds = FORM.read(source)

    def add(case: SyncCase, what: str, values: Sequence[float], measure: Measure) -> None:
        if values:
            key = (case.told(), what)
            found[key] = Measure(tuple(values), measure.unit, measure.better)

    time, share = Measure((), "s"), Measure((), "", "more")
    bandwidth, rate = Measure((), "bytes/s", "more"), Measure((), "operations/s", "more")
    for case in cases_of(rounds):
        if not case.counts:
            continue
        add(case, "start skew", case.values(lambda f: f.skew), time)
        add(case, "first start to last end", case.values(lambda f: f.span), time)
        add(case, "share of it in which all ran", case.values(lambda f: f.simultaneity), share)
        add(case, "median task time", case.values(lambda f: f.median), time)
        for name in case.phases:
            add(
                case,
                f"{name}, bandwidth",
                case.phase_values(name, lambda p: p.bandwidth),
                bandwidth,
            )
            add(case, f"{name}, operations", case.phase_values(name, lambda p: p.rate), rate)
    if not found:
        raise InputError(
            f"has no round that counts, and so nothing to compare: {_why_not(rounds)}",
            file=source,
            remedy="measure more by --rounds N, with the same --out, on a quiet machine",
        )
    return found


def _why_not(rounds: Sequence[Round]) -> str:
    """How many there are, and why they do not count: `of 3 rounds, 2 disturbed, 1 failed`."""
    from gridbench.formats import counted
    from gridbench.machine.rule import disturbed

    if not rounds:
        return "it holds none"
    failed = sum(one.status == "failed" for one in rounds)
    busy = sum(one.status == "done" and disturbed(one) for one in rounds)
    kinds = {"failed": failed, "disturbed by other programs": busy}
    parts = [f"{count:,} {kind}" for kind, count in kinds.items() if count]
    return f"of {counted(len(rounds), 'round')}, {', '.join(parts)}"


def write_report(sources: Sequence[Path], out: Path) -> None:
    """The page of one."""
    from gridbench.sync.present import write_report as write

    write(only(sources, title), out)


def markdown(sources: Sequence[Path]) -> str:
    """The tables of one."""
    from gridbench.sync.present.markdown import markdown as made

    return made(FORM.read(only(sources, title))[1])
