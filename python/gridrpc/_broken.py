"""Lost workers, as errors that code written for process pools knows.

Apart, as loading the standard library's process pools takes longer than the executor.
"""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool

from gridrpc.errors import StartError, WorkerLost


class ExecutorWorkerLost(WorkerLost, BrokenProcessPool):
    """A worker was lost that ran a call of an executor. The executor continues with another one."""


class ExecutorStartError(StartError, BrokenProcessPool):
    """An executor has no workers, and none can be started."""


def broken_pool(error: WorkerLost) -> BaseException:
    """The same error, as one that is a `BrokenProcessPool` as well."""
    kind = ExecutorStartError if isinstance(error, StartError) else ExecutorWorkerLost
    made = kind(*error.args)
    vars(made).update(vars(error))
    return made
