"""Simulated runs, sweeps, comparisons and predicted cases as documents."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from gridbench.formats import (
    as_given,
    between,
    bit_rate,
    compact_size,
    duration,
    percent,
    rough,
    signed_percent,
)
from gridbench.pages.chart import Chart, figure
from gridbench.pages.colours import PHASES, SERIES
from gridbench.pages.curves import Curve, Line, Place, Point, exactly
from gridbench.pages.document import EVERYWHERE, Block, Document, Paragraph, Section, TableBlock
from gridbench.pages.table import Cell, Column, Table, table_of
from gridbench.simulate.account import Account
from gridbench.simulate.comparison import SimulationComparison
from gridbench.simulate.simulation import SimulatedWorkload
from gridbench.simulate.sweep import CasePrediction, CasePredictions, Swept
from gridbench.simulate.systems import Level, System

_SHOWN_PART = 0.0005
"""Parts below this share of the total are left out."""
_KIND = "gridbench simulate"


def heading(work: SimulatedWorkload) -> str:
    """The workload in a line."""
    spread = f" +- {as_given(work.stddev, '')}" if work.stddev else ""
    parts = [
        f"{work.tasks:,} tasks of {as_given(work.sleep, '')}{spread} s on {work.cores:,} cores",
        f"input {compact_size(work.bytes_in)}",
        f"shared {compact_size(work.bytes_shared)}",
        f"output {compact_size(work.bytes_out)}",
    ]
    return ", ".join(parts)


def links(system: System) -> str:
    """Its links, in words."""
    return "one host" if system.one_host else f"links of {bit_rate(system.link)}"


# ---- One run


def account_document(one: Account) -> Document:
    """A simulated run: its figures, where the time goes, and its bottleneck."""
    title = f"{one.system.title}, simulated"
    busy = table_of(
        [
            Column("resource", lambda use: use.what, words=True),
            Column("busy", lambda use: duration(use.busy)),
            Column("of the time", lambda use: percent(use.share)),
        ],
        one.uses,
    )
    gains = table_of(
        [
            Column("without", lambda gain: gain.without, words=True),
            Column("total", lambda gain: duration(gain.total)),
            Column("saved", lambda gain: duration(gain.saved)),
        ],
        one.gains,
    )
    return Document(
        kind=_KIND,
        title=f"{_KIND}: {one.system.name}",
        heading=title,
        sentences=[f"Bottleneck: {one.limit}"],
        notices=[f"caution: {notice}" for notice in one.notices],
        summary=[
            Paragraph(title, EVERYWHERE),
            Paragraph(f"{heading(one.work)}; {links(one.system)}", EVERYWHERE),
            TableBlock("", Table(["figure", "value"], list(_figures(one))), media=EVERYWHERE),
            TableBlock("Where the time goes, mean of the workers", _parts(one), media=EVERYWHERE),
            TableBlock("What was busy", busy, media=EVERYWHERE),
            TableBlock("What the total would be without", gains, media=EVERYWHERE),
        ],
    )


def _figures(one: Account) -> Iterator[tuple[str, str]]:
    yield "total", duration(one.total)
    yield "ideal", duration(one.ideal)
    yield "efficiency", percent(one.efficiency)
    yield "first task computing after", duration(one.first_start)
    yield "last worker computing after", duration(one.last_start)
    if one.pressure and one.pressure.most:
        yield "most bytes held by the manager", compact_size(one.pressure.most)
        if one.pressure.worst:
            yield "throttling reached", Level(one.pressure.worst).name.lower()
            yield "tasks paged to disk", f"{one.pressure.paged:,}"


def _parts(one: Account) -> Table:
    return table_of(
        [
            Column("part", lambda part: part[0], words=True),
            Column("time", lambda part: duration(part[1])),
            Column("share", lambda part: percent(part[1] / one.total)),
        ],
        [part for part in one.parts.items() if abs(part[1]) > _SHOWN_PART * one.total],
    )


# ---- A sweep


def sweep_document(swept: Swept) -> Document:
    """Totals over the value that was varied, and the bottleneck at each value."""
    first, last = swept.accounts[0], swept.accounts[-1]
    axis = swept.sweep.axis.name
    profile = table_of(
        [
            Column("parameter", lambda given: given.name, words=True),
            Column("value", lambda given: as_given(given.value, given.unit)),
            Column("source", lambda given: given.source, words=True),
        ],
        first.system.given,
    )
    title = f"{first.system.title}, simulated"
    return Document(
        kind=_KIND,
        title=f"{_KIND}: {first.system.name}",
        heading=title,
        subheading=f"{axis} varied; first: {heading(first.work)}; {links(first.system)}",
        sentences=[_range_text(swept)],
        notices=[
            "No run was made: these are figures of a model.",
            *(f"caution: {notice}" for notice in last.notices),
        ],
        summary=[
            _time_curve(swept).chart(),
            TableBlock(title, sweep_table(swept), media=EVERYWHERE),
        ],
        sections=[
            Section(
                "efficiency", "Efficiency, and what is busy", [_efficiency_curve(swept).chart()]
            ),
            Section(
                "parts",
                "Where the time goes",
                [
                    Paragraph(
                        "The time of a worker, in the mean of all; the parts add up to the total."
                    ),
                    _parts_chart(swept),
                ],
            ),
            Section("profile", "The profile", [TableBlock("Its parameters", profile)]),
        ],
    )


def _range_text(swept: Swept) -> str:
    text, values = swept.sweep.axis.text, swept.sweep.values
    name = swept.sweep.axis.name
    first, last = swept.accounts[0], swept.accounts[-1]
    start = f"With {name} {text(values[0])} it takes {duration(first.total)}"
    if first is last:
        return f"{start}."
    end = text(values[len(swept.accounts) - 1])
    return f"{start}; with {name} {end}, {duration(last.total)}."


def sweep_table(swept: Swept) -> Table:
    """A row for each value."""
    axis = swept.sweep.axis
    return table_of(
        [
            Column(axis.name, lambda row: axis.text(row[0])),
            Column("tasks", lambda row: row[1].work.tasks),
            Column("total", lambda row: duration(row[1].total)),
            Column("ideal", lambda row: duration(row[1].ideal)),
            Column("efficiency", lambda row: percent(row[1].efficiency)),
            Column("busiest", lambda row: percent(row[1].uses[0].share) if row[1].uses else "-"),
            Column("bottleneck", lambda row: row[1].limit, words=True),
        ],
        list(zip(swept.sweep.values, swept.accounts, strict=False)),
    )


def _places(swept: Swept) -> list[Place]:
    text = swept.sweep.axis.text
    values = swept.sweep.values[: len(swept.accounts)]
    return [Place(value, text(value)) for value in values]


def _line(swept: Swept, name: str, value: Callable[[Account], float], *, dash: str = "") -> Line:
    points = [
        Point(place, exactly(found), counts=True)
        for place, one in zip(_places(swept), swept.accounts, strict=True)
        if math.isfinite(found := value(one))
    ]
    return Line(name, points, dash=dash)


def _time_curve(swept: Swept) -> Curve:
    return Curve(
        id="total",
        title="Total time",
        about="From the moment the client asks for its workers to the last result. The ideal is"
        " the time of the tasks alone on as many cores.",
        x_title=swept.sweep.axis.name,
        places=_places(swept),
        y_title="time",
        unit="s",
        lines=[
            _line(swept, "total", lambda one: one.total),
            _line(swept, "ideal", lambda one: one.ideal, dash="dot"),
        ],
    )


def _efficiency_curve(swept: Swept) -> Curve:
    def share(name: str) -> Callable[[Account], float]:
        return lambda one: 100 * sum(use.share for use in one.uses if use.what == name)

    used = dict.fromkeys(use.what for one in swept.accounts for use in one.uses)
    return Curve(
        id="efficiency",
        title="Efficiency and use",
        about="Efficiency is ideal by total time. A part that is always busy is the bottleneck.",
        x_title=swept.sweep.axis.name,
        places=_places(swept),
        y_title="share of the time",
        unit="%",
        lines=[
            _line(swept, "efficiency", lambda one: 100 * one.efficiency),
            *(_line(swept, name, share(name)) for name in used),
        ],
    )


def _parts_chart(swept: Swept) -> Chart:
    names = [place.text for place in _places(swept)]
    parts = list(dict.fromkeys(name for one in swept.accounts for name in one.parts))
    shares = {
        name: [one.parts.get(name, 0.0) / one.total if one.total else 0.0 for one in swept.accounts]
        for name in parts
    }
    axis = swept.sweep.axis.name
    return figure(
        [
            {
                "type": "bar",
                "name": name,
                "x": names,
                "y": values,
                "marker": {"color": PHASES.get(name, SERIES[number % len(SERIES)])},
                "text": list(map(percent, values)),
                "textposition": "none",
                "hovertemplate": f"{name}<br>%{{text}}<extra></extra>",
            }
            for number, (name, values) in enumerate(shares.items())
        ],
        x={"title": axis, "type": "category"},
        y={"title": "share of the total", "tickformat": ".0%", "range": [0, 1]},
        label="Parts of the total time",
        name="parts",
        height=420,
        layout={"barmode": "stack"},
        table=Table(
            [axis, *parts],
            [
                [place, *(percent(shares[name][number]) for name in parts)]
                for number, place in enumerate(names)
            ],
        ),
    )


# ---- Measured figures beside simulated ones


def comparison_document(found: Sequence[SimulationComparison]) -> Document:
    """Comparisons, each with its errors and omissions."""
    return Document(
        kind=_KIND,
        title=_KIND,
        heading="Measured and simulated figures",
        sentences=[],
        summary=[block for one in found for block in _compared(one)],
    )


def _compared(one: SimulationComparison) -> Iterator[Block]:
    table = table_of(
        [
            Column("case", lambda row: row.what, words=True),
            Column("real", lambda row: duration(row.real)),
            Column("simulated", lambda row: duration(row.simulated)),
            Column("error", lambda row: signed_percent(row.error)),
            Column(
                "of the overhead",
                lambda row: signed_percent(row.overhead_error),
                condition=one.totals,
            ),
        ],
        one.rows,
    )
    yield Paragraph(f"{one.title}. {one.how}", EVERYWHERE)
    yield TableBlock("", table, media=EVERYWHERE)
    for name, value in one.errors().items():
        yield Paragraph(f"absolute error, {name}: {percent(value)}", EVERYWHERE)
    for line in one.left_out:
        yield Paragraph(f"left out: {line}", EVERYWHERE)


# ---- Cases by a fitted model


def cases_document(found: CasePredictions) -> Document:
    """A table for each model, and in which ways cases are beyond what was measured."""
    models = dict.fromkeys((one.model.name, one.model.told) for one in found.rows)
    return Document(
        kind=_KIND,
        title=_KIND,
        heading="Predicted cases",
        sentences=[],
        summary=[
            block
            for model in models
            for block in _predicted(
                found, [one for one in found.rows if (one.model.name, one.model.told) == model]
            )
        ],
    )


def _predicted(found: CasePredictions, rows: Sequence[CasePrediction]) -> Iterator[Block]:
    model = rows[0].model

    def expected(row: CasePrediction) -> Cell:
        return Cell(f"{rough(row.expected.total)}{'*' if row.expected.outside else ''}")

    table = table_of(
        [
            *(
                Column(one.what, lambda row, one=one: one.shown(row.case[one.name]))  # type: ignore[misc]
                for one in found.parameters
            ),
            Column("expected", expected),
            Column("90 % range", lambda row: between(row.expected.low, row.expected.high)),
            *(
                Column(part, lambda row, part=part: rough(row.expected.parts[part]))  # type: ignore[misc]
                for part in rows[0].expected.parts
            ),
        ],
        rows,
    )
    yield Paragraph(f"{model.told}. Predicted: the {model.quantity}.", EVERYWHERE)
    yield TableBlock("", table, media=EVERYWHERE)
    if outside := dict.fromkeys(text for row in rows for text in row.expected.outside):
        yield Paragraph(f"* Extrapolated: {'; '.join(outside)}.", EVERYWHERE)
