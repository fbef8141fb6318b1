"""What a model is fitted to: runs as `gridbench run` leaves them, each as a case and what it took."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gridbench.analysis.columns import Floats, seconds, succeeded
from gridbench.analysis.summary import ideal_time, summarise
from gridbench.errors import InputError
from gridbench.run.recorder import RECORD
from gridbench.run.rows import TIMELINE

Transport = Literal["one host", "links"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A workload on an engine with some workers: all that decides what a run takes."""

    cores: int
    sleep: Floats
    """Seconds of each task in the order of submission, shape (tasks,)."""
    bytes_in: float = 0.0
    """Bytes of each task's data; so too the two below."""
    bytes_shared: float = 0.0
    bytes_out: float = 0.0
    warm: bool = False
    """All workers have answered before t = 0."""
    most_outstanding: float = math.inf
    """Tasks that the client has submitted and not taken."""
    most_waiting_bytes: float = math.inf
    """Data of tasks that the engine lets wait before it lets the client wait."""

    @property
    def tasks(self) -> int:
        """How many."""
        return len(self.sleep)

    @property
    def ideal(self) -> float:
        """Seconds with no overhead at all."""
        return ideal_time(self.sleep, self.cores)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run took; seconds from t = 0, NaN where not known."""

    total: float
    first_calc_in: float
    """Until the first task computed."""
    last_worker_calc_in: float
    """Until the last of the workers that had one computed its first."""
    extra: float
    """Mean of what tasks computed longer than they were to sleep: waking up, making output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a model holds for: one engine on one machine."""

    engine: str
    version: str
    host: str
    processors: int
    """That its processes may use."""
    transport: Transport = "one host"
    nodes: int = 1
    link_rate: float | None = None
    """Bits per second of each shaped link."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A run."""

    name: str
    """Where it was found."""
    place: Place
    situation: Situation
    measured: Measured

    @property
    def overhead(self) -> float:
        """Total less the ideal time; seconds."""
        return self.measured.total - self.situation.ideal


def observe(folder: Path) -> Observation | str:
    """The run in `folder`; or why it cannot serve: not valid, not complete, without all stamps.

    InputError for what is no run.
    """
    record = _record(folder)
    if record.get("status") != "complete" or not record.get("valid"):
        return "it is not complete or not valid"
    try:
        table = pq.read_table(folder / TIMELINE)
        return _observation(folder, record, table)
    except (OSError, pa.ArrowException) as error:
        return f"its timeline cannot be read: {error}"
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"is not the record of a run: {error!r}",
            file=folder / RECORD,
            remedy="leave this folder out, or run the benchmark again",
        ) from None


def measure(table: pa.Table, situation: Situation) -> Measured:
    """What the run of a timeline took."""
    summary = summarise(table, situation.tasks, situation.cores)
    return Measured(
        total=summary.total,
        first_calc_in=summary.first_calc_in,
        last_worker_calc_in=summary.last_worker_calc_in,
        extra=summary.oversleep.mean + summary.output.mean,
    )


def _record(folder: Path) -> dict[str, Any]:
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from None
    except (ValueError, RecursionError):
        raise InputError(
            "is not JSON", file=path, remedy="leave this folder out, or run the benchmark again"
        ) from None
    if not isinstance(record, dict):
        raise InputError("is not the record of a run", file=path, remedy="leave this folder out")
    return record


def _observation(folder: Path, record: dict[str, Any], table: pa.Table) -> Observation | str:
    engine, machine, setup = record["engine"], record["machine"], record["setup"]
    if table.num_rows != setup["NTasks"] or not bool(np.all(succeeded(table))):
        return "not all of its tasks ended well"
    sleep = seconds(table, "sleep")[np.argsort(seconds(table, "submit"), kind="stable")]
    if not np.all(np.isfinite(sleep)):
        return "its task times are not known"
    settings = engine.get("configuration") or {}
    sizes = [float(table[name][0].as_py()) for name in ("bytes_in", "bytes_shared", "bytes_out")]
    if settings.get("shared_data") == "argument of each task":
        sizes = [sizes[0] + sizes[1], 0.0, sizes[2]]
    namespaces = settings.get("namespaces") or ()
    place = Place(
        engine=str(engine["name"]),
        version=str(engine["version"]),
        host=str(machine["host"]),
        processors=int(machine["cores_usable"]),
        transport="links" if namespaces else "one host",
        nodes=len(namespaces) or 1,
    )
    outstanding = record.get("data", {}).get("most_outstanding_tasks")
    situation = Situation(
        cores=int(setup["NNodes"]),
        sleep=sleep,
        bytes_in=sizes[0],
        bytes_shared=sizes[1],
        bytes_out=sizes[2],
        warm=record["start"] == "warm",
        most_outstanding=float(outstanding or math.inf),
        most_waiting_bytes=float(settings.get("max_queued_bytes") or math.inf),
    )
    measured = measure(table, situation)
    if not math.isfinite(measured.total):
        return "its stamps are not complete"
    return Observation(str(folder), place, situation, measured)
