"""What is kept of a case: one line of datagrid.jsonl.

Times are seconds; those within a case count from the agreed instant at which all clients began.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from gridbench.jsonl_store import ResultsForm

FILE = "datagrid.jsonl"

WINDOW = 0.1
"""Seconds of a window of throughput."""

Loop = Literal["closed", "open"]
Updates = Literal["plain", "atomic"]
Counted = Literal["service", "intended"]
"""From when an operation began, or from when it should have begun (open loop)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """The timeline: one value for each task that was begun."""

    id: tuple[int, ...] = ()
    client: tuple[int, ...] = ()
    began: tuple[float, ...] = ()
    ended: tuple[float, ...] = ()
    operations: tuple[int, ...] = ()
    why: tuple[str, ...] = ()
    """The first operation that went wrong; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """A histogram, merged over all clients."""

    operation: str
    """read, update, insert, overwrite or scan."""
    counted: Counted
    values: tuple[int, ...]
    """Nanoseconds, ascending: slots of an HdrHistogram of three digits."""
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Throughput over time."""

    length: float = WINDOW
    operations: tuple[int, ...] = ()
    """Ended in each window, from the agreed instant on."""
    errors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Operations that ended well."""

    reads: int = 0
    """Without those of updates, and without those of shared objects."""
    updates: int = 0
    inserts: int = 0
    overwrites: int = 0
    scans: int = 0
    shared: int = 0
    """Reads of shared objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberUse:
    """A member after loading, and after the run."""

    index: int
    host: str
    joined_in: float
    """Seconds from its start until it worked with all others."""
    memory: int
    """Bytes resident after loading; 0: not known."""
    used: int = 0
    """Bytes in use after loading, and after garbage was collected; 0: not known."""
    entries: int = -1
    """Objects that it was responsible for after loading; -1: not known."""
    backups: int = -1
    entries_after: int = -1
    """After the run; -1: it had ended, or it is not known."""
    killed_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Whether the data are right, after the run."""

    expected: int
    """Objects that have to be there."""
    found: int
    """Objects that the cluster counts."""
    read: int
    """Objects that were read back."""
    missing: int
    """Of these."""
    wrong: int
    """With a value that was never written."""
    updates: int
    """Sum of the counters in the values."""
    updates_expected: int
    """Updates that ended well."""
    in_doubt: int = 0
    """Updates and inserts that ended in an error, and may have been done."""
    doubtful: int = 0
    """Objects whose insertion ended in an error, and that are there; they are not among those that
    have to be there, nor among those that are missing."""
    may_collide: bool = False
    """Whether two tasks may have updated the same object at the same time, so that an update that
    is not atomic may be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """Storing the objects beforehand."""

    objects: int
    bytes: int
    seconds: float
    client_memory: int = 0
    """The most bytes that a client process had resident meanwhile; 0: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """What went before the measurement."""

    seconds: float = 0.0
    steady: bool = False
    """Whether throughput was the same for some time in each client process."""
    operations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataGridCase:
    """One measurement."""

    engine: str
    title: str
    """The product's name."""
    version: str
    """As the product tells it."""
    stated: dict[str, str] = field(default_factory=dict)
    """What its engine.toml says: `version`, and how it is configured (`settings`)."""
    label: str
    """Which part of a scenario: `read`, `update`, `insert`, `ycsb-a`, or empty."""
    scenario: int | None
    """1 to 3; None: a case of the user's own."""
    parameters: dict[str, float]
    """The twelve, by the sources' names; ObjectSize in KB of 1024 bytes, SleepTime in seconds."""
    scaled: dict[str, str] = field(default_factory=dict)
    """Parameters that are not the scenario's own, with what the scenario has."""
    repeat: int
    """From 0."""
    loop: Loop = "closed"
    rate: float | None = None
    """Operations per second that were offered (open loop)."""
    updates: Updates = "plain"
    mix: dict[str, Any] | None = None
    """Shares of operations and the choice of keys, of a YCSB workload; None: the task."""
    kill: tuple[int, ...] = ()
    """Members that were to be killed."""
    backups: int = 1
    """Copies of each object beside the first one."""
    processes: int
    """Client processes."""
    placed: str = "this machine"
    """Where members and clients were, in words."""
    at: str
    """ISO 8601."""
    status: Literal["done", "failed"]
    why: str = ""
    """Of a failed one."""
    cluster_in: float = 0.0
    """Seconds from the start of the first member until all worked together; 0: it was there."""
    clients_in: float = 0.0
    """Seconds until all client processes were connected; 0: they were there."""
    loading: Loading | None = None
    cold: tuple[float, ...] = ()
    """Seconds of the first task of each client, before any warm-up, after its process had connected
    and stored its part of the objects."""
    warm_up: WarmUp | None = None
    seconds: float = 0.0
    """From the agreed instant to the last end of a task."""
    tasks: Tasks = field(default_factory=Tasks)
    latencies: tuple[Latencies, ...] = ()
    windows: Windows = field(default_factory=Windows)
    counts: Counts = field(default_factory=Counts)
    errors: dict[str, int] = field(default_factory=dict)
    """How often each kind of failure came."""
    wrong: int = 0
    """Values that were read in the run and were not right."""
    missing: int = 0
    """Objects that were to be read in the run and were not there."""
    conflicts: int = 0
    """Atomic updates that had to be tried again."""
    members: tuple[MemberUse, ...] = ()
    checked: Checked | None = None
    client_cpu: float = 0.0
    """Seconds of processor time of the client processes during the run."""
    client_gc: float = 0.0
    """Seconds that they collected garbage."""
    load: dict[str, Any] | None = None
    """What other programs did meanwhile, as that of a run's record."""

    @property
    def identity(self) -> tuple[object, ...]:
        """Of all records of a file, one has it."""
        mix = None if self.mix is None else tuple(sorted(self.mix.items()))
        parameters = tuple(sorted(self.parameters.items()))
        how = self.loop, self.rate, self.updates, mix, self.kill
        return self.engine, self.label, self.scenario, parameters, how, self.repeat


FORM: ResultsForm[DataGridCase] = ResultsForm(
    kind="data-grid cases",
    of="cases of a data grid",
    noun="case",
    record=DataGridCase,
    file=FILE,
    command="gridbench data",
)
