"""Where the workers of a run were: hosts, workers, transport, clocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gridbench.analysis.clocks import errors
from gridbench.analysis.columns import numbered, seconds

MANY = 3
"""So many hosts and more are told by the first and the last."""


@dataclass(frozen=True, slots=True)
class HostRow:
    """A host of a run."""

    name: str
    server: str
    workers: int | None
    """Those that it was to have; None: not recorded."""
    used: int
    """Workers that ran a task."""
    tasks: int
    transport: str
    clock_error: float
    """Its stamps are at most so far off the client's clock, seconds; NaN: not known."""


def grid_hosts(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The hosts of the servers that a run was on; none if it was on the client's machine."""
    grid = record.get("grid")
    hosts = grid.get("hosts") if isinstance(grid, dict) else None
    found = hosts if isinstance(hosts, list) else []
    return [one for one in found if isinstance(one, dict) and isinstance(one.get("name"), str)]


def place(record: dict[str, Any]) -> str:
    """Where a run's workers were, for its name; empty if the record does not say."""
    names = [str(one["name"]).rpartition("@")[2] for one in grid_hosts(record)]
    if not names:
        machine = record.get("machine")
        own = machine.get("host") if isinstance(machine, dict) else None
        return f"on {own}" if own else ""
    if len(names) < MANY:
        return f"on {' and '.join(names)}"
    return f"on {len(names)} hosts ({names[0]} … {names[-1]})"


def host_rows(record: dict[str, Any], table: pa.Table) -> list[HostRow]:
    """The hosts of a run in the order of its record, and then others that its tasks tell of."""
    known = {str(one["name"]): one for one in grid_hosts(record)}
    hosts, host = numbered(table, "host")
    _, worker = numbered(table, "worker")
    error, ran = errors(table), np.isfinite(seconds(table, "calc_in"))
    count = len(hosts)
    tasks = np.bincount(host[ran], minlength=count)
    pairs = np.unique(np.stack([host[ran], worker[ran]]), axis=1)
    used = np.bincount(pairs[0], minlength=count)
    largest = np.full(count, -np.inf)
    told_by = ran & np.isfinite(error)
    np.maximum.at(largest, host[told_by], error[told_by])
    number = {name: place for place, name in enumerate(hosts)}
    seen = sorted(
        name for name, place in number.items() if tasks[place] and name and name not in known
    )
    rows = []
    for name in [*known, *seen]:
        told = known.get(name, {})
        workers, place = told.get("workers"), number.get(name)
        has_error = place is not None and np.isfinite(largest[place])
        rows.append(
            HostRow(
                name=name,
                server=str(told.get("server") or ""),
                workers=workers if isinstance(workers, int) else None,
                used=0 if place is None else int(used[place]),
                tasks=0 if place is None else int(tasks[place]),
                transport=str(told.get("transport") or ""),
                clock_error=float(largest[place]) if has_error else float("nan"),
            )
        )
    return rows
