"""A run as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.

The form is Google's Trace Event Format, JSON: a process for each host and one for the client, a
thread for each worker; times are in microseconds from t = 0 of the run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gridbench.analysis.clocks import corrected, offsets, one_clock
from gridbench.analysis.lanes import lanes
from gridbench.atomic_write import write_file
from gridbench.errors import InputError
from gridbench.report.source import Run, load_runs

_CLIENT = 1
"""The process of the client; hosts come after it."""
_MICROSECONDS = 1e6


def write_trace(sources: Sequence[Path], out: Path) -> None:
    """Write the trace of one run. InputError if there are several, or if it cannot be written."""
    runs = load_runs(sources)
    if len(runs) != 1:
        raise InputError(
            f"a trace is of one run, and these are {len(runs)}",
            remedy="give the folder of a single run, such as that of one engine",
        )
    trace = {"traceEvents": list(_events(runs[0])), "displayTimeUnit": "ms"}
    write_file(out, json.dumps(trace, allow_nan=False))


def _events(run: Run) -> Iterator[dict[str, Any]]:
    same = one_clock(run.record, run.table)
    table = run.table if same else corrected(run.table, offsets(run.table))
    rows = table.to_pylist()
    hosts = {host: _CLIENT + 1 + n for n, host in enumerate(sorted({r["host"] for r in rows}))}
    yield _named("process_name", _CLIENT, 0, f"client of {run.name}")
    for host, process in hosts.items():
        yield _named("process_name", process, 0, host or "workers")
    seen: set[tuple[int, int]] = set()
    for row, lane in zip(rows, lanes(table).tolist(), strict=True):
        process, thread = hosts[row["host"]], lane + 1
        if (process, thread) not in seen and lane >= 0:
            seen.add((process, thread))
            yield _named("thread_name", process, thread, f"worker {thread} ({row['worker']})")
        yield from _task(row, process, thread)


def _task(row: dict[str, Any], process: int, thread: int) -> Iterator[dict[str, Any]]:
    """Its computing on the worker, and around it its whole time in the client's hand."""
    name = f"task {row['tid']}"
    reported = {key: row[key] for key in ("bytes_in", "bytes_shared", "bytes_out", "status")}
    if _known(row, "calc_in", "calc_out") and thread > 0:
        yield {
            "name": name,
            "cat": "computing",
            "ph": "X",
            "ts": row["calc_in"] * _MICROSECONDS,
            "dur": max(0.0, row["calc_out"] - row["calc_in"]) * _MICROSECONDS,
            "pid": process,
            "tid": thread,
            "args": reported,
        }
    if _known(row, "submit", "retrieve"):
        # Tasks overlap in the client, so each is an event of its own kind there.
        common = {"name": name, "cat": "task", "id": row["tid"], "pid": _CLIENT, "tid": 0}
        yield {**common, "ph": "b", "ts": row["submit"] * _MICROSECONDS, "args": reported}
        yield {**common, "ph": "e", "ts": row["retrieve"] * _MICROSECONDS}


def _known(row: dict[str, Any], *stamps: str) -> bool:
    return all(row[stamp] is not None and math.isfinite(row[stamp]) for stamp in stamps)


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
