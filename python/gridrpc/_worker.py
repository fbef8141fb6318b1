"""A Python worker: the process that forks workers, and what each of them does in Python."""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import os
import sys
from contextlib import contextmanager
from pickle import loads

from gridrpc import _native
from gridrpc._chunks import describe
from gridrpc._frozen import SPAWNER
from gridrpc._paths import BY_VALUE, from_the_wire
from gridrpc._pickling import dumps
from gridrpc._versions import CLIENT_VERSIONS, check
from gridrpc._wrapped import runnable

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_worker: _native.Worker | None = None
#: Whether this process is a spawner or a worker; clients load this module too.
serving = False


def main() -> None:
    """Serve a client as its spawner, or as one of the workers that it forks."""
    global serving
    serving = True
    # Programs that functions start are no spawners.
    os.environ.pop(SPAWNER, None)
    # On another host, the client is another installation.
    if CLIENT_VERSIONS in os.environ:
        check()
    # As `launch` sets it.
    initializer = os.environ.pop("GRIDRPC_INITIALIZER", None)
    descriptor = _native.run_spawner(_prepare, os.fork)
    if descriptor is None:
        return
    gc.enable()
    _reseed()
    # Lines are to be seen when they are printed, also through a pipe.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    global _worker
    try:
        if initializer is not None:
            _initialize(initializer)
        _worker = _native.Worker(descriptor, _program)
        _worker.serve(_resolve, dumps, _raise)
    except ConnectionError as error:
        print(f"gridrpc worker: {error}", file=sys.stderr)
        _leave(1)
    _leave(0)


def _program() -> str:
    """The program that ranks of compiled functions run."""
    from gridrpc._launch import program

    return program()


def _initialize(path: str) -> None:
    """Run what the client has each worker run first. A worker that fails at it has not started."""
    from gridrpc._initializer import initialize

    try:
        initialize(path)
    except BaseException as error:
        if not isinstance(error, SystemExit):
            import traceback

            print("gridrpc: the initializer of a worker has failed", file=sys.stderr)
            traceback.print_exc()
        _leave(1)


def _leave(status: int) -> None:
    """End without the interpreter's clean-up, which takes 10 ms of processor time per worker.

    Functions registered with `atexit` run. The spawner ends a worker that they hold up.
    """
    atexit._run_exitfuncs()
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        # Queues have threads that send what was put into them.
        util._exit_function()
    for stream in (sys.stdout, sys.stderr):
        # None: the client had it closed.
        if stream is not None:
            stream.flush()
    os._exit(status)


#: What this process imports when it has started workers and nobody asks for more.
_can_wait: list[str] = []


def _prepare(directory: str, path: list[str], modules: list[str]) -> None:
    """Do once what each worker would have to do: it inherits the result.

    Called again with modules alone, for functions that were submitted before the first fork; and
    with nothing, when workers have been started and there is time for what can wait.
    """
    if not (directory or path or modules):
        modules = [*_can_wait]
    elif BY_VALUE in modules:
        modules = [name for name in modules if name != BY_VALUE]
        _can_wait.append(BY_VALUE)
    if directory:
        os.chdir(from_the_wire(directory))
    if path:
        sys.path[:] = map(from_the_wire, path)
    with _idle_hooks_left_out():
        for name in modules:
            try:
                importlib.import_module(name)
            except Exception as error:  # whatever a module may raise: calls that need it will tell
                if path:
                    print(f"gridrpc: could not prepare `{name}`: {error!r}", file=sys.stderr)
    if "cloudpickle" in sys.modules:
        # What it has pickled asks for this module.
        importlib.import_module(BY_VALUE)
    import faulthandler

    # A crash of a worker in native code then leaves the Python line that led to it.
    faulthandler.enable()
    # Collected garbage would write to pages that the workers share.
    gc.collect()
    gc.freeze()
    gc.disable()


@contextmanager
def _idle_hooks_left_out() -> Iterator[None]:
    """Leave out what threading and logging do after a fork: mend locks that threads may hold.

    This process has one thread, so they have nothing to mend; but going through their locks copies
    600 KB into each worker. Hooks of others, above all that of `random`, which gives each worker
    numbers of its own, stay.
    """
    register = os.register_at_fork
    left_out = []

    def register_others(**hooks: Any) -> None:
        if getattr(hooks.get("after_in_child"), "__module__", None) in {"threading", "logging"}:
            left_out.append(hooks)
        else:
            register(**hooks)

    os.register_at_fork = register_others
    try:
        yield
    finally:
        os.register_at_fork = register
        threading = sys.modules.get("threading")
        if threading is not None and threading.active_count() > 1:
            # A prepared module has started threads after all.
            for hooks in left_out:
                register(**hooks)


def _reseed() -> None:
    """Give each worker random numbers of its own: `random` sees to itself, NumPy does not."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()


def _resolve(pickled: bool, name: str, body: bytes) -> Callable[..., Any]:
    """The function of that name, or in that pickle."""
    function: Callable[..., Any] = runnable(loads(body) if pickled else find_named(name))
    return function


#: Where clients look for modules that this process did not look at first.
places: list[str] = []


#: Modules that clients have had reloaded, each with the text of the last time.
reloaded: dict[str, str] = {}


def find_in(function: str | bytes, added: list[str], reloads: dict[str, str]) -> Callable[..., Any]:
    """The function of that name, or in that pickle, with more places for modules, and with those
    modules reloaded."""
    new = [place for place in added if place not in sys.path]
    sys.path.extend(new)
    places.extend(new)
    for name, which in reloads.items():
        if reloaded.get(name) != which:
            module = sys.modules.get(name)
            if module is not None:
                importlib.invalidate_caches()
                importlib.reload(module)
            # The last one stays the last one.
            reloaded.pop(name, None)
            reloaded[name] = which
    if isinstance(function, str):
        return find_named(function)
    return loads(function)  # type: ignore[no-any-return]


def find_named(name: str) -> Callable[..., Any]:
    """The function that `module/function` names."""
    module, _, path = name.partition("/")
    try:
        target: Any = importlib.import_module(module)
        for attribute in path.split("."):
            target = getattr(target, attribute)
    except (ImportError, AttributeError) as error:
        raise _function_not_found(
            f"the worker has no function `{name}`: {error}. Workers look for modules where the "
            "client did when it opened the grid"
        ) from error
    if not callable(target):
        raise _function_not_found(f"`{name}` is of type {type(target).__name__}, not a function")
    return target  # type: ignore[no-any-return]


def _function_not_found(message: str) -> Exception:
    # Loading the errors costs 10 ms and 2 MB, and hardly any worker needs them.
    from gridrpc.errors import FunctionNotFound

    return FunctionNotFound(message)


def _raise(worker: _native.Worker, started: int, ended: int, error: BaseException) -> None:
    """Answer with an error, or as much of it as can be sent."""
    worker.raised(started, ended, *describe(error))


def resolve(blob: int) -> Any:
    """Shared data, as the client gave it; arrays in it are read-only views of shared memory."""
    if _worker is None:
        raise RuntimeError("shared data is resolved in workers only")
    value: Any = _worker.cached(blob)
    if value is None:
        head: Any  # a buffer, which type checkers know from Python 3.12 on
        head, *buffers = _worker.shared(blob)
        if bytes(memoryview(head)[:1]) == TYPED:
            value = typed_value(bytes(head), memoryview(buffers[0]))
        else:
            # Shared bytes then arrive as a memoryview too.
            value = loads(head, buffers=map(memoryview, buffers))
        _worker.cache(blob, value)
    return value


#: First byte of what describes data that a server keeps under a name. It is no pickle.
TYPED = b"{"


def typed_value(described: bytes, data: memoryview) -> Any:
    """An array, or bytes, in memory of this description, which is that of a server."""
    import json

    shape = json.loads(described)
    if shape["dtype"] is None:
        return data.toreadonly()
    import numpy as np

    array = np.frombuffer(data.toreadonly(), np.dtype(shape["dtype"]))
    return array.reshape(shape["dims"], order="F" if shape["fortran"] else "C")


def passed_on(index: int) -> list[memoryview]:
    """The parts of the result of another call that is number `index` among the arguments."""
    if _worker is None:
        raise RuntimeError("results of other calls are arguments in workers only")
    parts = _worker.passed_on(index)
    return [memoryview(memory)[start:end].toreadonly() for memory, start, end in parts]
