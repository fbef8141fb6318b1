"""Results of data grids, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.datagrid.record import Counted
from gridbench.datagrid.results import holds_results, read_results
from gridbench.errors import InputError
from gridbench.result_kind import Measure, Quantity

compares = True
holds = holds_results


def measures(source: Path) -> dict[Quantity, Measure]:
    """The figures of each case, of the repeats that are valid."""
    import math

    from gridbench.datagrid.cases import repeats_of
    from gridbench.datagrid.naming import what_of

    found: dict[Quantity, Measure] = {}
    _, cases = read_results(source)
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
    return found


def write_report(sources: Sequence[Path], out: Path) -> None:
    """The page of one."""
    from gridbench.datagrid.present import write_report as write

    if len(sources) > 1:
        raise InputError(
            "the results of `gridbench data` cannot be in one report with others",
            remedy="make a report of them alone, or compare two of them",
        )
    write(sources[0], out)
