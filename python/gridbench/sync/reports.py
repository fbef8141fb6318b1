"""Phases that a task reports in its output."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from gridbench.formats import as_given
from gridbench.records import RecordError, from_record
from gridbench.sync.record import Latency, Phase
from gridbench.workload.numbers import shown

LONGEST = 64 << 20
"""Bytes at the end of an output that are searched."""
_MOST_PHASES = 1000
_LONGEST_NAME = 100
_MOST = 2**63


@dataclass(frozen=True, slots=True)
class Reported:
    """The report in an output."""

    phases: tuple[Phase, ...] = ()
    why: str = ""
    """Why reported phases cannot be used; empty: they can, or there are none."""


def reported(output: bytes) -> Reported:
    """The phases that a task printed to its standard output.

    They are in the last line that is a JSON object with `phases`, each with the fields of `Phase`,
    or in the output of fio with `--output-format=json`. Any other output has no phases, which is
    no error.
    """
    text = output[-LONGEST:].decode("utf-8", "replace")
    try:
        phases = _of_a_line(text)
        if phases is None:
            phases = _of_fio(text)
        return Reported(tuple(_checked(phases or ())))
    except RecordError as error:
        return Reported(why=str(error))


# ---- A line of JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    phases: tuple[Phase, ...]


def _of_a_line(text: str) -> tuple[Phase, ...] | None:
    end = len(text)
    while (place := text.rfind('"phases"', 0, end)) >= 0:
        start = text.rfind("\n", 0, place) + 1
        stop = text.find("\n", place)
        line = text[start : stop if stop >= 0 else None].strip()
        if line.startswith("{"):
            summary = _json(line)
            if "phases" in summary:
                return from_record(_Line, summary).phases
        end = start
    return None


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise RecordError(f"the line with its phases is not JSON: `{shown(line)}`") from None


def _checked(phases: tuple[Phase, ...]) -> Iterator[Phase]:
    """The phases, after a check of names and numbers."""
    if len(phases) > _MOST_PHASES:
        raise RecordError(f"it reports {len(phases):,} phases, more than {_MOST_PHASES:,}")
    for number, phase in enumerate(phases):
        place = f"phases[{number}]"
        name, latency = phase.name, phase.latency
        if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise RecordError(f"{place}.name is `{shown(name)}`, not a name")
        times = {"seconds": phase.seconds, "bytes": phase.bytes, "operations": phase.operations}
        if latency is not None:
            times |= {f"latency.{percent}": time for percent, time in asdict(latency).items()}
        for what, value in times.items():
            if not 0 <= value < _MOST:
                raise RecordError(
                    f"{place}.{what} is {shown(str(value))}, not from 0 to {as_given(_MOST, '')}"
                )
        yield phase


# ---- fio


@dataclass(frozen=True, slots=True, kw_only=True)
class _Completion:
    max: float = 0.0
    percentile: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Direction:
    io_bytes: int
    total_ios: int
    iops: float
    runtime: float
    """Milliseconds."""
    clat_ns: _Completion


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    jobname: str
    error: int
    read: _Direction
    write: _Direction
    trim: _Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fio:
    jobs: tuple[_Job, ...]


def _of_fio(text: str) -> tuple[Phase, ...] | None:
    # Notes and warnings may stand before and after it.
    start = text.rfind("{", 0, max(text.find('"fio version"'), 0))
    if start < 0:
        return None
    try:
        summary, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        raise RecordError("what fio printed is not complete JSON") from None
    jobs = from_record(_Fio, summary).jobs
    return tuple(phase for job in jobs for phase in _of_job(job, len(jobs) > 1))


def _of_job(job: _Job, several: bool) -> Iterator[Phase]:
    if job.error:
        known = 0 < job.error < 1000
        reason = os.strerror(job.error) if known else f"error {shown(str(job.error))}"
        raise RecordError(f"fio's job `{shown(job.jobname)}` failed: {reason}")
    for name, done in (("read", job.read), ("write", job.write), ("trim", job.trim)):
        if done.total_ios:
            yield Phase(
                name=f"{shown(job.jobname)}: {name}" if several else name,
                seconds=_seconds(done),
                bytes=done.io_bytes,
                operations=done.total_ios,
                latency=_latency(done.clat_ns),
            )


def _seconds(done: _Direction) -> float:
    # Less than a millisecond is rounded to 0, but has a rate.
    if done.runtime or not done.iops:
        return done.runtime / 1e3
    return float(min(done.total_ios, _MOST)) / done.iops


def _latency(times: _Completion) -> Latency | None:
    """The time from the submission of an operation to its completion."""
    try:
        p50, p90, p99 = (times.percentile[f"{percent}.000000"] for percent in (50, 90, 99))
    except KeyError:
        return None
    # Percentiles are the end of a bucket, which may be above the maximum.
    return Latency(
        p50=min(p50, times.max) / 1e9,
        p90=min(p90, times.max) / 1e9,
        p99=min(p99, times.max) / 1e9,
        max=times.max / 1e9,
    )
