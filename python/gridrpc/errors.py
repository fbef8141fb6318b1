"""What can go wrong, as exceptions, and how the runtime's reports become them."""

from __future__ import annotations

import contextlib
import pickle
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass


class GridError(Exception):
    """Anything that gridrpc itself has to report. Errors of remote functions keep their type."""


class ConfigError(GridError, ValueError):
    """A configuration file or argument makes no sense."""


class GridClosed(GridError, RuntimeError):
    """The grid takes no calls: it has been closed, or belongs to another process."""


class ArgumentError(GridError, ValueError, TypeError):
    """An argument does not fit its parameter. Nothing has been sent.

    `function`, `parameter`: which ones; `parameter` is empty if it is about all of them.
    """

    def __init__(self, message: str, function: str = "", parameter: str = "") -> None:
        super().__init__(message)
        self.function = function
        self.parameter = parameter


class DeadlineExceeded(GridError, TimeoutError):
    """The call had not ended at its deadline. `worker`: which one had it, if any."""

    worker: int | None = None


class FunctionNotFound(GridError, LookupError):
    """The worker has no function of that name."""


class ObjectLost(GridError, RuntimeError):
    """A remote object is gone: its worker was lost, or it has been closed."""


class RemoteError(GridError):
    """An error of a remote function that cannot be raised here as what it was.

    `type_name`: its type there; `traceback`: where it was raised.
    """

    type_name: str = ""
    traceback: str = ""


class RemoteTraceback(Exception):
    """The cause of an exception that was raised in a worker: its traceback there, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class WorkerLost(GridError):
    """The process that ran the call is gone.

    `worker`, `pid`, `host`: which one; `status` or `signal`: how it ended; `out_of_memory`:
    whether the kernel ended processes for want of memory; `stderr`: its last lines.
    """

    def __init__(  # noqa: PLR0917 - as pickle calls it again
        self,
        message: str,
        worker: int,
        pid: int,
        host: str,
        status: int | None,
        signal: int | None,
        out_of_memory: bool,
        stderr: str,
    ) -> None:
        super().__init__(message, worker, pid, host, status, signal, out_of_memory, stderr)
        self.worker = worker
        self.pid = pid
        self.host = host
        self.status = status
        self.signal = signal
        self.out_of_memory = out_of_memory
        self.stderr = stderr

    def __str__(self) -> str:
        return str(self.args[0])


class StartError(WorkerLost):
    """No worker could be started, or not as many as are waited for.

    The attributes tell of the last attempt.
    """


def forked() -> GridClosed:
    """The error for a child of fork that uses its parent's grid."""
    return GridClosed(
        "this grid belongs to the process that opened it: open another one after a fork"
    )


def from_outcome(outcome: tuple[Any, ...], name: str) -> BaseException:
    """The exception for the outcome of a call of the function `name` that did not return."""
    kind = outcome[0]
    if kind == "raised":
        return _raised(*outcome[1:])
    if kind == "cancelled":
        from gridrpc._cancelled import CallCancelled

        return CallCancelled(f"the call of {name} was cancelled")
    if kind == "deadline":
        where = "no worker had taken it" if outcome[1] is None else f"worker {outcome[1]} ran it"
        error = DeadlineExceeded(f"the call of {name} missed its deadline; {where}")
        error.worker = outcome[1]
        return error
    if kind == "lost":
        hint = (
            "A call is run again, as often as the grid's `retries` tells, only if it is declared "
            "idempotent: by submit(..., idempotent=True) or by `Idempotent` in an interface"
        )
        return _lost(WorkerLost, f"a worker was lost that ran {name}", hint, *outcome[1:])
    if kind == "no workers":
        hint = "Check the command and its messages above"
        return _lost(StartError, "no worker could be started", hint, *outcome[1:])
    return GridClosed(f"the grid was closed before {name} returned")


def _lost(  # noqa: PLR0917 - in the order of the native outcome
    kind: type[WorkerLost],
    what: str,
    hint: str,
    place: tuple[int, int, str],
    cause: str,
    status: int | None,
    signal_number: int | None,
    out_of_memory: bool,
    stderr: str,
) -> WorkerLost:
    worker, pid, host = place
    if signal_number is not None:
        with contextlib.suppress(ValueError):  # a number without a name
            cause += f" ({signal.Signals(signal_number).name})"
    lines = [f"{what}: worker {worker} (process {pid} on {host}) {cause}."]
    if out_of_memory:
        lines.append("The machine ran out of memory: use fewer workers, or smaller data.")
    if stderr:
        lines.append("Its last lines on stderr:")
        lines.extend(f"  {line}" for line in stderr.splitlines()[-20:])
    lines.append(f"hint: {hint}.")
    message = "\n".join(lines)
    return kind(message, worker, pid, host, status, signal_number, out_of_memory, stderr)


def _raised(
    type_name: str, message: str, trace: str, head: Any, buffers: list[Any]
) -> BaseException:
    if len(head):
        try:
            error = pickle.loads(head, buffers=buffers)
        except Exception:  # whatever its own __setstate__ or __init__ may raise
            error = None
        if isinstance(error, BaseException):
            # Errors may refuse to be changed in the usual way.
            BaseException.__setattr__(error, "__cause__", RemoteTraceback(trace))
            return error
    if type_name == "gridrpc.FunctionNotFound":
        return FunctionNotFound(message)
    if type_name == "gridrpc.ArgumentError":
        return TypeError(message)
    if type_name == "gridrpc.OutOfMemory":
        return MemoryError(message)
    remote = RemoteError(f"{type_name}: {message}")
    remote.type_name = type_name
    remote.traceback = trace
    if trace:
        remote.__cause__ = RemoteTraceback(trace)
    return remote


def __getattr__(name: str) -> Any:
    if name != "CallCancelled":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gridrpc._cancelled import CallCancelled

    return CallCancelled
