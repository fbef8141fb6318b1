"""Results of the crossover, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.datagrid.crossover.record import FORM
from gridbench.errors import InputError
from gridbench.result_kind import Measure, Quantity, only

title = "gridbench data crossover"
model = None
rules = "gridbench.datagrid.crossover.rules"
compares = True
holds = FORM.holds


def measures(source: Path) -> dict[Quantity, Measure]:
    """The times of each way to the data, of the repeats that count. InputError if none does."""
    from gridbench.datagrid.crossover.cases import curves_of
    from gridbench.formats import counted, size

    found = {
        (
            curve.name,
            f"{size(case.bytes)} for {counted(case.readers, 'reader')}",
        ): Measure(tuple(map(curve.of, case.counting)))
        for curve in curves_of(FORM.read(source)[1])
        for case in curve.cases
        if case.counts
    }
    if not found:
        raise InputError(
            "has no measurement that counts: other programs disturbed all of them, or none was"
            " done",
            file=source,
            remedy="run `gridbench data crossover` again with another --out, on a quiet machine",
        )
    return found


def write_report(sources: Sequence[Path], out: Path) -> None:
    """The page of one."""
    from gridbench.datagrid.crossover.present import write_report as write

    write(only(sources, title), out)


def markdown(sources: Sequence[Path]) -> str:
    """The tables of one."""
    from gridbench.datagrid.crossover.present.markdown import markdown as made

    return made(FORM.read(only(sources, title))[1])
