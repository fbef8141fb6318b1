"""Results of data grids, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gridbench.datagrid.record import FORM, Counted, DataGridCase
from gridbench.result_kind import Figure, RecordsKind, ResultRow, rows_of_case


def _rows(cases: list[DataGridCase]) -> Iterator[ResultRow]:
    """The figures of each case that came to its end."""
    from gridbench.datagrid.figures import figures_of
    from gridbench.machine.judgement import disturbed

    for case in cases:
        if case.status != "done":
            continue
        found = figures_of(case)
        tasks = found.without_start_up
        figures = [
            Figure("throughput", found.throughput, "operations/s", "more"),
            Figure("median task time", tasks.median if tasks else math.nan),
        ]
        # An open loop's count from when operations should have begun.
        way: Counted = "intended" if case.loop == "open" else "service"
        for (operation, counted_from), latency in found.latencies.items():
            if counted_from == way:
                figures.append(Figure(f"{operation}, p50", latency.p50))
                figures.append(Figure(f"{operation}, p99", latency.p99))
        if found.dip and found.dip.recovered is not None:
            figures.append(Figure("recovery after a kill", found.dip.recovered))
        yield from rows_of_case(
            figures,
            engine=case.engine,
            case=case.what,
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


def _reason(case: DataGridCase) -> str:
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


DATA_GRIDS = RecordsKind(
    form=FORM,
    title="gridbench data",
    model="gridbench.datagrid.model_kind",
    rules="gridbench.datagrid.rules",
    rows_of=_rows,
    document_module="gridbench.datagrid.document",
    reason_of=_reason,
    remedy="measure more by --rounds N, with the same --out; a longer --warm and longer tasks make"
    " throughput steady, and a quiet machine leaves runs undisturbed",
)
