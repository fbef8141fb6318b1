"""A simulated run as a timeline, and as a folder like those of real runs."""

from __future__ import annotations

import datetime
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gridbench.analysis.columns import Floats
from gridbench.analysis.summary import Summary, summarise
from gridbench.errors import InputError
from gridbench.result_kind import write_report
from gridbench.run.journal import OK
from gridbench.run.machine import machine_facts, versions
from gridbench.run.recorder import LOG, REPORT, TIMELINE, write_record
from gridbench.simulate.simulation import Simulation
from gridbench.simulate.systems import System
from gridbench.tasklog_writer import TaskLogHeader, TaskLogWriter
from gridbench.timeline import SCHEMA

_FORMAT = 1
_ROWS_AT_ONCE = 100_000


def table_of(done: Simulation) -> pa.Table:
    """The stamps as a timeline (`gridbench.timeline.SCHEMA`), rounded down to what the system's
    stamps are known to."""
    stamps, work = done.stamps, done.work
    tasks = len(stamps.submit)

    def known(values: Floats) -> Floats:
        step = done.system.resolution
        return np.floor(values / step) * step if step else values

    submit = known(stamps.submit)
    # Where the client sends a task off at the moment it submits it, sending still comes after.
    sent = np.where(stamps.sent > stamps.submit, stamps.sent, np.nextafter(stamps.submit, np.inf))
    names = pa.array([f"w{number + 1}" for number in range(len(done.case.ready))])
    workers = names.take(pa.array(stamps.worker))
    columns: dict[str, Any] = {
        "tid": np.arange(1, tasks + 1),
        "sleep": done.case.sleep,
        "slept": done.case.sleep,
        "submit": submit,
        "queued": np.full(tasks, np.nan) if done.system.resolution else sent,
        "calc_in": known(stamps.calc_in),
        "calc_out": known(stamps.calc_out),
        "retrieve": known(stamps.retrieve),
        "worker": workers,
        "host": workers,
        "bytes_in": np.full(tasks, round(work.bytes_in)),
        "bytes_shared": np.full(tasks, round(work.bytes_shared)),
        "bytes_out": np.full(tasks, round(work.bytes_out)),
        "status": pa.repeat(pa.scalar(OK), tasks),
        "clock_error": np.zeros(tasks),
    }
    return pa.table([pa.array(columns[field.name], field.type) for field in SCHEMA], SCHEMA)


def summary_of(done: Simulation, table: pa.Table) -> Summary:
    """As of a real run."""
    return summarise(table, done.work.tasks, done.work.cores)


def write_folder(folder: Path, done: Simulation, table: pa.Table) -> None:
    """Write record, timeline, log and report, as `gridbench run` does; the record says that the run
    was simulated, and with what. Raises InputError if that cannot be done."""
    record = _record(done) | {"summary": summary_of(done, table).to_dict()}
    partial = folder / f".{TIMELINE}.{os.getpid()}.partial"
    try:
        try:
            pq.write_table(table, partial)
            partial.replace(folder / TIMELINE)
        finally:
            partial.unlink(missing_ok=True)
        write_log(folder / LOG, done, table)
        write_record(folder, record)
    except OSError as error:
        raise InputError(
            f"cannot write the results: {error.strerror or error}",
            file=folder,
            remedy="choose a folder that can be written and has space",
        ) from error
    write_report([folder], folder / REPORT)


def _record(done: Simulation) -> dict[str, Any]:
    work, system = done.work, done.system
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    return {
        "format": _FORMAT,
        "status": "complete",
        "valid": True,
        "invalid_because": [],
        "started": now,
        "ended": now,
        "command": sys.argv,
        "simulated": True,
        "engine": {"name": f"{system.name}, simulated", "version": "-", **described(system)},
        "start": "cold",
        "time_scale": 1.0,
        "setup": {
            "NTasks": work.tasks,
            "NNodes": work.cores,
            "InputFile": _times_name(done),
            "TaskDataSize": work.bytes_in / 1024,
            "SharedDataSize": work.bytes_shared / 1024,
            "WriteDataSize": work.bytes_out / 1024,
        },
        "work": asdict(work),
        "machine": machine_facts(),
        "versions": versions(),
    }


def described(system: System) -> dict[str, Any]:
    """A system for JSON: its figures with their sources, and the model's parameters."""
    return {
        "title": system.title,
        "link_bits_per_second": None if system.one_host else system.link,
        "measured_cores": system.measured_cores,
        "figures": [asdict(given) for given in system.given],
        "parameters": _plain(asdict(system.parameters)),
        "start_up": {"kind": type(system.start_up).__name__, **_plain(asdict(system.start_up))},
        "throttling": system.throttling and _plain(asdict(system.throttling)),
        "files_per_task": system.files_per_task,
    }


def _plain(value: Any) -> Any:
    """JSON has no infinity: null stands for what has no bound."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return None if value == float("inf") else value


def _times_name(done: Simulation) -> str:
    work = done.work
    parts = [f"{work.tasks}", f"{work.sleep:g}"] + ([f"{work.stddev:g}"] if work.stddev else [])
    return ".".join(["input", *parts])


def write_log(path: Path, done: Simulation, table: pa.Table) -> None:
    """Write its task log. OSError if that cannot be done."""
    work = done.work
    header = TaskLogHeader(
        ntasks=work.tasks,
        nnodes=work.cores,
        input_file=_times_name(done),
        task_kb=work.bytes_in / 1024,
        shared_kb=work.bytes_shared / 1024,
        write_kb=work.bytes_out / 1024,
    )
    names = ("tid", "slept", "submit", "calc_in", "calc_out", "retrieve", "host")
    with TaskLogWriter(path, header) as log:
        for batch in table.select(names).to_batches(_ROWS_AT_ONCE):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                log.row(*row)
