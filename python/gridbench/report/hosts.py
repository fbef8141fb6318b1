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
    found, host = numbered(table, "host")
    _, worker = numbered(table, "worker")
    error, ran = errors(table), np.isfinite(seconds(table, "calc_in"))
    number = {name: at for at, name in enumerate(dict.fromkeys([*found, *known]))}
    tasks = np.bincount(host[ran], minlength=len(number))
    pairs = np.unique(np.stack([host[ran], worker[ran]]), axis=1)
    used = np.bincount(pairs[0], minlength=len(number))
    largest = np.full(len(number), -np.inf)
    np.maximum.at(largest, host[ran], np.nan_to_num(error[ran], nan=-np.inf))
    seen = sorted(name for name in number if name and name not in known and tasks[number[name]])
    rows = []
    for name in [*known, *seen]:
        at, told = number[name], known.get(name, {})
        workers = told.get("workers")
        rows.append(
            HostRow(
                name=name,
                server=str(told.get("server") or ""),
                workers=workers if isinstance(workers, int) else None,
                used=int(used[at]),
                tasks=int(tasks[at]),
                transport=str(told.get("transport") or ""),
                clock_error=float(largest[at]) if np.isfinite(largest[at]) else float("nan"),
            )
        )
    return rows
