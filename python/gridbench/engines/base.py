"""The interface of a system under test.

A third party adds an engine by subclassing `Engine` and naming the class in the
entry-point group `gridbench.engines`; no file of gridbench changes.
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
    """Duration of its body, such as a sleep, in seconds; already scaled."""
    data: Bytes
    """Task data, shape (n,), passed with this task alone."""
    output_bytes: int
    """Size of the output that the task returns, bytes."""
    check: bool = False
    """A task of the untimed checksum pass: it does not sleep, and returns the digests of its data
    before its output. See `gridbench.workload.task.check_task`."""
    body: str = SLEEP
    """What the task does for that time: see `gridbench.workload.body`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one task. Times are seconds of CLOCK_MONOTONIC of this host."""

    tid: int
    calc_in: float = float("nan")
    calc_out: float = float("nan")
    slept: float = float("nan")
    queued: float = float("nan")
    """When the engine queued or sent the task, if it reports that."""
    output: Bytes | None = None
    worker: str = ""
    host: str = ""
    clock_error: float = float("nan")
    """Largest error of calc_in and calc_out, in seconds, if they were converted from the clock of
    another host; NaN: not known."""
    error: str = ""
    """Empty for success, else the reason in one line."""


@dataclass(frozen=True, slots=True)
class Description:
    """An engine's name, version and settings, for the record of a run."""

    name: str
    version: str
    configuration: dict[str, Any] = field(default_factory=dict)


class Cannot(Exception):
    """The engine does not support this; the message gives the reason, for the results."""


class Engine(abc.ABC):
    """One system under test. `submit` and `next_outcome` are called from different threads."""

    name: ClassVar[str]
    uses_shared_memory: ClassVar[bool] = False
    """Data goes through /dev/shm, so its size limits a run."""
    patience: float = 180.0
    """Timeout for starting the workers, in seconds; set before `start`."""

    own_process: ClassVar[bool] = False
    """Its client always gets a process of its own: it forks its workers, and gridbench's process
    has more memory to copy."""

    bodies: ClassVar[frozenset[str] | None] = frozenset({SLEEP})
    """Task bodies that it supports; None: any, including a user's Python function."""

    takes_namespaces: ClassVar[bool] = False
    """Its workers can run in network namespaces: see `use_namespaces`."""

    def use_namespaces(self, namespaces: Sequence[str]) -> None:
        """Run the workers in these network namespaces (files), in turn.

        Called before any other method. Raises Cannot if the engine does not support it.
        """
        del namespaces
        raise Cannot(f"{self.name} cannot put its workers into network namespaces")

    takes_servers: ClassVar[bool] = False
    """It can use the workers of a grid's servers: see `use_servers`."""

    def use_servers(self, servers: Servers) -> None:
        """Use the workers of these servers, all of them.

        Called before any other method. Raises Cannot if the engine does not support it.
        """
        del servers
        raise Cannot(f"the engine `{self.name}` cannot run its workers on servers of a grid")

    def shared_copies(self, workers: int, *, warm: bool) -> int:
        """The largest number of copies of the shared data outside the client at one time.

        Called before `start`, to refuse what cannot fit. An engine that keeps the data once
        per machine returns 1.
        """
        del warm
        return workers

    @abc.abstractmethod
    def describe(self) -> Description:
        """Name, version and resolved configuration."""

    def prepare(self, workers: int) -> None:  # noqa: B027 # most engines have nothing to do
        """Start what a site already has when a user requests workers, such as a batch system.

        Called before `start` with the same number; its time is not counted. Without this call,
        `start` does the same.
        """

    @abc.abstractmethod
    def start(self, workers: int) -> None:
        """Request `workers` worker processes, one task at a time each, without waiting for them."""

    @abc.abstractmethod
    def wait_ready(self) -> None:
        """Wait until every worker has answered."""

    @abc.abstractmethod
    def share(self, data: Bytes) -> Any:
        """Share data with all tasks; the result is passed to `submit`."""

    @abc.abstractmethod
    def submit(self, task: Task, shared: Any) -> None:
        """Submit one task. May block: that is the engine's back-pressure."""

    @abc.abstractmethod
    def next_outcome(self) -> Outcome:
        """Wait for the next task to end, in order of completion; its outcome."""

    @abc.abstractmethod
    def close(self) -> None:
        """End the workers. Called also after Ctrl-C and errors; safe to call twice."""
