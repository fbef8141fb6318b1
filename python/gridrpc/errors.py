"""What can go wrong, as exceptions. The native module raises most: crates/python/src/errors.rs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridrpc._native import Call


class GridError(Exception):
    """The base class of gridrpc's own errors. Errors of remote functions keep their type."""


class ConfigError(GridError, ValueError):
    """A configuration file, or an argument that configures, is invalid."""


class GridClosed(GridError, RuntimeError):
    """The grid accepts no calls: it has been closed, or belongs to another process."""


class NestingError(GridError, RuntimeError):
    """A grid is opened in a module that a worker imports, or too deep in functions of grids."""


class ArgumentError(GridError, ValueError, TypeError):
    """An argument does not fit its parameter. Nothing has been sent.

    `function`, `parameter`: their names; `parameter` is empty if the error concerns all of them.
    """

    def __init__(self, message: str, function: str = "", parameter: str = "") -> None:
        super().__init__(message)
        self.function = function
        self.parameter = parameter


class DeadlineExceeded(GridError, TimeoutError):
    """The call had not ended at its deadline. `worker`: the number of its worker, if it had one."""

    worker: int | None = None


class DependencyFailed(GridError):
    """A call was not made, since another call, whose result is its argument, has failed.

    `call`: that other call; its error is the cause of this error.
    """

    call: Call[Any] | None = None

    def __reduce__(self) -> tuple[type[DependencyFailed], tuple[str]]:
        # A call cannot be pickled.
        return DependencyFailed, (str(self),)


class FunctionNotFound(GridError, LookupError):
    """The worker has no function of that name."""


class InterfaceChanged(GridError, LookupError):
    """A server has another interface of the function by now: look it up again."""


class LimitReached(GridError, RuntimeError):
    """A limit is reached, of a user on a server or of nested calls. The message names the limit."""


class NotPermitted(GridError, PermissionError):
    """A server does not allow the call to its user."""


class ServerNotFound(GridError, LookupError):
    """The grid has no server and no host of that name. The message names those that it has."""


class NotTrusted(GridError, ValueError):
    """The call needs a host that is trusted, and none can run it: see `trusted` in grid.toml."""


class TooFewCores(GridError, ValueError):
    """No host has as many cores as the call asks for. The message says how many there are."""


class TooFewResources(GridError, ValueError):
    """No host has the resources that the call asks for. The message says what hosts have."""


class JournalError(GridError):
    """A journal cannot be used, or is that of another map. `path`: its file, which is kept."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message, path)
        self.path = path

    def __str__(self) -> str:
        return str(self.args[0])


class OutcomeUnknown(GridError):
    """An item was under way when an earlier run of the program ended: it may have run or not."""


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C has ended a sweep. `table`: the table with the outcome of each row until then."""

    def __init__(self, message: str, table: Any) -> None:
        super().__init__(message)
        self.table = table


class SessionError(GridError):
    """A session cannot be used. `name`: the name of the session."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message, name)
        self.name = name

    def __str__(self) -> str:
        return str(self.args[0])


class NoSession(SessionError, LookupError):
    """There is no session of that name. The message names the sessions that exist."""


class SessionEnded(SessionError):
    """The session has ended: it was stopped, has reached its limit, or its process is gone.

    Its results are kept until `gridrpc session stop --forget`.
    """


class SessionRefused(SessionError):
    """The session exists, but this program cannot use it.

    `reason`: "user": it belongs to another user; "host": it runs on another machine; "version":
    it has another version of gridrpc or Python; "busy": it lacks threads or connections for another
    program at the moment.
    """

    def __init__(self, message: str, name: str = "", reason: str = "") -> None:
        super().__init__(message, name)
        self.args = (message, name, reason)
        self.reason = reason


class SessionSilent(SessionError, TimeoutError):
    """The process of the session runs, but has not answered in time. Its results are kept."""


class ProtocolError(GridError, RuntimeError):
    """A worker's answer does not fit the request, perhaps because their versions differ."""


class RemoteError(GridError):
    """An error of a remote function that cannot be raised here with its own type.

    `type_name`: its type in the worker; `traceback`: its traceback there; `stderr`: if the function
    ended its process, the last lines that this wrote to its standard error.
    """

    type_name: str = ""
    traceback: str = ""
    stderr: str = ""


class RemoteTraceback(Exception):
    """The cause of an exception that was raised in a worker: its traceback there, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class CapturedStateWarning(UserWarning):
    """A function refers to an object that workers have a copy of, and the copy may be a mistake.

    It may be a large object that has changed since it was sent; a random generator, whose copies
    all return the same numbers; or a module whose file was edited.
    """


class _Loss(GridError):
    """An error that tells how a worker ended."""

    worker: int | None
    pid: int | None

    def __init__(  # noqa: PLR0917 - as pickle calls it again
        self,
        message: str,
        worker: int | None = None,
        pid: int | None = None,
        host: str = "",
        status: int | None = None,
        signal: int | None = None,
        out_of_memory: bool = False,
        stderr: str = "",
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


class WorkerLost(_Loss):
    """The process that ran the call is gone.

    `worker`, `pid`, `host`: number, process id and host of the worker; `worker` and `pid` are None
    if the whole host is gone. `status` or `signal`: how it ended; `out_of_memory`: whether the
    kernel ended processes for want of memory; `stderr`: its last lines.
    """

    #: Of a call with many items: how many had ended, whether the next one was running, and results.
    _left: tuple[int, bool, Any] | None = None


class RanksLost(WorkerLost):
    """Ranks of MPI that ran the call have ended, by MPI_Abort or otherwise, or did not start.

    `pid`, `status`, `signal`: of the command that started the ranks; `stderr`: their last lines.
    """


class StartError(WorkerLost):
    """No worker could be started, or fewer than the caller waits for.

    The attributes are those of the last attempt.
    """


class ObjectLost(_Loss, RuntimeError):
    """A remote object is gone: its worker was lost, or it has been closed.

    The attributes are those of WorkerLost, for the object's worker; `worker` and `pid` are None if
    the object was closed.
    """


def forked() -> GridClosed:
    """The error for a child of fork that uses its parent's grid."""
    return GridClosed(
        "this grid belongs to the process that opened it: open another one after a fork"
    )


def __getattr__(name: str) -> Any:
    if name != "CallCancelled":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gridrpc._cancelled import CallCancelled

    return CallCancelled
