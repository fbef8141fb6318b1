"""Where the workers of a run were: hosts, workers, transport, clocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gridbench.analysis.clocks import errors
from gridbench.analysis.columns import seconds, text

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
    host = np.array(text(table, "host").to_pylist(), dtype=object)
    worker = np.array(text(table, "worker").to_pylist(), dtype=object)
    error, ran = errors(table), np.isfinite(seconds(table, "calc_in"))
    seen = sorted(set(host[ran]) - set(known) - {""})
    rows = []
    for name in [*known, *seen]:
        own = ran & (host == name)
        its = error[own & np.isfinite(error)]
        told = known.get(name, {})
        workers = told.get("workers")
        rows.append(
            HostRow(
                name=name,
                server=str(told.get("server") or ""),
                workers=workers if isinstance(workers, int) else None,
                used=len(set(worker[own])),
                tasks=int(own.sum()),
                transport=str(told.get("transport") or ""),
                clock_error=float(its.max()) if len(its) else float("nan"),
            )
        )
    return rows
