"""A Python worker: the prepared process that forks workers, and the loop that each of them runs."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from time import monotonic_ns
from typing import Any

from gridrpc import _native
from gridrpc._pickling import dumps, loads
from gridrpc.errors import FunctionNotFound

_worker: _native.Worker | None = None

#: Functions kept unpickled.
MAX_FUNCTIONS = 256


def main() -> None:
    """Serve a client as its spawner, or as one of the workers that it forks."""
    descriptor = _native.run_spawner(_prepare, os.fork)
    if descriptor is None:
        return
    gc.enable()
    _reseed()
    try:
        _serve(_native.Worker(descriptor))
    except ConnectionError as error:
        print(f"gridrpc worker: {error}", file=sys.stderr)
        _leave(1)
    _leave(0)


def _leave(status: int) -> None:
    """End without the interpreter's clean-up, which takes 10 ms of processor time per worker."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _prepare(directory: str, path: list[str], modules: list[str]) -> None:
    """Do once what each worker would have to do: it inherits the result."""
    if directory:
        os.chdir(directory)
    sys.path[:] = path
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:  # whatever a module may raise: calls that need it will tell
            print(f"gridrpc: could not prepare `{name}`: {error!r}", file=sys.stderr)
    # Collected garbage would write to pages that the workers share.
    gc.collect()
    gc.freeze()
    gc.disable()


def _reseed() -> None:
    """Give each worker random numbers of its own: `random` sees to itself, NumPy does not."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()


def _serve(worker: _native.Worker) -> None:
    global _worker
    _worker = worker
    import faulthandler

    # A crash in native code then leaves the Python line that led to it.
    faulthandler.enable()
    functions: dict[int, Callable[..., Any]] = {}
    head: Any
    buffers: Any
    while (work := worker.next(functions)) is not None:
        number, pickled, name, body, head, buffers = work
        del work
        started = monotonic_ns()
        try:
            function = functions.get(number)
            if function is None:
                function = _resolve(pickled, name, body)
                functions[number] = function
                if len(functions) > MAX_FUNCTIONS:
                    # The oldest may be in use still; then `next` hands its body over again.
                    functions.pop(next(iter(functions)))
            args, kwargs = loads(head, buffers)
            del head, buffers
            started = monotonic_ns()
            result = function(*args, **kwargs)
            ended = monotonic_ns()
            del args, kwargs
            answer, parts = dumps(result)
        except SystemExit:
            raise
        except BaseException as error:
            ended = monotonic_ns()
            args = kwargs = head = buffers = None
            _raise(worker, started, ended, error)
        else:
            worker.returned(started, ended, answer, parts)
            del result, answer, parts


def _resolve(pickled: bool, name: str, body: bytes) -> Callable[..., Any]:
    """The function of that name, or in that pickle."""
    if pickled:
        function: Callable[..., Any] = loads(body, [])
        return function
    module, _, path = name.partition("/")
    try:
        target: Any = importlib.import_module(module)
        for attribute in path.split("."):
            target = getattr(target, attribute)
    except (ImportError, AttributeError) as error:
        raise FunctionNotFound(
            f"the worker has no function `{name}`: {error}. Workers look for modules where the "
            "client did when it opened the grid"
        ) from error
    if not callable(target):
        raise FunctionNotFound(f"`{name}` is a {type(target).__name__}, not a function")
    return target  # type: ignore[no-any-return]


def _raise(worker: _native.Worker, started: int, ended: int, error: BaseException) -> None:
    """Answer with an error; as much of it as can be told."""
    # The first frame is this file's own.
    error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ else None
    trace = "".join(traceback.format_exception(error)).rstrip()
    try:
        message = str(error)
    except Exception:  # an error may well have a broken __str__
        message = ""
    parts: Iterable[Any] = []
    try:
        head, parts = dumps(error.with_traceback(None))
    except Exception:  # whatever its own __reduce__ may raise: the text has to do
        head = b""
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}"
    worker.raised(started, ended, name, message, trace, head, list(parts))


def resolve(blob: int) -> Any:
    """Shared data, as the client gave it; arrays in it are read-only views of shared memory."""
    if _worker is None:
        raise RuntimeError("shared data is resolved in workers only")
    value = _worker.kept(blob)
    if value is None:
        head, *buffers = _worker.shared(blob)
        value = loads(head, buffers)
        if isinstance(value, _native.Buffer):  # shared bytes
            value = memoryview(value)
        _worker.keep(blob, value)
    return value


def call_chunk(function: Callable[..., Any], items: list[tuple[Any, ...]]) -> list[Any]:
    """Call a function with each of the items."""
    return [function(*item) for item in items]
