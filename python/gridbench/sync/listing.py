"""What `gridbench sync --dry-run` and `--list` show."""

from __future__ import annotations

import platform
import shlex
from typing import Any

from gridbench.hosts.hosts_file import Host
from gridbench.hosts.place import Member, near
from gridbench.printing import Printing
from gridbench.run.machine import usable_processors
from gridbench.sync.experiment import SyncExperiment, planned_of
from gridbench.sync.tasks import BUILT_INS, PROGRAM
from gridbench.terminal import new_table


def list_rounds(experiment: SyncExperiment, printing: Printing) -> None:
    """Print the rounds, each with the command of its last worker. No host is asked: those of a grid
    or a cluster go by numbers."""
    where, parameters = experiment.where, experiment.parameters
    cores = usable_processors()
    hosts = where.hosts or (Host(platform.node(), cores),)
    counts = parameters.workers or (sum(host.cores for host in hosts),)
    if where.emulated or where.grid or where.names:
        nodes = where.nodes if where.emulated else 1
        hosts = tuple(Host(f"host-{n + 1}", -(-max(counts) // nodes)) for n in range(nodes))
    members = [Member(host, None if near(where) else host.name) for host in hosts]
    rows: list[dict[str, Any]] = []
    for one in experiment.rounds_with(counts):
        planned = planned_of(parameters, members, one)
        order = planned[-1].order
        rows.append(
            {
                "workers": one.workers,
                "parameter": one.parameter,
                "start": one.start,
                "repeat": one.repeat,
                "hosts": len({task.member.host.name for task in planned}),
                "command": shlex.join([order.program, *order.arguments]).replace(
                    shlex.quote(PROGRAM), "gridbench-task"
                ),
            }
        )
    table = new_table()
    for head in ("round", "workers", "hosts", "parameter", "held at", "command of its last worker"):
        table.add_column(head, justify="right" if head in ("round", "workers") else "left")
    for number, row in enumerate(rows, 1):
        table.add_row(
            f"{number:,}",
            f"{row['workers']:,}",
            f"{row['hosts']:,}",
            row["parameter"],
            row["start"],
            row["command"],
        )
    printing.tables().print(table)
    printing.document(lambda: rows)


def list_tasks(printing: Printing) -> None:
    """Print gridbench's own tasks."""
    table = new_table()
    table.add_column("task", no_wrap=True)
    table.add_column("what it does, and with which arguments, such as")
    for one in BUILT_INS.values():
        phases = f"; reports {', '.join(one.phases)}" if one.phases else ""
        table.add_row(
            one.name, "\n".join([f"{one.help}{phases}", *map("  {}".format, one.examples)])
        )
    printing.tables().print(table)
    printing.document(
        lambda: {
            one.name: {"help": one.help, "phases": one.phases, "examples": one.examples}
            for one in BUILT_INS.values()
        }
    )
