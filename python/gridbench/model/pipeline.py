"""A run as tasks on their way: client, link, perhaps a manager, workers, and back.

    client -> (link -> manager) -> link -> worker: take, sleep, answer -> link (-> link) -> client

Each of these can do only so much at a time, and all of them work at once: that is what overlaps.
On one machine, client and workers also share its processors. `evaluate` follows every task through
them and returns its stamps. Nothing is drawn at random. That is done by the crate
gridbench-pipeline, which is given what is here; tests/gridbench/pipeline_reference does the same in
plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gridbench.analysis.columns import Floats, Integers
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridrpc import _native

Sharing = Literal["in turn", "evenly"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A way for data, shared by all messages in one direction."""

    rate: float = math.inf
    """Bytes per second, of all messages together."""
    per_message: float = 0.0
    """Seconds that each message takes of it besides its bytes."""
    sharing: Sharing = "in turn"
    """One message after the other, or all at once with equal shares."""
    each: float = math.inf
    """Bytes per second of one message at most: as much as a worker's own link takes."""

    def work(self, size: float) -> float:
        """Seconds that a message of `size` bytes takes when there is no other."""
        return self.per_message + size / min(self.rate, self.each)

    @property
    def at_once(self) -> float:
        """So many messages fill it, if all go at once; in turn it is one."""
        evenly = self.sharing == "evenly" and self.each < self.rate
        return self.rate / self.each if evenly else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """What takes all tasks and gives them to free workers: a node of its own, or, with links that
    take no time, a runtime in the client."""

    inward: Link = field(default_factory=Link)
    """From the client."""
    outward: Link = field(default_factory=Link)
    """To the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCost:
    """What something does with a message, in processor time."""

    fixed: float = 0.0
    """Seconds for each message."""
    per_byte: float = 0.0
    """Seconds for each of its bytes: copying it, or making the memory for it."""

    def of(self, size: float) -> float:
        """Seconds for a message of `size` bytes."""
        return self.fixed + self.per_byte * size


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStart:
    """How workers come up once they have been requested, at the time their case gives."""

    constant: float = 0.0
    """Seconds before the first is made; besides, for each worker, `prepare`."""
    prepare: float = 0.0
    serial: float = 0.0
    """Processor time of each in the process that makes one after the other."""
    parallel: float = 0.0
    """Each worker's own processor time, before it can take a task."""
    adopt: float = 0.0
    """The client's own work for each worker that has come up, in turn with taking results."""
    all_first: bool = False
    """No task is given out before all workers have been made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineParameters:
    """How a system behaves; times in seconds."""

    to_workers: Link
    """To all workers together: from the manager if there is one, else from the client."""
    from_workers: Link
    manager: Manager | None = None
    """With one, the client submits all tasks at once; without, a task leaves the client when a
    worker is free for it."""
    shared_rate: float = math.inf
    """Bytes per second of shared data, which each host gets with its first task."""
    chained_from: float = math.inf
    """Bytes of shared data from which on hosts hand it on to each other, so that only the first
    gets it by `to_workers`."""
    submit_cost: float = 0.0
    """The client's own work to submit a task; so too the next."""
    submit_per_byte: float = 0.0
    retrieve_cost: float = 0.0
    """The client's own work to take a result."""
    start_latency: float = 0.0
    """From the arrival of a task's data until it computes; keeps nobody else waiting."""
    return_latency: float = 0.0
    """From the arrival of a result until the client can take it; keeps nobody else waiting."""

    # What a run on one machine has besides. All of it takes processor time.
    start: WorkerStart | None = None
    """None: workers are ready at the times that their case gives."""
    share: MessageCost = field(default_factory=MessageCost)
    """The client's own work to prepare the shared data, before the first task."""
    take_shared: MessageCost = field(default_factory=MessageCost)
    """A worker's to take it, before its first task."""
    take: MessageCost = field(default_factory=MessageCost)
    """A worker's to take a task, before it computes."""
    map_input: MessageCost = field(default_factory=MessageCost)
    """The same, besides, where the data lies in memory that this worker has not seen before."""
    make: MessageCost = field(default_factory=MessageCost)
    """A worker's to wake up and to make its output, at the end of computing."""
    new_input: MessageCost = field(default_factory=MessageCost)
    """The client's own, besides, where a task's data needs memory that no earlier one has left."""
    new_output: MessageCost = field(default_factory=MessageCost)
    """A worker's, the same for its output."""
    map_output: MessageCost = field(default_factory=MessageCost)
    """The client's own to take a result, besides, where it lies in memory that is new."""
    take_output: MessageCost = field(default_factory=MessageCost)
    """The client's own to take a result that has data, besides."""
    last_used_first: bool = False
    """A task goes to the worker that has become idle last, whose memory is warm, and to one that
    has never been used only if there is no other; else to the one that has been idle longest."""
    kept_from: float = 0.0
    """Bytes from which on data has memory of its own; less goes within messages."""
    most_left: float = math.inf
    """Pieces of memory of earlier tasks' data that the client keeps; the others go."""
    processors: float = math.inf
    """That client and workers have together."""
    client_lock: bool = False
    """The client's threads submit and take results one at a time, as under an interpreter's lock;
    they copy data for tasks at the same time. With a manager only."""
    ahead: int = 0
    """Tasks that a worker is sent before it has answered those it has; with a manager only."""
    most_waiting_bytes: float = math.inf
    """Data of tasks that wait for a worker; the client submits no more beyond it. With a manager
    only; so too the next."""
    most_outstanding: float = math.inf
    """Tasks that the client has submitted and not taken."""

    def __post_init__(self) -> None:
        managed = self.ahead or self.start or self.share != MessageCost() or self.client_lock
        if self.manager is None and managed:
            raise InputError(
                "a system without a manager has no tasks sent ahead, no start-up of its own, no"
                " lock between its client's threads, and prepares no shared data",
                remedy="give it a manager; its links need not take time",
            )


@dataclass(frozen=True, slots=True)
class PipelineCase:
    """A workload on workers."""

    sleep: Floats
    """Seconds of each task, in the order of submission, shape (tasks,)."""
    ready: Floats
    """When each worker has started, shape (workers,), seconds; or when it is requested, in a system
    with a `WorkerStart`."""
    bytes_in: float = 0.0
    """Bytes of each task's data; so too the two below."""
    bytes_out: float = 0.0
    bytes_shared: float = 0.0
    host: Integers | None = None
    """Number of each worker's host, shape (workers,); None: each has one of its own."""

    def __post_init__(self) -> None:
        # As the native module takes them.
        for name, kind in (("sleep", np.float64), ("ready", np.float64), ("host", np.int64)):
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, np.ascontiguousarray(values, dtype=kind))
        if self.host is not None and self.host.shape != self.ready.shape:
            raise InputError("a case must have a host for each worker, or for none")
        for name, values in (("task times", self.sleep), ("start-up times", self.ready)):
            if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)):
                raise InputError(
                    f"the {name} of a case must be finite numbers, at least one",
                    remedy="leave out tasks and workers without known times",
                )
            if values.min() < 0:
                raise InputError(
                    f"the {name} of a case must not be below 0: {as_given(values.min())}"
                )
        for size in (self.bytes_in, self.bytes_out, self.bytes_shared):
            if not 0 <= size < math.inf:
                raise InputError(f"not a data size in bytes: {as_given(size, '')}")


@dataclass(frozen=True, slots=True)
class Stamps:
    """The stamps of all tasks in the order of submission, shape (tasks,) each; seconds."""

    submit: Floats
    """When the client had handed the task over: with a manager, when its data had arrived there;
    without, when its data started on its way to the worker."""
    sent: Floats
    """When its data started on its way to its worker."""
    calc_in: Floats
    calc_out: Floats
    retrieve: Floats
    worker: Integers
    """Number of the worker that computed it."""

    @property
    def total(self) -> float:
        """From t = 0 until the last result is in the client's hand."""
        return float(self.retrieve.max())


TaskWatch = Callable[[int], object]
"""Receives the number of results so far, many times a second; may raise to end the run."""
Arrays = Sequence[bytearray]
"""Stamps as the native module gives them."""


def evaluate(
    case: PipelineCase, parameters: PipelineParameters, watch: TaskWatch | None = None
) -> Stamps:
    """Follow all tasks of the case through the system: a million of them take a few seconds."""
    arrays, _ = _native.follow_pipeline(case, parameters, watch=watch)
    return stamps_of(arrays)


def stamps_of(arrays: Arrays) -> Stamps:
    """Of what the native module gives."""
    submit, sent, calc_in, calc_out, retrieve = (np.frombuffer(one) for one in arrays[:5])
    worker = np.frombuffer(arrays[5], dtype=np.int64)
    return Stamps(submit, sent, calc_in, calc_out, retrieve, worker)


def figures(jobs: Sequence[tuple[PipelineCase, PipelineParameters]]) -> Floats:
    """What runs are compared by, shape (jobs, 4): the fields of `Measured`, in order. It takes all
    processors, and keeps no stamps."""
    return np.array(_native.pipeline_figures(jobs), dtype=np.float64).reshape(-1, 4)
