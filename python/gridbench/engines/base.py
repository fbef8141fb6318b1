"""What gridbench asks of a system under test.

A third party adds an engine by subclassing `Engine` and naming the class in the
entry-point group `gridbench.engines`; no file of gridbench has to change.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from gridbench.workload.body import SLEEP

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from gridbench.engines.servers import Servers

# By name: a driver that is imported brings no NumPy along, unless its engine does.
Bytes: TypeAlias = "npt.NDArray[np.uint8]"


@dataclass(frozen=True, slots=True)
class Task:
    """One task of the compute-grid benchmark."""

    tid: int
    """Number of the task, from 1."""
    sleep: float
    """Seconds to sleep, or for whatever its body is; already scaled."""
    data: Bytes
    """Task data, shape (n,), passed with this task alone."""
    output_bytes: int
    """Size of the output that the task has to return, bytes."""
    check: bool = False
    """A task of the untimed checksum pass: it does not sleep, and returns the digests of its data
    before its output. See `gridbench.workload.task.check_task`."""
    body: str = SLEEP
    """What it does for that time: see `gridbench.workload.body`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back of one task. Times are seconds of CLOCK_MONOTONIC of this host."""

    tid: int
    calc_in: float = float("nan")
    calc_out: float = float("nan")
    slept: float = float("nan")
    queued: float = float("nan")
    """When the engine took the task into its queue or sent it off, if it tells."""
    output: Bytes | None = None
    worker: str = ""
    host: str = ""
    clock_error: float = float("nan")
    """Seconds by which calc_in and calc_out may be wrong, where they are from the clock of another
    host and were translated to this one's; NaN: not known."""
    error: str = ""
    """Empty for success, else one line that says what happened."""


@dataclass(frozen=True, slots=True)
class Description:
    """What an engine says of itself for the run's record."""

    name: str
    version: str
    configuration: dict[str, Any] = field(default_factory=dict)


class Cannot(Exception):
    """The engine is not made for this; the message says why, for its row of the results."""


class Engine(abc.ABC):
    """One system under test. `submit` and `next_outcome` are called from different threads."""

    name: ClassVar[str]
    uses_shared_memory: ClassVar[bool] = False
    """Data goes through /dev/shm, whose size then limits a run."""
    patience: float = 180.0
    """Seconds that it may take to bring up the workers; who starts the engine sets it before."""

    own_process: ClassVar[bool] = False
    """Its client has a process of its own also where it could live in gridbench's: it forks its
    workers, which would have to copy all that gridbench has in memory."""

    bodies: ClassVar[frozenset[str] | None] = frozenset({SLEEP})
    """Bodies of tasks that it can run; None: any, also a user's Python function."""

    takes_namespaces: ClassVar[bool] = False
    """Its workers can live in network namespaces: see `use_namespaces`."""

    def use_namespaces(self, namespaces: Sequence[str]) -> None:
        """Have the workers live in these network namespaces (files), one after the other.

        Called before all else. Raises Cannot if the engine has no way to do that.
        """
        del namespaces
        raise Cannot(f"{self.name} cannot put its workers into network namespaces")

    takes_servers: ClassVar[bool] = False
    """Its workers can be those of a grid's servers: see `use_servers`."""

    def use_servers(self, servers: Servers) -> None:
        """Have the workers be those of these servers, as many as they have.

        Called before all else. Raises Cannot if the engine has no way to do that.
        """
        del servers
        raise Cannot(f"the engine `{self.name}` cannot run its workers on servers of a grid")

    def shared_copies(self, workers: int, *, warm: bool) -> int:
        """At most how many copies of the shared data exist at one time outside the client.

        Asked before `start`, to refuse what cannot fit. An engine that keeps the data once
        per machine returns 1.
        """
        del warm
        return workers

    @abc.abstractmethod
    def describe(self) -> Description:
        """Name, version and resolved configuration."""

    def prepare(self, workers: int) -> None:  # noqa: B027 # most engines have nothing to do
        """Bring up what a site has before anybody asks for workers, such as a batch system.

        Called before `start` with the same number, and not counted. An engine whose `start` is
        called without it does it there.
        """

    @abc.abstractmethod
    def start(self, workers: int) -> None:
        """Ask for `workers` worker processes, one task at a time each. Need not wait for them."""

    @abc.abstractmethod
    def wait_ready(self) -> None:
        """Return when every worker has answered."""

    @abc.abstractmethod
    def share(self, data: Bytes) -> Any:
        """Give data common to all tasks; what is returned is passed to `submit`."""

    @abc.abstractmethod
    def submit(self, task: Task, shared: Any) -> None:
        """Hand over one task. May block: that is the engine's back-pressure."""

    @abc.abstractmethod
    def next_outcome(self) -> Outcome:
        """Wait for the next task to end, in order of completion, and return its outcome."""

    @abc.abstractmethod
    def close(self) -> None:
        """End the workers. Called also after Ctrl-C and errors; safe to call twice."""
