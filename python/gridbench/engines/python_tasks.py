"""Tasks as Python functions, for engines whose workers run Python."""

from __future__ import annotations

from typing import Any

from gridbench.engines.base import Outcome
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
