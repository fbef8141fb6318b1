"""Records of cases: one line of datagrid.jsonl each, and a timeline of its tasks.

Times are seconds; those within a case count from the agreed instant at which all clients began.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gridbench.datagrid.workload import label_shown, size_shown
from gridbench.errors import InputError
from gridbench.formats import amount, counted
from gridbench.jsonl_store import PlannedCase, ResultsForm
from gridbench.quantities import KB

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "datagrid.jsonl"
TIMELINES = "timelines"
"""The folder of timelines, within that of results."""

WINDOW = 0.1
"""Seconds of a window of throughput."""

Loop = Literal["closed", "open"]
Updates = Literal["plain", "atomic"]
Counted = Literal["service", "intended"]
"""From when an operation began, or from when it should have begun (open loop)."""
COUNTED: dict[Counted, str] = {
    "service": "from when it began",
    "intended": "from when it should have begun",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTimeline:
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
class OperationCounts:
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
class PlannedDataGridCase(PlannedCase):
    """A case before it is run."""

    engine: str
    label: str
    """Which part of a scenario: `read`, `update`, `insert`, `ycsb-a`, or empty."""
    scenario: int | None
    """1 to 3; None: a case of the user's own."""
    parameters: dict[str, float]
    """The twelve, by the sources' names; ObjectSize in KB of 1024 bytes, SleepTime in seconds."""
    repeat: int
    """From 0."""
    loop: Loop = "closed"
    rate: float | None = None
    """Operations per second that are offered (open loop)."""
    share: float | None = None
    """The rate as a share of the throughput of the closed loop; None once the rate is known."""
    updates: Updates = "plain"
    mix: dict[str, Any] | None = None
    """Shares of operations and the choice of keys, of a YCSB workload; None: the task."""
    kill: tuple[int, ...] = ()
    """Members to kill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataGridCase(PlannedDataGridCase):
    """One measurement."""

    title: str
    """The product's name."""
    version: str
    """As the product tells it."""
    stated: dict[str, str] = field(default_factory=dict)
    """What its engine.toml says: `version`, and how it is configured (`settings`)."""
    scaled: dict[str, str] = field(default_factory=dict)
    """Parameters that are not the scenario's own, with what the scenario has."""
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
    tasks: TaskTimeline = field(default_factory=TaskTimeline)
    latencies: tuple[Latencies, ...] = ()
    windows: Windows = field(default_factory=Windows)
    counts: OperationCounts = field(default_factory=OperationCounts)
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
    def clients(self) -> int:
        """Threads that process tasks."""
        return int(self.parameters.get("NNodes", 0))

    @property
    def member_count(self) -> int:
        """Storage members; 0: the data are in the client's own process."""
        planned = int(self.parameters.get("MNodes", 0))
        return len(self.members) if self.status == "done" else planned

    @property
    def kill_shown(self) -> str:
        """`member 0 killed`, `members 0 and 2 killed`; empty: none was to be."""
        *others, last = map(str, self.kill or ("",))
        if not others:
            return f"member {last} killed" if last else ""
        return f"members {', '.join(others)} and {last} killed"

    @property
    def variant(self) -> str:
        """What differs from a usual case: `open loop at 500/s, atomic updates, member 0 killed`."""
        at = f" at {amount(self.rate, '/s')}" if self.rate is not None else ""
        parts = [
            f"open loop{at}" if self.loop == "open" else "",
            "atomic updates" if self.updates == "atomic" else "",
            self.kill_shown,
        ]
        return ", ".join(filter(None, parts))

    @property
    def what(self) -> str:
        """The case without the product: `read, 1 KB, 10 clients, 3 members`."""
        parts = [
            f"scenario {self.scenario}" if self.scenario is not None else "",
            label_shown(self.label),
            size_shown(self.parameters.get("ObjectSize", 0)),
            counted(self.clients, "client"),
            counted(self.member_count, "member") if self.member_count else "",
            self.variant,
        ]
        return ", ".join(filter(None, parts))

    @property
    def name(self) -> str:
        """`Hazelcast, read, 1 KB, 10 clients, 3 members`."""
        return f"{self.title}, {self.what}"


FORM: ResultsForm[DataGridCase] = ResultsForm(
    kind="data-grid cases",
    of="cases of a data grid",
    noun="case",
    record=DataGridCase,
    file=FILE,
    command="gridbench data",
)


def timeline_of(case: DataGridCase) -> pa.Table:
    """One row for each task, in the order in which they began.

    A client takes its next task when it has ended the one before: it is submitted, and taken, when
    it begins. Data come from the data grid, so that nothing is sent with a task.
    """
    import pyarrow as pa

    from gridbench.timeline import SCHEMA

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
    import pyarrow.parquet as pq

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(timeline_of(case), path)
    except OSError as error:
        raise InputError(
            f"cannot write the timeline: {error.strerror or error}",
            file=path,
            remedy="give a folder that can be written to",
        ) from None
