"""Engines that call any Python function: what a driver of such an engine has to write.

The compute-grid benchmark hands its tasks to `submit` and takes outcomes from `next_outcome`; the
micro benchmarks call functions directly. Both are the same few verbs of the engine, so that a
driver is written once, in the way the engine's own manual recommends.
"""

from __future__ import annotations

import abc
import queue
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from gridbench.engines.base import Bytes, Cannot, Engine, Outcome, Task
from gridbench.process.barrier import Meeting, meet
from gridbench.workload.body import SLEEP
from gridbench.workload.task import TaskResult, check_task, run_task

Chunk = int | Literal["auto"]
"""How many items one call takes; "auto": as many as the engine finds best."""


class FunctionEngine(Engine):
    """An engine that calls functions which its workers can import by name.

    What `call` returns is the engine's own future; only the engine looks into it.
    """

    bodies: ClassVar[frozenset[str] | None] = None

    cannot: ClassVar[Mapping[str, str]] = {}
    """Workloads that the engine is not made for, by name, each with the reason."""

    def __init__(self) -> None:
        self.modules: tuple[str, ...] = (perform.__module__,)
        """Of the functions that will be called, for engines that can load them beforehand."""
        self._workers = 0
        """How many were asked for; `start` says so."""
        self._ended: queue.SimpleQueue[tuple[int, Any, Exception | None]] = queue.SimpleQueue()
        """Tasks that have ended: number, and future or why there is none."""

    @abc.abstractmethod
    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Submit `function(*args)`; returns at once with a future, but for back-pressure."""

    def call_on_each(self, function: Callable[..., Any], /, *args: Any) -> list[Any]:
        """Submit `function(*args)` once for each worker; the calls meet, so that each gets one."""
        return [self.call(function, *args) for _ in range(self._workers)]

    def result(self, future: Any) -> Any:
        """Wait for a call; its result, or the exception that it raised."""
        return future.result()

    def task_result(self, future: Any) -> TaskResult:
        """The same for a task, with stamps on the client's clock as far as the engine knows it."""
        result: TaskResult = self.result(future)
        return result

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """The results of many calls, in their order, in the way the engine's users get them."""
        return [self.result(future) for future in futures]

    def map(
        self, function: Callable[..., Any], items: Iterable[Any], chunk: Chunk
    ) -> Iterable[Any]:
        """`function` of each item, `chunk` items to a call. Raises Cannot without such a verb."""
        del function, items, chunk
        raise Cannot(f"{self.name} has no map that sends several items in one call")

    def wait_ready(self) -> None:
        """Return when each worker has met all others, in a task that waits for them."""
        with Meeting(self.patience) as meeting:
            futures = self.call_on_each(meet, meeting.place)
            meeting.gather(self._workers)
            meeting.end()
            self.gather(futures)

    def arrived(self) -> int | None:
        """How many workers have come so far; None if the engine cannot tell."""
        return None

    def put(self, value: Any) -> Any:
        """Give data for many calls; what is returned stands for it as an argument of `call`."""
        return value

    def moved(self, future: Any) -> int | None:
        """Bytes of arguments that a call which has ended moved or copied; None: not told."""
        del future
        return None

    def when_done(self, future: Any, report: Callable[[], object]) -> None:
        """Have `report` called, in any thread, when the call has ended."""
        future.add_done_callback(lambda _: report())

    def queued(self, future: Any) -> float:
        """When the engine sent the call off, in s of CLOCK_MONOTONIC, if it tells; else NaN."""
        del future
        return float("nan")

    def share(self, data: Bytes) -> Any:
        """`put`, if there is anything to share."""
        return self.put(data) if data.size else data

    def submit(self, task: Task, shared: Any) -> None:
        """Call what does the task. If the engine refuses, broken or closed, the task failed."""
        arguments = (task.sleep, task.data, shared, task.output_bytes, task.check)
        # The usual body is not sent along: it would take some bytes of each call.
        more = () if task.body == SLEEP else (task.body,)
        try:
            future = self.call(perform, *arguments, *more)
        except Exception as error:  # whatever kind the engine raises
            self._ended.put((task.tid, None, error))
            return
        self.when_done(future, lambda: self._ended.put((task.tid, future, None)))

    def next_outcome(self) -> Outcome:
        """The next task in order of completion; one that failed has an error."""
        tid, future, refusal = self._ended.get()
        if refusal is not None:
            return failure_of(tid, refusal)
        try:
            return outcome_of(tid, self.task_result(future), queued=self.queued(future))
        except (Exception, SystemExit) as error:  # whatever was raised is the task's end
            return failure_of(tid, error)


def fixed(chunk: Chunk) -> int:
    """`chunk`, for engines that leave it to the caller; raises Cannot for "auto"."""
    if chunk == "auto":
        raise Cannot("its map has no chunk size of its own choice")
    return chunk


# ---- Between a task and the Python function that does it


def perform(  # noqa: PLR0917 # engines pass arguments by their place
    sleep: float, data: Any, shared: Any, output_bytes: int, check: bool, doing: str = SLEEP
) -> TaskResult:
    """What a worker calls for a task, be it timed or one of the checksum pass."""
    if check:
        return check_task(data, shared, output_bytes)
    return run_task(sleep, data, shared, output_bytes, doing)


def outcome_of(tid: int, result: TaskResult, *, queued: float = float("nan")) -> Outcome:
    """The outcome of task `tid` that ended well; `queued` as in `Outcome`."""
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
    """The outcome of task `tid` that ended in `error`, told in one line."""
    return Outcome(tid=tid, error=one_line(error))


def one_line(error: BaseException) -> str:
    """Kind and message of an exception without line breaks, at most 300 characters."""
    message = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
