"""What `gridbench data --dry-run` shows: the cases with their sizes, before anything is started."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import Any

from gridbench.datagrid.engines.engine import Engine
from gridbench.datagrid.memory import machine_need, need_of
from gridbench.datagrid.plan import PlannedCase, plan_of
from gridbench.datagrid.work import DataGridWork
from gridbench.formats import counted, size
from gridbench.printing import Printing
from gridbench.terminal import new_table


def list_cases(work: DataGridWork, printing: Printing) -> None:
    """Print a row for each case, in the order in which they would be run: objects that there are in
    the end, what each member needs of the memory that it has, and all processes together. Below it
    stands what is not as the scenario has it; at the end, what may not be meant."""
    plan = plan_of(work)
    engines = {one.name: one for one in work.engines}
    rows = [_row(work, engines[one.engine], one) for one in plan.wanted]
    table = new_table()
    table.add_column("case", overflow="fold")
    for name in ("objects", "data", "each member", "in all"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["case"] if not row["repeat"] else f"{row['case']}, again",
            f"{row['objects']:,}",
            size(row["bytes"]),
            f"{size(row['member_needs'])} of {size(row['member_memory'])}"
            if row["member_memory"]
            else "",
            size(row["memory"]),
        )
        if not row["repeat"]:
            for note in row["notes"]:
                table.add_row(f"  {note}")
    console = printing.tables()
    console.print(table)
    skipped = [{"case": one.told(), "why": why} for one, why in plan.skipped]
    for left_out in skipped:
        console.print("{case}: left out, as {why}".format(**left_out))
    clusters = sum(members > 0 for (_, members), _ in groupby(plan.wanted, attrgetter("cluster")))
    cautions = work.cautions()
    for one in cautions:
        console.print(one)
    console.print(f"{counted(len(rows), 'case')}, {counted(clusters, 'start')} of a cluster")
    printing.document(lambda: {"cases": rows, "skipped": skipped, "cautions": cautions})


def _row(work: DataGridWork, engine: Engine, wanted: PlannedCase) -> dict[str, Any]:
    described, memory = engine.described, work.memory_of(wanted.members)
    workload = wanted.workload
    need = need_of(wanted, described, work.parameters.backups)
    return {
        "case": wanted.told(),
        "engine": wanted.engine,
        "label": workload.label,
        "scenario": workload.scenario,
        "parameters": workload.parameters.to_dict(),
        "scaled": dict(workload.scaled),
        "mix": None if workload.mix is None else dict(workload.mix),
        "loop": wanted.loop,
        "rate": wanted.rate,
        "share": wanted.share,
        "repeat": wanted.repeat,
        "processes": wanted.processes,
        "objects": workload.at_most,
        "bytes": workload.at_most * workload.parameters.object_bytes,
        "member_needs": need.member,
        "member_memory": memory if wanted.members else 0,
        "memory": machine_need(wanted, described, work.parameters.backups, memory),
        "notes": workload.scaled_told(),
    }
