"""Results of data grids, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.datagrid.record import FORM, Case, Counted
from gridbench.errors import InputError
from gridbench.result_kind import Measure, Quantity, only

title = "gridbench data"
model = "gridbench.datagrid.model_kind"
rules = "gridbench.datagrid.rules"
compares = True
holds = FORM.holds


def measures(source: Path) -> dict[Quantity, Measure]:
    """The figures of each case, of the repeats that are valid. InputError if none is, with why."""
    import math

    from gridbench.datagrid.cases import repeats_of
    from gridbench.datagrid.naming import what_of

    found: dict[Quantity, Measure] = {}
    _, cases = FORM.read(source)
    for group in repeats_of(cases):
        if not group.counts:
            continue
        known = {
            "throughput": Measure(
                tuple(group.values(lambda f: f.throughput)), "operations/s", "more"
            ),
            "median task time": Measure(
                tuple(
                    group.values(
                        lambda f: f.without_start_up.median if f.without_start_up else math.nan
                    )
                )
            ),
        }
        for operation in group.operations:
            # An open loop's count from when operations should have begun.
            way: Counted = "intended" if group.case.loop == "open" else "service"
            each = [one for f in group.figures if (one := f.latency(operation, way))]
            known[f"{operation}, p50"] = Measure(tuple(one.p50 for one in each))
            known[f"{operation}, p99"] = Measure(tuple(one.p99 for one in each))
        dips = [f.dip.recovered for f in group.figures if f.dip and f.dip.recovered is not None]
        known["recovery after a kill"] = Measure(tuple(dips))
        for what, measure in known.items():
            if measure.values:
                found[group.case.engine, f"{what_of(group.case)}: {what}"] = measure
    if not found:
        raise InputError(
            f"has no run that is valid, and so nothing to compare: {_why_not(cases)}",
            file=source,
            remedy="measure more by --rounds N, with the same --out; a longer --warm and longer"
            " tasks make throughput steady, and a quiet machine leaves runs undisturbed",
        )
    return found


def _why_not(cases: Sequence[Case]) -> str:
    """How many there are, and why they do not count: `of 3 runs, 2 not steady, 1 failed`."""
    from collections import Counter

    from gridbench.formats import counted

    if not cases:
        return "it holds none"
    kinds = Counter(map(_kind, cases))
    parts = [f"{count} {kind}" for kind, count in kinds.most_common()]
    return f"of {counted(len(cases), 'run')}, {', '.join(parts)}"


def _kind(case: Case) -> str:
    """The first reason why a case is not valid, in short."""
    from gridbench.datagrid.figures import unsteady, verdict
    from gridbench.machine.rule import disturbed

    if verdict(case)[0] == "failed":
        return "failed"
    if disturbed(case):
        return "disturbed by other programs"
    if case.warm_up is None:
        return "without warm-up"
    if unsteady(case):
        return "not steady"
    return "not valid for what its report says"


def write_report(sources: Sequence[Path], out: Path) -> None:
    """The page of one."""
    from gridbench.datagrid.present import write_report as write

    write(only(sources, title), out)


def markdown(sources: Sequence[Path]) -> str:
    """The tables of one."""
    from gridbench.datagrid.present.markdown import markdown as made

    return made(FORM.read(only(sources, title))[1])
