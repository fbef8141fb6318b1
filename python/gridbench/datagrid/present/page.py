"""The results as one HTML page; its pictures are drawn by datagrid.js."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridbench.atomic_write import write_file
from gridbench.datagrid.cases import RepeatedCase, repeats_of, titles_of
from gridbench.datagrid.comparisons import (
    Axis,
    DataGridSweep,
    LoopComparison,
    compared_loops,
    scenarios_of,
    sweeps_of,
)
from gridbench.datagrid.present import details, pictures
from gridbench.datagrid.present.cells import worst_of
from gridbench.datagrid.present.notes import clients_part, headline, notices, races, subheading
from gridbench.datagrid.present.rows import (
    cases_table,
    correctness_table,
    kills_table,
    latency_table,
    loading_table,
    loops_table,
    marks_told,
    memory_table,
    trouble_table,
)
from gridbench.datagrid.present.scenario_tables import fits_table, relative_table, times_table
from gridbench.datagrid.record import COUNTED, FORM, DataGridCase
from gridbench.datagrid.workload import label_shown
from gridbench.formats import amount, as_given
from gridbench.jsonl_store import Header
from gridbench.pages import render as pages
from gridbench.pages.chart import Chart
from gridbench.pages.curves import Curve
from gridbench.pages.table import Cell, Table, facts

SCENARIOS = {1: "object size", 2: "clients", 3: "members"}
"""The axis of each scenario."""
_MOST_LOOPS = 6
"""Pictures of closed and open loops."""
_AXES: tuple[tuple[Axis, str], ...] = (
    ("ObjectSize", "Object size"),
    ("NNodes", "Clients"),
    ("MNodes", "Members"),
)


@dataclass(frozen=True, slots=True)
class Section:
    """What changes along an axis."""

    id: str
    name: str
    heading: str
    curves: Sequence[Curve]
    times: Table
    relative: Table | None
    fits: Table | None

    @property
    def charts(self) -> list[Chart]:
        """Its pictures."""
        return [one.chart() for one in self.curves]


def write_report(source: Path, out: Path) -> None:
    """Write the page about the results in a folder, completely or not at all.

    InputError if they cannot be read, or if `out` cannot be written.
    """
    header, cases = FORM.read(source)
    write_file(out, render(header, cases))


def render(header: Header, cases: Sequence[DataGridCase]) -> str:
    """The whole page as HTML."""
    groups = repeats_of(cases)
    told = headline(groups)
    sections = _sections(groups)
    compared = compared_loops(groups)
    shown = details.shown_cases(groups)
    latencies, latency_charts = _latencies(groups)
    loops, loop_charts = _loops(compared)
    recovery, balance = pictures.recoveries(groups), pictures.balance(groups)
    memory = pictures.memory(
        [sweep for axis in ("ObjectSize", "MNodes") for sweep in sweeps_of(groups, axis)]
    )
    wrong = [g for g in groups if g.measured and worst_of(g).outcome in ("wrong", "lost")]
    tables = {
        "loops": loops_table(compared),
        "kills": kills_table(groups),
        "memory": memory_table(groups),
        "loading": loading_table(groups),
        "correctness": correctness_table(groups),
        "wrong": correctness_table(wrong),
        "trouble": trouble_table(groups),
    }
    drawn = [*(one for section in sections for one in section.curves), *memory]
    curves = {one.id: one.data() for one in drawn}
    return pages.render(
        "datagrid/present/datagrid.html",
        "gridbench data: data grids",
        {
            "curve": curves,
            "tail": latencies | loops,
            "recovery": recovery,
            "balance": balance,
            "cases": details.details(shown),
        },
        styles=["datagrid/present/datagrid.css"],
        scripts=["pages/curves.js", "datagrid/present/datagrid.js"],
        engines=sorted({case.engine for case in cases}),
        kind="gridbench data",
        heading="Data grids",
        subheading=subheading(header, groups),
        navigation=[
            ("summary", "Summary"),
            *((section.id, section.name) for section in sections),
            *([("latency", "Latencies")] if latency_charts else []),
            *([("loops", "Closed and open loop")] if tables["loops"].rows else []),
            *([("kills", "After a kill")] if tables["kills"].rows else []),
            *(
                [("memory", "Memory and balance")]
                if tables["memory"].rows or tables["loading"].rows
                else []
            ),
            ("correctness", "Are the data right?"),
            ("case", "One case"),
            ("method", "How to read this"),
        ],
        verdict=told[0],
        sentences=told[1:],
        notices=notices(groups),
        cases=cases_table(groups),
        marks=marks_told(groups),
        clients_part=clients_part(groups),
        latency_table=latency_table(groups),
        sections=sections,
        latency_charts=latency_charts,
        loop_charts=loop_charts,
        recovery=Chart("recovery", "Throughput around the kill, as a share of the level before")
        if recovery
        else None,
        memory=[one.chart() for one in memory],
        balance=Chart("balance", "Objects of each member against the mean of all members")
        if balance
        else None,
        tables=tables,
        shown=[_shown_name(group) for group in shown],
        many=len(shown) < sum(group.measured for group in groups),
        gantt=Chart("gantt", "When each task of the case began and ended, client by client"),
        throughput=Chart("throughput", "Operations per second over time"),
        case_tail=Chart("case-tail", "Latencies of each operation of the case"),
        products=_products(groups),
        scaled=_scaled(cases),
        machine=_facts(header.machine),
        options=_facts(header.options | {"seed of the order": header.seed}),
        versions=_facts(header.versions),
    )


def _sections(groups: Sequence[RepeatedCase]) -> list[Section]:
    found = []
    for axis, name in _AXES:
        sweeps = sweeps_of(groups, axis)
        for scenario in scenarios_of(sweeps):
            own = [sweep for sweep in sweeps if sweep.first.case.scenario == scenario]
            found.append(_section(axis, name, scenario, own))
    return found


def _section(
    axis: Axis, name: str, scenario: int | None, sweeps: Sequence[DataGridSweep]
) -> Section:
    place = f"over-{axis.lower()}{'' if scenario is None else f'-{scenario}'}"
    relative = relative_table(sweeps) if axis != "ObjectSize" else None
    fits = fits_table(sweeps) if axis == "ObjectSize" else None
    heading = f"What changes with the {'number of ' if axis != 'ObjectSize' else ''}{name.lower()}"
    if scenario is not None:
        heading = f"Scenario {scenario}: {SCENARIOS[scenario]}"
    return Section(
        id=place,
        name=name if scenario is None else f"{scenario}: {name.lower()}",
        heading=heading,
        curves=pictures.over(sweeps, place),
        times=times_table(sweeps),
        relative=relative if relative and relative.rows else None,
        fits=fits if fits and fits.rows else None,
    )


def _latencies(groups: Sequence[RepeatedCase]) -> tuple[dict[str, Any], list[Chart]]:
    """Quantiles of the cases that the summary compares."""
    data: dict[str, Any] = {}
    charts = []
    for number, race in enumerate(races(groups)):
        made = pictures.race_tails(race)
        if made is None:
            continue
        case = race[0].case
        title = f"{label_shown(case.label) or race[0].main}: {case.what}"
        data[f"race-{number}"] = made
        charts.append(Chart("tail", f"Latencies, {title}", name=f"race-{number}", title=case.what))
    return data, charts


def _loops(compared: Sequence[LoopComparison]) -> tuple[dict[str, Any], list[Chart]]:
    """For each open case: the closed loop, and both ways to count in the open one."""
    data: dict[str, Any] = {}
    charts = []
    for number, one in enumerate(compared[:_MOST_LOOPS]):
        lines: list[pictures.Tail] = []
        for group, loop in ((one.closed, "closed loop"), (one.open, "open loop")):
            for known in group.latencies if group else []:
                if known.operation == one.operation:
                    way = f", {COUNTED[known.counted]}" if loop == "open loop" else ""
                    dash = {"closed loop": "dash"}.get(loop, "")
                    dash = "dot" if loop == "open loop" and known.counted == "service" else dash
                    lines.append((f"{loop}{way}", one.open.case.engine, dash, known))
        made = pictures.tails(lines)
        if made is not None:
            case = one.open.case
            title = f"{case.title}, {one.operation} at {amount(case.rate, '/s')}"
            data[f"loop-{number}"] = made
            charts.append(Chart("tail", f"Latencies, {title}", name=f"loop-{number}", title=title))
    return data, charts


def _products(groups: Sequence[RepeatedCase]) -> Table:
    """How each product was set up, as its engine file states it."""
    rows: list[list[str | Cell]] = []
    cases = {group.case.engine: group.case for group in groups}
    for engine, title in titles_of(groups).items():
        case = cases[engine]
        version = case.stated.get("version") or case.version
        settings = case.stated.get("settings") or "not stated"
        rows.append([title, version, Cell(settings, style="left")])
    return Table(["product", "version", "settings"], rows, style="left")


def _scaled(cases: Sequence[DataGridCase]) -> Table:
    """Parameters that are not the scenario's own."""
    found: dict[tuple[str, str, str], str] = {}
    for case in cases:
        for name, own in case.scaled.items():
            value = as_given(case.parameters.get(name, 0), "")
            scenario = f"scenario {case.scenario}" if case.scenario else label_shown(case.label)
            found.setdefault((scenario, name, value), own)
    rows = [[*key, own] for key, own in sorted(found.items())]
    return Table(["where", "parameter", "here", "the scenario's own"], rows, style="left")


def _facts(known: Mapping[str, Any]) -> Table:
    return facts(
        [
            (name, value if isinstance(value, str) else json.dumps(value, default=os.fspath))
            for name, value in known.items()
        ]
    )


def _shown_name(group: RepeatedCase) -> str:
    """What a case is called where one is chosen."""
    case, _ = group.shown
    run = f", run {case.repeat + 1}" if len(group.cases) > 1 else ""
    return f"{case.name}{run}"
