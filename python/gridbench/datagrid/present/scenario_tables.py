"""Tables of what changes with object size, clients and members."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gridbench.datagrid.cases import RepeatedCase
from gridbench.datagrid.comparisons import Axis, DataGridSweep, SizeFit
from gridbench.datagrid.present.cells import mark_of, measured_cell
from gridbench.datagrid.workload import label_shown, size_shown
from gridbench.formats import NOTHING, as_given, counted, digits, times, whole
from gridbench.pages.table import Cell, Table
from gridbench.published.figures import FIT_OPERATIONS, data_grid_slides
from gridbench.statistics.interval import Interval

SLIDES = "Coherence, slides"
"""What the published figures are called beside ours."""


def place_shown(axis: Axis, value: float) -> str:
    """A value of the axis."""
    if axis == "ObjectSize":
        return size_shown(value)
    return counted(int(value), "client" if axis == "NNodes" else "member")


def line_name(sweep: DataGridSweep) -> str:
    """`Hazelcast`, or `Hazelcast, 1 KB, atomic updates`."""
    case = sweep.first.case
    apart = [place_shown(name, case.parameters.get(name, 0)) for name in sweep.apart]
    return ", ".join(part for part in (case.title, *apart, case.variant) if part)


def times_table(sweeps: Sequence[DataGridSweep]) -> Table:
    """Time of a task by engine and operation, over the axis."""
    places = sorted({sweep.place(group) for sweep in sweeps for group in sweep.groups})
    axis = sweeps[0].axis
    rows: list[list[str | Cell]] = []
    for sweep in sweeps:
        known = {sweep.place(group): group for group in sweep.groups}
        rows.append(
            [
                Cell(line_name(sweep)),
                f"{label_shown(sweep.first.case.label)} × {whole(sweep.operations)}".strip(),
                *(_time(sweep, known.get(place)) for place in places),
            ]
        )
    return Table(["engine", "a task", *(place_shown(axis, place) for place in places)], rows)


def relative_table(sweeps: Sequence[DataGridSweep]) -> Table:
    """The same against the first place, with throughput."""
    places = sorted({sweep.place(group) for sweep in sweeps for group in sweep.groups})
    axis = sweeps[0].axis
    rows: list[list[str | Cell]] = []
    for sweep in sweeps:
        time, rate = dict(sweep.relative_times()), dict(sweep.relative_rates())
        if time or rate:
            rows.append(
                [
                    Cell(line_name(sweep)),
                    label_shown(sweep.first.case.label) or NOTHING,
                    *(_relative(time.get(place), rate.get(place)) for place in places),
                ]
            )
    return Table(["engine", "operation", *(place_shown(axis, place) for place in places)], rows)


def fits_table(sweeps: Sequence[DataGridSweep]) -> Table:
    """Lines through the times over object size, and the published one."""
    rows: list[list[str | Cell]] = []
    for sweep in sweeps:
        task, operation = sweep.task_fit(), sweep.operation_fit()
        if task is None:
            continue
        rows.append(
            [
                f"{line_name(sweep)}{mark_of(sweep.first)}",
                f"{label_shown(sweep.first.case.label)} × {whole(sweep.operations)}".strip(),
                _slope(task, 1.0),
                measured_cell(task.constant, "s"),
                _slope(operation, 1e3),
                measured_cell(operation.constant if operation else None, "s"),
            ]
        )
    if any(sweep.first.case.label == "update" for sweep in sweeps):
        slides = data_grid_slides()
        each = 1e3 / FIT_OPERATIONS
        rows.append(
            [
                SLIDES,
                f"update × {FIT_OPERATIONS}",
                f"{slides.update_per_mb.text} s/MB",
                f"{slides.update_constant.text} s",
                as_given(slides.update_per_mb.value * each, "ms/MB"),
                as_given(slides.update_constant.value * each, "ms"),
            ]
        )
    head = [
        "engine",
        "a task",
        "task, for each MB",
        "task, constant",
        "operation, for each MB",
        "operation, constant",
    ]
    return Table(head, rows)


def _time(sweep: DataGridSweep, group: RepeatedCase | None) -> Cell:
    if group is None:
        return Cell(NOTHING)
    spread = group.task_times()
    found = measured_cell(spread and spread.times(sweep.share(group)), "s")
    return Cell(f"{found.text}{mark_of(group)}", found.note, "" if group.counts else "soft")


def _relative(time: float | None, rate: float | None) -> Cell:
    note = f"throughput {times(rate)}" if rate is not None else ""
    return Cell(times(time) if time is not None else NOTHING, note)


def _slope(fit: SizeFit | None, factor: float) -> Cell:
    """Seconds for each MB, or milliseconds by a factor of 1000."""
    if fit is None:
        return Cell(NOTHING)
    shown = fit.per_mb.times(factor)
    unit = "s/MB" if factor == 1 else "ms/MB"
    return Cell(f"{digits(shown.value)} {unit}", _bounds(shown))


def _bounds(found: Interval) -> str:
    if not math.isfinite(found.low + found.high):
        return ""
    return f"{digits(found.low)}–{digits(found.high)}"
