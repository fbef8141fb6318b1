"""The timeline of a case as a file, in the form of all timelines of gridbench."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gridbench.datagrid.figures import KB
from gridbench.datagrid.record import DataGridCase
from gridbench.errors import InputError
from gridbench.timeline import SCHEMA

FOLDER = "timelines"


def timeline_of(case: DataGridCase) -> pa.Table:
    """One row for each task, in the order in which they began.

    A client takes its next task when it has ended the one before: it is submitted, and taken, when
    it begins. Data come from the data grid, so that nothing is sent with a task.
    """
    tasks = case.tasks
    order = sorted(range(len(tasks.id)), key=lambda at: (tasks.began[at], tasks.id[at]))
    began = [tasks.began[at] for at in order]
    ended = [tasks.ended[at] for at in order]
    rows = len(order)
    asleep = case.parameters.get("SleepTime", 0.0) * case.parameters.get("NRepeats", 1)
    size = int(case.parameters.get("ObjectSize", 0) * KB)
    shared = int(case.parameters.get("SharedDataSize", 0)) * size
    return pa.table(
        {
            "tid": [tasks.id[at] for at in order],
            "sleep": [asleep] * rows,
            "slept": [math.nan] * rows,
            "submit": began,
            "queued": began,
            "calc_in": began,
            "calc_out": ended,
            "retrieve": ended,
            "worker": [f"client {tasks.client[at]}" for at in order],
            "host": [""] * rows,
            "bytes_in": [0] * rows,
            "bytes_shared": [shared] * rows,
            "bytes_out": [0] * rows,
            "status": [" ".join(tasks.why[at].split()) or "ok" for at in order],
            "clock_error": [0.0] * rows,
        },
        schema=SCHEMA,
    )


def write_timeline(case: DataGridCase, path: Path) -> None:
    """Write it as Parquet, and make its folder. InputError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(timeline_of(case), path)
    except OSError as error:
        raise InputError(
            f"cannot write the timeline: {error.strerror or error}",
            file=path,
            remedy="give a folder that can be written to",
        ) from None
