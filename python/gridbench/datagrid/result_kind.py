"""Results of data grids, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.datagrid.record import FORM, Counted, DataGridCase
from gridbench.errors import InputError
from gridbench.result_kind import Better, ResultRow, only

if TYPE_CHECKING:
    from gridbench.pages.document import Document

title = "gridbench data"
model: str | None = "gridbench.datagrid.model_kind"
rules = "gridbench.datagrid.rules"
compares = True
holds = FORM.holds


def rows(source: Path) -> Iterator[ResultRow]:
    """The figures of each case that came to its end. InputError if they cannot be read."""
    import math

    from gridbench.datagrid.figures import figures_of
    from gridbench.machine.judgement import disturbed

    for case in FORM.read(source)[1]:
        if case.status != "done":
            continue
        found = figures_of(case)
        tasks = found.without_start_up
        values: list[tuple[str, float, str, Better]] = [
            ("throughput", found.throughput, "operations/s", "more"),
            ("median task time", tasks.median if tasks else math.nan, "s", "less"),
        ]
        # An open loop's count from when operations should have begun.
        way: Counted = "intended" if case.loop == "open" else "service"
        for (operation, counted_from), latency in found.latencies.items():
            if counted_from == way:
                values.append((f"{operation}, p50", latency.p50, "s", "less"))
                values.append((f"{operation}, p99", latency.p99, "s", "less"))
        if found.dip and found.dip.recovered is not None:
            values.append(("recovery after a kill", found.dip.recovered, "s", "less"))
        for metric, value, unit, better in values:
            if math.isfinite(value):
                yield ResultRow(
                    engine=case.engine,
                    what=f"{case.what}: {metric}",
                    metric=metric,
                    value=value,
                    unit=unit,
                    better=better,
                    repeat=case.repeat,
                    valid=found.verdict == "valid",
                    disturbed=found.verdict == "invalid" and disturbed(case),
                    parameters={
                        "scenario": case.scenario,
                        "label": case.label,
                        "clients": case.clients,
                        "members": case.member_count,
                        "loop": case.loop,
                        "rate": case.rate,
                        "updates": case.updates,
                        **case.parameters,
                    },
                )


def nothing_valid(source: Path) -> InputError:
    """Why no run is valid."""
    return InputError(
        f"has no run that is valid, and so nothing to compare: {_why_not(FORM.read(source)[1])}",
        file=source,
        remedy="measure more by --rounds N, with the same --out; a longer --warm and longer tasks"
        " make throughput steady, and a quiet machine leaves runs undisturbed",
    )


def _why_not(cases: Sequence[DataGridCase]) -> str:
    """How many there are, and why they do not count: `of 3 runs, 2 not steady, 1 failed`."""
    from collections import Counter

    from gridbench.formats import counted

    if not cases:
        return "it holds none"
    kinds = Counter(map(_kind, cases))
    parts = [f"{count} {kind}" for kind, count in kinds.most_common()]
    return f"of {counted(len(cases), 'run')}, {', '.join(parts)}"


def _kind(case: DataGridCase) -> str:
    """The first reason why a case is not valid, in short."""
    from gridbench.datagrid.figures import unsteady, verdict
    from gridbench.machine.judgement import disturbed

    if verdict(case)[0] == "failed":
        return "failed"
    if disturbed(case):
        return "disturbed by other programs"
    if case.warm_up is None:
        return "without warm-up"
    if unsteady(case):
        return "not steady"
    return "not valid for what its report says"


def document(sources: Sequence[Path], page: Path | None = None) -> Document:
    """The answer, tables and charts of one."""
    del page
    from gridbench.datagrid.document import document_of

    return document_of(*FORM.read(only(sources, title)))


def to_record(source: Path) -> dict[str, Any]:
    """All cases."""
    return {"cases": [asdict(one) for one in FORM.read(source)[1]]}
