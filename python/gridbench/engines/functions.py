"""Engines that call any Python function, and the interface of their drivers.

The compute-grid benchmark submits tasks and takes their outcomes; the micro benchmarks call
functions directly. Both use the same few methods, so a driver is written once, as the manual of its
engine recommends.
"""

from __future__ import annotations

import abc
import queue
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from gridbench.engines.base import Bytes, Cannot, Engine, Outcome, Task
from gridbench.process.barrier import Meeting, meet
from gridbench.workload.body import SLEEP
from gridbench.workload.task import TaskResult, check_task, run_task


def perform(  # noqa: PLR0917 # engines pass arguments by their place
    sleep: float, data: Any, shared: Any, output_bytes: int, check: bool, doing: str = SLEEP
) -> TaskResult:
    """Run a task in a worker, timed or in the checksum pass."""
    if check:
        return check_task(data, shared, output_bytes)
    return run_task(sleep, data, shared, output_bytes, doing)


def outcome_of(tid: int, result: TaskResult, *, queued: float = float("nan")) -> Outcome:
    """The outcome of task `tid` that succeeded; `queued` as in `Outcome`."""
    return Outcome(
        tid=tid,
        calc_in=result.calc_in,
        calc_out=result.calc_out,
        slept=result.slept,
        queued=queued,
        output=result.output,
        worker=str(result.pid),
        host=result.host,
        clock_error=result.clock_error,
    )


def failure_of(tid: int, error: BaseException) -> Outcome:
    """The outcome of task `tid` that failed with `error`."""
    return Outcome(tid=tid, error=one_line(error))


def one_line(error: BaseException) -> str:
    """Kind and message of an exception without line breaks, at most 300 characters."""
    message = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


Chunk = int | Literal["auto"]
"""Number of items in one call; "auto": the engine chooses."""


class FunctionEngine(Engine):
    """An engine that calls functions which its workers can import by name.

    `call` returns the engine's own future, which is opaque to others.
    """

    bodies: ClassVar[frozenset[str] | None] = None

    cannot: ClassVar[Mapping[str, str]] = {}
    """Workloads that the engine does not support, by name, with the reason."""

    def __init__(self) -> None:
        self.modules: tuple[str, ...] = (perform.__module__,)
        """Modules of the functions to call, for engines that can preload them."""
        self._workers = 0
        """Number of workers, from `start`."""
        self._ended: queue.SimpleQueue[tuple[int, Any, Exception | None]] = queue.SimpleQueue()
        """Finished tasks: number, and future or the reason why there is none."""

    @abc.abstractmethod
    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Submit `function(*args)`; its future. Blocks only for back-pressure."""

    def call_on_each(self, function: Callable[..., Any], /, *args: Any) -> list[Any]:
        """Submit `function(*args)` once per worker; the calls wait for each other."""
        return [self.call(function, *args) for _ in range(self._workers)]

    def result(self, future: Any) -> Any:
        """Wait for a call. Returns its result, or raises its exception."""
        return future.result()

    def task_result(self, future: Any) -> TaskResult:
        """The result of a task, with timestamps on the client's clock if the engine knows it."""
        result: TaskResult = self.result(future)
        return result

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """The results of many calls, in order, as users of the engine get them."""
        return [self.result(future) for future in futures]

    def map(
        self, function: Callable[..., Any], items: Iterable[Any], chunk: Chunk
    ) -> Iterable[Any]:
        """Call `function` for each item, `chunk` items in a call. Raises Cannot if unsupported."""
        del function, items, chunk
        raise Cannot(f"{self.name} has no map that sends several items in one call")

    def wait_ready(self) -> None:
        """Wait until each worker runs a task that waits for all others."""
        with Meeting(self.patience) as meeting:
            futures = self.call_on_each(meet, meeting.place)
            meeting.gather(self._workers)
            meeting.end()
            self.gather(futures)

    def arrived(self) -> int | None:
        """Number of workers so far; None if the engine does not report it."""
        return None

    def put(self, value: Any) -> Any:
        """Share data among many calls; the result stands for it as an argument of `call`."""
        return value

    def moved(self, future: Any) -> int | None:
        """Bytes of arguments that a finished call moved or copied; None: not reported."""
        del future
        return None

    def when_done(self, future: Any, report: Callable[[], object]) -> None:
        """Call `report`, in any thread, when the call has ended."""
        future.add_done_callback(lambda _: report())

    def queued(self, future: Any) -> float:
        """When the engine sent the call, in s of CLOCK_MONOTONIC; NaN if not reported."""
        del future
        return float("nan")

    def share(self, data: Bytes) -> Any:
        """`put`, unless the data is empty."""
        return self.put(data) if data.size else data

    def submit(self, task: Task, shared: Any) -> None:
        """Submit the task as a call. A refused call is a failed task."""
        arguments = (task.sleep, task.data, shared, task.output_bytes, task.check)
        # The default body is not sent: it would add some bytes to each call.
        more = () if task.body == SLEEP else (task.body,)
        try:
            future = self.call(perform, *arguments, *more)
        except Exception as error:  # whatever kind the engine raises
            self._ended.put((task.tid, None, error))
            return
        self.when_done(future, lambda: self._ended.put((task.tid, future, None)))

    def next_outcome(self) -> Outcome:
        """The outcome of the next task in order of completion."""
        tid, future, refusal = self._ended.get()
        if refusal is not None:
            return failure_of(tid, refusal)
        try:
            return outcome_of(tid, self.task_result(future), queued=self.queued(future))
        except (Exception, SystemExit) as error:
            return failure_of(tid, error)


class NamespaceNode(NamedTuple):
    """A network namespace that has all workers of an engine."""

    inside: list[str]
    """Prefix of commands."""
    address: str
    client: str
    """The client's address on the network."""
    network: str
    """In CIDR notation."""


def one_node(name: str, namespaces: Sequence[str]) -> NamespaceNode:
    """The only one of these namespaces; raises Cannot if there are several."""
    from gridbench_testbed.errors import InputError
    from gridbench_testbed.links.network import network_of

    if len(set(namespaces)) != 1:
        raise Cannot(f"{name} can have its workers in one network namespace, and these are several")
    try:
        address, client, network = network_of(namespaces[0])
    except InputError as error:
        raise Cannot(str(error)) from None
    return NamespaceNode(["nsenter", f"--net={namespaces[0]}"], address, client, network)


def fixed(chunk: Chunk) -> int:
    """`chunk`, for engines without a choice of their own; raises Cannot for "auto"."""
    if chunk == "auto":
        raise Cannot("its map has no chunk size of its own choice")
    return chunk


class ExecutorEngine(FunctionEngine):
    """An engine with the interface of `concurrent.futures.Executor`."""

    @abc.abstractmethod
    def _running(self) -> Any:
        """The executor; RuntimeError if there is none."""

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """The executor's `submit`, with an unbounded queue."""
        return self._running().submit(function, *args)

    def map(
        self, function: Callable[..., Any], items: Iterable[Any], chunk: Chunk
    ) -> Iterable[Any]:
        """The executor's `map` with a chunk size."""
        results: Iterable[Any] = self._running().map(function, items, chunksize=fixed(chunk))
        return results
