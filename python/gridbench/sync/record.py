"""What is kept of a round: one record of a file of records (gridbench/jsonl_store.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from gridbench.formats import counted
from gridbench.jsonl_store import ResultsForm

FILE = "rounds.jsonl"
"""In the folder of results."""
OUTPUT = "output"
"""The folder beside it with what tasks printed."""
ERRORS = b"\n--- errors ---\n"
"""What stands there between output and errors of a task that has both."""
KEPT = 64 << 10
"""Bytes at the end of each that are kept."""

Start = Literal["entry", "exec"]
"""Where a prepared task waits: at the entry of its program, or just before that is executed."""
STARTS: dict[Start, str] = {"entry": "held at entry", "exec": "held before exec"}
"""Where tasks wait for the start."""
Status = Literal["ok", "failed", "timeout", "lost"]
"""Of a task; `failed`: it ended with another exit status than 0; `lost`: its worker ended, or could
not begin it."""

STATUSES: dict[Status, str] = {
    "ok": "ok",
    "failed": "failed",
    "timeout": "timed out",
    "lost": "lost",
}
"""How a task ended, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Of the operations of a phase, seconds."""

    p50: float
    p90: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What a task says of a part of its work, such as writing a file, or making directories."""

    name: str
    seconds: float
    bytes: int = 0
    operations: int = 0
    latency: Latency | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one worker did in a round. Times are on the client's clock, in seconds after the agreed
    instant."""

    worker: int
    host: str
    rank: int
    """Which of the workers of its host it is, from 0."""
    status: Status
    start: Start = "entry"
    began: float | None = None
    """The first instruction; None: it was not reached."""
    ended: float | None = None
    """When its process had ended."""
    clock_error: float = 0.0
    """By so much both may be wrong, on either side, against tasks of other hosts."""
    late: float = 0.0
    """The order to start came by so much after the agreed instant; 0: in time."""
    exit: int | None = None
    """The exit status, or minus the number of the signal that ended it."""
    why: str = ""
    """What went wrong, if something did."""
    user: float = 0.0
    """Processor time, seconds."""
    system: float = 0.0
    memory: int = 0
    """The most that was resident, bytes."""
    phases: tuple[Phase, ...] = ()
    output: str = ""
    """The file with what it printed, below the folder of results; empty: it printed nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A look at a host during the round; what counts is counted since the look before."""

    at: float
    """Seconds after the agreed instant."""
    seconds: float
    """That passed since the look before."""
    processors: float
    """Busy, of the host's."""
    waiting: float
    """Processors idle while something waited for a disk."""
    disk_busy: float
    """Share of the time in which the busiest disk had something to do."""
    disk: str
    """That disk; empty: none."""
    disk_queue: float = 0.0
    """Requests that it had not done yet, in the mean."""
    disk_read: float
    """Bytes per second, all disks."""
    disk_written: float
    network_in: float
    """Bytes per second, all interfaces but the loopback."""
    network_out: float
    loopback: float
    """Bytes per second."""
    link: str = ""
    """The interface that used the most of its speed, of those whose speed is known."""
    link_used: float = 0.0
    """That share, in the direction in which it is larger."""
    dirty: int
    """Bytes in memory that are still to be written."""
    dirtied: int = 0
    """By so much they became more since the look before."""
    available: int
    """Bytes of memory."""
    pressure: dict[str, float] = field(default_factory=dict)
    """Share of the time in which some process waited for `cpu`, `io`, `memory` (Linux' PSI)."""
    watched: dict[str, float] = field(default_factory=dict)
    """Processors that programs used which the user named, by name, all processes together."""
    watched_busiest: dict[str, float] = field(default_factory=dict)
    """The same of the busiest one of their processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """What happened on a host during a round."""

    host: str
    cores: int
    memory: int
    """Bytes."""
    boot: str = ""
    """Of its kernel. Hosts that share it are one machine, such as containers: what their
    processors, memory and disks count is the same."""
    whole: Sample | None = None
    """From before the instant to after the last end; None: it is not known."""
    during: tuple[Sample, ...] = ()
    """Looks meanwhile; none in a short round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRound:
    """A round before it is run."""

    workers: int
    parameter: str = ""
    """Empty: there are none."""
    repeat: int = 0
    """From 0."""
    start: Start = "entry"

    @property
    def identity(self) -> tuple[int, str, Start, int]:
        """Of all records of a file, one has it."""
        return self.workers, self.parameter, self.start, self.repeat

    def told(self) -> str:
        """In words, without the repeat."""
        parts = [counted(self.workers, "worker"), self.parameter]
        parts += [STARTS[self.start]] if self.start == "exec" else []
        return ", ".join(filter(None, parts))

    def named(self) -> str:
        """`56 workers, 4k, round 2`: of people, the first is round 1."""
        return f"{self.told()}, round {self.repeat + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(PlannedRound):
    """One synchronised start of all workers."""

    at: str
    """The agreed instant, ISO 8601."""
    status: Literal["done", "failed"]
    """`failed`: a task of it did not end well."""
    prepared_in: float
    """Seconds until all tasks waited."""
    tasks: tuple[Task, ...]
    hosts: tuple[HostUse, ...] = ()
    load: dict[str, Any] | None = None
    """What other programs did meanwhile, as that of a run's record."""


FORM: ResultsForm[Round] = ResultsForm(
    kind="synchronised rounds",
    of="synchronised rounds",
    noun="round",
    record=Round,
    file=FILE,
    command="gridbench sync",
)
