"""Results of synchronised rounds, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.result_kind import Measure, Quantity, only
from gridbench.sync.results import holds_results, read_results

title = "gridbench sync"
model = "gridbench.sync.model_kind"
rules = "gridbench.sync.rules"
compares = True
holds = holds_results


def measures(source: Path) -> dict[Quantity, Measure]:
    """The figures of each case, of the rounds that count."""
    from gridbench.sync.cases import Case, cases_of
    from gridbench.sync.naming import case_name

    found: dict[Quantity, Measure] = {}
    _, rounds = read_results(source)

    def add(case: Case, what: str, values: Sequence[float], measure: Measure) -> None:
        if values:
            key = (case_name(case), what)
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
    return found


def write_report(sources: Sequence[Path], out: Path) -> None:
    """The page of one."""
    from gridbench.sync.present import write_report as write

    write(only(sources, title), out)


def markdown(sources: Sequence[Path]) -> str:
    """The tables of one."""
    from gridbench.sync.present.markdown import markdown as made

    return made(read_results(only(sources, title))[1])
