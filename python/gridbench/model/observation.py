"""Observations to which a model is fitted: stored runs, as a case and its times."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gridbench.analysis.columns import Floats, seconds, succeeded
from gridbench.analysis.summary import ideal_time, summarise
from gridbench.errors import InputError
from gridbench.formats import bit_rate, counted, duration, size, whole
from gridbench.machine.judgement import DISTURBED, is_quiet
from gridbench.model.kind import UNKNOWN, Span, span_of
from gridbench.report.source import grid_hosts, place
from gridbench.run.recorder import RECORD, TIMELINE
from gridbench.workload.workload import is_trace, kind_of

Transport = Literal["one host", "links", "network"]
"""Client and workers are on one host; on hosts behind links; or each on a machine of its own, in an
unknown network."""
_LEAST_OVERHEAD = 0.001
"""Seconds. Less than this counts as this, where runs are compared."""


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

    @property
    def tasks(self) -> int:
        """How many."""
        return len(self.sleep)

    @property
    def ideal(self) -> float:
        """Seconds with no overhead at all."""
        return ideal_time(self.sleep, self.cores)


@dataclass(frozen=True, slots=True)
class RunTimes:
    """What a run took; seconds from t = 0, NaN where not known."""

    total: float
    first_calc_in: float
    """Until the first task computed."""
    last_worker_calc_in: float
    """Until the last of the workers that had one computed its first."""
    extra: float
    """Mean of what tasks computed longer than they were to sleep: waking up, making output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePlace:
    """What a model holds for: one engine on one machine."""

    engine: str
    version: str
    host: str
    """The client's; with where the workers are, if that is on servers."""
    processors: int
    """That its processes may use; of a network nothing is known of that."""
    transport: Transport = "one host"
    nodes: int = 1
    """Hosts that the workers are on, each with shared data of its own."""
    link_rate: float | None = None
    """Bits per second of each shaped link."""
    most_waiting_bytes: int | None = None
    """Data of tasks that the engine lets wait for workers before it lets the client wait; None:
    any."""
    kept_from: int = 0
    """Bytes from which on the engine gives data memory of its own, which it uses again."""
    keep_free: int | None = None
    """Bytes of such memory that it keeps for later tasks; None: any."""

    def describe(self) -> str:
        """Engine, version, machine and links in one line."""
        if self.transport == "network":
            return f"{self.engine}: the system that made these task logs, on a network"
        where = f"{self.engine} {self.version} on {self.host}, {self.processors} processors"
        if self.transport == "one host":
            return f"{where}, client and workers on one host"
        rate = f" of {bit_rate(self.link_rate)}" if self.link_rate else ""
        return f"{where}, {counted(self.nodes, 'node')} behind links{rate}"


@dataclass(frozen=True, slots=True)
class Observation:
    """A run."""

    name: str
    """Where it was found."""
    place: EnginePlace
    situation: Situation
    measured: RunTimes
    others: float = math.nan
    """What others used of the machine meanwhile, as a share of all its processors; NaN: unknown."""
    ideal: float = field(init=False)
    """Of the situation, kept as it takes a while to find; seconds."""
    uncertainty: float = 0.0
    """Of the overhead, as runs of the same differ, or as stamps are rounded: standard error of its
    logarithm; 0: one run, of exact stamps."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ideal", self.situation.ideal)


def together(observations: Sequence[Observation]) -> list[Observation]:
    """Runs of the same situation as one, with the median of each figure; in order of the first.

    So that no run of a case that is held out is among those that the model is fitted to.
    """
    return [_median(several) for several in alike(observations)]


def alike(observations: Sequence[Observation]) -> list[list[Observation]]:
    """Runs of the same situation beside each other; in order of the first.

    If at least half of them were undisturbed, only these. If fewer, it is the case itself that
    keeps the system busy, and those that it happened to leave alone are no better than the rest.
    """
    found: dict[tuple[object, ...], list[Observation]] = {}
    for one in observations:
        its = one.situation
        sizes = (its.bytes_in, its.bytes_shared, its.bytes_out)
        key = (one.place, its.cores, its.sleep.tobytes(), *sizes, its.warm)
        found.setdefault(key, []).append(one)
    return [_undisturbed(several) for several in found.values()]


def _undisturbed(several: list[Observation]) -> list[Observation]:
    quiet = [one for one in several if is_quiet(one.others, one.place.processors)]
    return quiet if 2 * len(quiet) >= len(several) else several


def _median_of_known(values: Sequence[float]) -> float:
    known = [one for one in values if not math.isnan(one)]
    return float(np.median(known)) if known else math.nan


def _median(several: Sequence[Observation]) -> Observation:
    figures = {
        name: _median_of_known([getattr(one.measured, name) for one in several])
        for name in (one.name for one in fields(RunTimes))
    }
    first = several[0]
    return Observation(
        first.name,
        first.place,
        first.situation,
        RunTimes(**figures),
        uncertainty=math.hypot(
            _uncertainty([one.measured.total - one.ideal for one in several]), first.uncertainty
        ),
    )


def _uncertainty(overheads: Sequence[float]) -> float:
    if len(overheads) < 2:
        return 0.0
    spread = np.std(np.log(np.maximum(overheads, _LEAST_OVERHEAD)), ddof=1)
    return float(spread) / math.sqrt(len(overheads))


def observe(folder: Path, *, disturbed: bool = False) -> Observation | str:
    """The run in `folder`; or why it cannot serve: not valid, not complete, without all stamps.

    `disturbed`: it may be one that is not valid as other programs disturbed it.

    InputError if it is not a run.
    """
    record = _record(folder)
    if is_trace(record):
        return (
            "it is the trace of a program, whose tasks have no set-up to be fitted to: models take"
            " folders of gridbench run and scenario, and task logs"
        )
    if record.get("status") != "complete" or not (record.get("valid") or disturbed):
        load = record.get("load") or {}
        was = record.get("status") == "complete" and load.get("judgement") == DISTURBED
        return DISTURBED if was else "it is not complete or not valid"
    try:
        return _observation(folder, record)
    except (OSError, pa.ArrowException) as error:
        return f"its timeline cannot be read: {error}"
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"is not the record of a run: {error!r}",
            file=folder / RECORD,
            remedy="leave this folder out, or run the benchmark again",
        ) from None


def measure(table: pa.Table, situation: Situation) -> RunTimes:
    """What the run of a timeline took."""
    summary = summarise(table, situation.tasks, situation.cores)
    return RunTimes(
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


def _observation(folder: Path, record: dict[str, Any]) -> Observation | str:
    place, setup, start = _place(record), record["setup"], record["start"]
    cores, tasks = int(setup["NNodes"]), int(setup["NTasks"])
    processors = kind_of(record).processors
    if processors is not None and processors < cores:
        return "its tasks compute and share processors, which is no cost of the engine"
    table = pq.read_table(folder / TIMELINE)
    if table.num_rows != tasks or not bool(np.all(succeeded(table))):
        return "not all of its tasks ended well"
    sleep = seconds(table, "sleep")[np.argsort(seconds(table, "submit"), kind="stable")]
    if not np.all(np.isfinite(sleep)):
        return "its task times are not known"
    bytes_in, bytes_shared, bytes_out = (
        float(np.mean(table[name])) for name in ("bytes_in", "bytes_shared", "bytes_out")
    )
    if _settings(record).get("shared_data") == "argument of each task":
        bytes_in, bytes_shared = bytes_in + bytes_shared, 0.0
    outstanding = record.get("data", {}).get("most_outstanding_tasks")
    situation = Situation(
        cores=cores,
        sleep=sleep,
        bytes_in=bytes_in,
        bytes_shared=bytes_shared,
        bytes_out=bytes_out,
        warm=start == "warm",
        most_outstanding=float(outstanding or math.inf),
    )
    measured = measure(table, situation)
    if not math.isfinite(measured.total):
        return "its stamps are not complete"
    return Observation(str(folder), place, situation, measured, others=_others(record))


def _others(record: dict[str, Any]) -> float:
    load = (record.get("load") or {}).get("judged")
    return float(load["others"]) / int(record["load"]["processors"]) if load else math.nan


def _place(record: dict[str, Any]) -> EnginePlace:
    engine, machine = record["engine"], record["machine"]
    # Servers may have several hosts each; runs behind links name a server for each node.
    hosts = grid_hosts(record) or _settings(record).get("servers") or ()
    where = f", workers {place(record)}," if grid_hosts(record) else ""
    return EnginePlace(
        engine=str(engine["name"]),
        version=str(engine["version"]),
        host=f"{machine['host']}{where}",
        processors=int(machine["cores_usable"]),
        transport="links" if hosts else "one host",
        nodes=len(hosts) or 1,
        most_waiting_bytes=_settings(record).get("max_queued_bytes"),
        kept_from=int(_settings(record).get("shared_threshold", 0)),
        keep_free=_settings(record).get("keep_free"),
    )


def _settings(record: dict[str, Any]) -> dict[str, Any]:
    return record["engine"].get("configuration") or {}


@dataclass(frozen=True, slots=True)
class Range:
    """The span of each thing that decides what a run takes."""

    cores: Span
    tasks: Span
    sleep: Span
    """Mean seconds of a task."""
    bytes_in: Span
    bytes_shared: Span
    bytes_out: Span
    starts: tuple[Literal["cold", "warm"], ...]

    def outside(self, situation: Situation) -> tuple[str, ...]:
        """In which ways a situation is unlike all that was measured, as sentences without a
        full stop."""
        found = [
            span.outside(what, value, shown)
            for span, value, what, shown in self._spans(situation)
            if not span.holds(value)
        ]
        start = "warm" if situation.warm else "cold"
        if start not in self.starts:
            found.append(f"no run had a {start} start")
        return tuple(found)

    def beyond(self, situation: Situation) -> float:
        """How far a situation is from all that was measured: the sum of the logarithms of the
        factors by which it is beyond, in each way that `outside` tells; of data or starts that no
        run had, a factor of 10."""
        found = sum(span.distance(value) for span, value, _, _ in self._spans(situation))
        start = "warm" if situation.warm else "cold"
        return found if start in self.starts else found + math.log(UNKNOWN)

    def _spans(self, situation: Situation) -> list[tuple[Span, float, str, Callable[[float], str]]]:
        """What was measured, and what a situation has of it.

        Less data than in any run, and tasks that sleep longer, ask nothing of an engine that it
        was not seen to do: they count as what was measured.
        """
        sleep = min(float(situation.sleep.mean()), self.sleep.high)
        return [
            (self.cores, situation.cores, "cores", whole),
            (self.tasks, situation.tasks, "tasks", whole),
            (self.sleep, sleep, "time of a task", duration),
            *(
                (span, max(value, span.low), what, size)
                for span, value, what in (
                    (self.bytes_in, situation.bytes_in, "task data"),
                    (self.bytes_shared, situation.bytes_shared, "shared data"),
                    (self.bytes_out, situation.bytes_out, "output data"),
                )
            ),
        ]


def range_of(situations: Sequence[Situation]) -> Range:
    """Of all of them; at least one."""

    def span(value: Callable[[Situation], float]) -> Span:
        return span_of(map(value, situations))

    kinds: list[Literal["cold", "warm"]] = []
    if any(not one.warm for one in situations):
        kinds.append("cold")
    if any(one.warm for one in situations):
        kinds.append("warm")
    return Range(
        cores=span(lambda one: one.cores),
        tasks=span(lambda one: one.tasks),
        sleep=span(lambda one: float(one.sleep.mean())),
        bytes_in=span(lambda one: one.bytes_in),
        bytes_shared=span(lambda one: one.bytes_shared),
        bytes_out=span(lambda one: one.bytes_out),
        starts=tuple(kinds),
    )
