"""The record of a synchronised round: one line of rounds.jsonl (gridbench/jsonl_store.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from gridbench.formats import counted
from gridbench.jsonl_store import PlannedCase, ResultsForm

FILE = "rounds.jsonl"
"""The file in the folder of results."""
OUTPUT = "output"
"""The folder beside it with the output of tasks."""
ERRORS = b"\n--- errors ---\n"
"""Separates standard output from standard error in the file of a task."""
KEPT = 64 << 10
"""Bytes at the end of each that are kept."""

PROGRAM = "<gridbench-task>"
"""Placeholder in a command for the program of `gridbench.native.task_program`, whose path differs
from host to host."""

HoldPoint = Literal["entry", "exec"]
"""Where a task is held until the start: at the entry of its program, or before exec."""
HOLD_POINTS: dict[HoldPoint, str] = {"entry": "held at entry", "exec": "held before exec"}
Status = Literal["ok", "failed", "timeout", "lost"]
"""Of a task. `failed`: its exit status is not 0. `lost`: its worker ended or could not start it."""

STATUSES: dict[Status, str] = {
    "ok": "ok",
    "failed": "failed",
    "timeout": "timed out",
    "lost": "lost",
}
"""How pages write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latencies of the operations of a phase, in seconds."""

    p50: float
    p90: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of a task's work as the task reports it, such as writing a file."""

    name: str
    seconds: float
    bytes: int = 0
    operations: int = 0
    latency: Latency | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """The task of one worker in a round. Times are seconds after the agreed instant, on the
    client's clock."""

    worker: int
    host: str
    rank: int
    """Number among the workers of its host, from 0."""
    status: Status
    start: HoldPoint = "entry"
    began: float | None = None
    """Its first instruction; None: not reached."""
    ended: float | None = None
    """The end of its process."""
    clock_error: float = 0.0
    """Possible error of both, in either direction, against tasks of other hosts."""
    late: float = 0.0
    """Time from the agreed instant until the order to start arrived; 0: in time."""
    exit: int | None = None
    """The exit status, or minus the number of the signal that ended it."""
    why: str = ""
    """The reason of a failure."""
    user: float = 0.0
    """Processor time, seconds."""
    system: float = 0.0
    memory: int = 0
    """Peak resident memory, bytes."""
    phases: tuple[Phase, ...] = ()
    output: str = ""
    """File with its output, below the folder of results; empty: it printed nothing."""

    @property
    def seconds(self) -> float | None:
        """From first instruction to end, of a task that ended well."""
        if self.status != "ok" or self.began is None or self.ended is None:
            return None
        return self.ended - self.began


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Counters of a host during a part of a round."""

    at: float
    """End of the part, seconds after the agreed instant."""
    seconds: float
    """Length of the part."""
    processors: float
    """Number of busy processors."""
    waiting: float
    """Processors that were idle while something waited for a disk."""
    disk_busy: float
    """Share of the time in which the busiest disk was busy."""
    disk: str
    """Name of that disk; empty: none."""
    disk_queue: float = 0.0
    """Mean length of its queue."""
    disk_read: float
    """Bytes per second, all disks."""
    disk_written: float
    network_in: float
    """Bytes per second, all interfaces but the loopback."""
    network_out: float
    loopback: float
    """Bytes per second."""
    link: str = ""
    """The interface with the highest share of its speed in use, if speeds are known."""
    link_used: float = 0.0
    """That share, in the busier direction."""
    dirty: int
    """Bytes in memory that are not yet written to disks."""
    dirtied: int = 0
    """Growth of `dirty` during the part."""
    available: int
    """Available memory, bytes."""
    pressure: dict[str, float] = field(default_factory=dict)
    """Share of the time in which some process waited for `cpu`, `io`, `memory` (Linux' PSI)."""
    watched: dict[str, float] = field(default_factory=dict)
    """Processors used by watched programs, by name, all processes together."""
    watched_busiest: dict[str, float] = field(default_factory=dict)
    """Processors used by the busiest process of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """Use of a host's resources during a round."""

    host: str
    cores: int
    memory: int
    """Bytes."""
    boot: str = ""
    """Boot id of its kernel. Hosts that share it, such as containers, are one machine with the same
    counters of processors, memory and disks."""
    whole: Sample | None = None
    """From before the instant to after the last end; None: not known."""
    during: tuple[Sample, ...] = ()
    """Samples during the round; none in a short one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRound(PlannedCase):
    """A round before it is run."""

    workers: int
    parameter: str = ""
    """Empty: none."""
    repeat: int = 0
    """From 0."""
    start: HoldPoint = "entry"

    def describe(self) -> str:
        """`56 workers, 4k`, without the repeat."""
        parts = [counted(self.workers, "worker"), self.parameter]
        parts += [HOLD_POINTS[self.start]] if self.start == "exec" else []
        return ", ".join(filter(None, parts))

    def named(self) -> str:
        """`56 workers, 4k, round 2`, counted from 1."""
        return f"{self.describe()}, round {self.repeat + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(PlannedRound):
    """One synchronised start of all workers."""

    at: str
    """The agreed instant, ISO 8601."""
    status: Literal["done", "failed"]
    """`failed`: one of its tasks did not end well."""
    prepared_in: float
    """Seconds until all tasks were held."""
    tasks: tuple[TaskRun, ...]
    hosts: tuple[HostUse, ...] = ()
    load: dict[str, Any] | None = None
    """Load by other programs, as in the record of a run."""


FORM: ResultsForm[Round] = ResultsForm(
    kind="synchronised rounds",
    of="synchronised rounds",
    noun="round",
    record=Round,
    file=FILE,
    command="gridbench sync",
)
