"""The grid: worker processes, and calls to them."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Literal, TypeVar

from gridrpc import _native
from gridrpc._call import Dispatcher
from gridrpc._config import Config, Transport, WorkerKind, load, processors
from gridrpc._functions import Functions
from gridrpc._grain import Grain
from gridrpc._launch import launch
from gridrpc._map import Map, Results, known_length
from gridrpc._modules import ModuleFunction, RemoteObject
from gridrpc._native import Call
from gridrpc._pickling import dumps
from gridrpc._senders import ModuleSender, NativeSender, Options, PythonSender, Sender
from gridrpc._shared import Shared, SharedParts, dumps_collecting
from gridrpc._typed import to_native
from gridrpc.errors import ConfigError, GridClosed, GridError, ObjectLost, StartError, forked

T = TypeVar("T")

_open: weakref.WeakSet[Grid] = weakref.WeakSet()


class Grid:
    """A grid of worker processes on this machine.

    Use it as a context manager, or call `close`; an open grid is closed when the interpreter
    ends, and its workers end with this process however that ends.

    `workers`: how many processes (default: one per processor); `config`: a TOML file whose
    table [grid] holds values for `Config`; `worker`: "python" or "native"; `transport`: "unix"
    or "tcp"; `modules`: files of compiled modules, and folders with them; `namespaces`: files of
    network namespaces that workers live in. Arguments go above the file.

    Returns at once; the workers start meanwhile. Raises ConfigError.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        config: str | os.PathLike[str] | None = None,
        worker: WorkerKind | None = None,
        transport: Transport | None = None,
        modules: Iterable[str | os.PathLike[str]] | None = None,
        namespaces: Iterable[str | os.PathLike[str]] | None = None,
        **settings: Any,
    ) -> None:
        arguments = {"workers": workers, "worker": worker, "transport": transport, **settings}
        if modules is not None:
            arguments["modules"] = _places(modules)
        if namespaces is not None:
            arguments["namespaces"] = _texts(namespaces)
        unknown = set(settings) - set(Config.__slots__)
        if unknown:
            raise TypeError(f"Grid() has no argument {sorted(unknown)[0]!r}")
        #: The resolved configuration.
        self.config = load(config, arguments)
        try:
            self._native = _native.Grid(
                workers=self.config.workers,
                cores=processors(),
                tcp=self.config.transport == "tcp",
                namespaces=list(self.config.namespaces),
                max_queued=self.config.max_queued,
                max_queued_bytes=self.config.max_queued_bytes,
                shared_threshold=self.config.shared_threshold,
                keep_free=self.config.keep_free,
                grace=self.config.grace,
                retries=self.config.retries,
                labelled=self.config.output == "labelled",
                **launch(self.config),
            )
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._typed = self.config.worker == "native"
        self._functions = Functions(self._native, self._typed)
        self._modules = _native.Modules(list(self.config.modules))
        self._targets: dict[str, ModuleFunction] = {}
        self._dispatcher = Dispatcher()
        #: Whether arguments may refer to shared data.
        self._shares = False
        self._closed = False
        #: Whether this process is a child of the one that opened the grid.
        self._forked = False
        _open.add(self)
        _tell("opened", self)

    def submit(
        self,
        fn: str | Callable[..., T],
        /,
        *args: Any,
        deadline: float | None = None,
        idempotent: bool = False,
        **kwargs: Any,
    ) -> Call[T]:
        """Call `fn(*args, **kwargs)` on some worker; returns at once, with what will be the result.

        `fn`: a Python callable, or the name of a function, "module/function". `deadline`: seconds
        from now after which the call fails. `idempotent`: it may be run again when its worker is
        lost. Waits while too many calls wait for workers (Config.max_queued,
        max_queued_bytes). Raises GridClosed, and whatever pickling the arguments raises.
        """
        try:
            # Most calls need no more than this.
            call = self._native.submit_plain(self, fn, args, kwargs, deadline, idempotent)
        except RuntimeError as error:
            self._check_process()
            raise self._refusal(error) from None
        if call is not None:
            return call
        self._check_process()
        if isinstance(fn, ModuleFunction):
            _refuse_idempotent(idempotent)
            return fn.submit_on(self, args, kwargs, deadline)
        return self._submit(self._functions.find(fn), args, kwargs, deadline, idempotent)

    def _submit(
        self,
        function: _native.Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        deadline: float | None,
        idempotent: bool,
    ) -> Call[Any]:
        try:
            call = self._native.submit_plain(self, function, args, kwargs, deadline, idempotent)
        except RuntimeError as error:
            raise self._refusal(error) from None
        if call is not None:
            return call
        if self._typed:
            return self._submit_typed(function, args, kwargs, deadline, idempotent)
        blobs: list[int] = []
        if self._shares:
            head, buffers, blobs = dumps_collecting((args, kwargs), self._native)
        else:
            head, buffers = dumps((args, kwargs))
        try:
            return self._native.submit(self, function, head, buffers, blobs, deadline, idempotent)
        except RuntimeError as error:
            raise self._refusal(error) from None

    def _submit_typed(
        self,
        function: _native.Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        deadline: float | None,
        idempotent: bool,
    ) -> Call[Any]:
        if kwargs:
            raise TypeError("native functions take arguments by position only")
        blobs = [arg.blob_in(self._native) for arg in args if isinstance(arg, Shared)]
        args = tuple(arg.typed() if isinstance(arg, Shared) else to_native(arg) for arg in args)
        try:
            return self._native.submit_values(self, function, args, blobs, deadline, idempotent)
        except RuntimeError as error:
            raise self._refusal(error) from None

    def function(self, name: str) -> ModuleFunction:
        """The function of a compiled module, "module/function", as a callable.

        `help` tells its arguments. A bare name is looked for in all modules. Raises
        FunctionNotFound, and ValueError for what is no name.
        """
        self._check_open()
        known = self._targets.get(name)
        if known is None:
            known = self._targets[name] = ModuleFunction(self, name)
        return known

    def object(self, name: str, *, start_timeout: float | None = None) -> RemoteObject:
        """A new remote object of a class of a compiled module, "module/Class".

        It has a worker process of its own, which keeps its state; its methods are called like
        functions, one after the other. Use it as a context manager, or call `close`.
        `start_timeout`: seconds within which its worker has to have answered. Raises
        FunctionNotFound, TimeoutError, ObjectLost.
        """
        self._check_open()
        return RemoteObject(self, name, start_timeout)

    def _refusal(self, error: RuntimeError) -> GridError:
        text = str(error)
        if text.startswith("the worker that"):
            return ObjectLost(text)
        if text.startswith(("no worker could be started", "too few workers could be started")):
            return StartError(text, 0, 0, "", None, None, False, "")
        return GridClosed(text)

    def map(
        self,
        fn: str | Callable[..., T],
        /,
        *iterables: Iterable[Any],
        chunk: int | Literal["auto"] = "auto",
        ordered: bool = True,
        deadline: float | None = None,
        idempotent: bool = False,
    ) -> Iterator[T]:
        """The results of `fn` for the items of `iterables`, as `map` gives them.

        Items are taken as they are needed, so that there may be any number of them: calls under
        way, and results not yet taken, are bounded in number and bytes. `chunk`: how many items
        one call takes; "auto": as many as keep its overhead small, and one if there is a `deadline`
        or calls are `idempotent`. `ordered=False` gives each result as soon as it is there. An
        error is raised where its result would be; a lost worker, where the first result of its
        chunk would be.
        """
        if not iterables:
            raise TypeError("map() needs at least one iterable")
        if chunk != "auto" and (not isinstance(chunk, int) or chunk < 1):
            raise ValueError(f'chunk is {chunk!r}: give "auto", or a number from 1 on')
        self._check_process()
        single = len(iterables) == 1
        items = iter(iterables[0]) if single else zip(*iterables, strict=False)
        options = Options(single, deadline, idempotent)
        sender: Sender
        if isinstance(fn, ModuleFunction):
            _refuse_idempotent(idempotent)
            if chunk not in {1, "auto"}:
                raise TypeError("calls of module functions cannot be sent in chunks: use chunk=1")
            chunk = 1
            sender = ModuleSender(self, fn, options)
        else:
            if chunk == "auto" and (deadline is not None or idempotent):
                chunk = 1
            chunked = chunk != 1
            sender = (
                NativeSender(self, fn, options)
                if self._typed
                else PythonSender(self, fn, options, chunked)
            )
        grain = Grain(
            None if chunk == "auto" else chunk,
            self.config.workers,
            processors(),
            known_length(iterables),
            self.config.max_queued_bytes,
        )
        return Results(Map(items, sender, grain, ordered=ordered).groups())

    def share(self, x: Any) -> Shared:
        """Share data: given once, it is present once on this machine, and calls refer to it.

        Pass what is returned as an argument; the function gets the data itself, arrays as
        read-only views. Raises MemoryError, and whatever pickling the data raises.
        """
        self._check_open()
        self._shares = True
        parts = SharedParts(x)
        try:
            return Shared(self._native, parts)
        except RuntimeError as error:
            raise self._refusal(error) from None

    def wait_until_ready(self, timeout: float | None = None) -> None:
        """Wait until all workers have answered.

        Raises TimeoutError, StartError if one cannot be started and is given up, GridClosed.
        """
        self._check_process()
        try:
            ready = self._native.wait_until_ready(timeout)
        except RuntimeError as error:
            raise self._refusal(error) from None
        if not ready:
            count, _, _ = self._native.counts()
            raise TimeoutError(
                f"{count} of {self.config.workers} workers have answered within {timeout} s"
            )

    def close(self, *, cancel: bool = True) -> None:
        """End the workers, and wait until they are gone. Calling it again does nothing.

        `cancel`: give up calls that have not ended; otherwise wait for them first.
        """
        if self._closed:
            return
        if not cancel:
            self._drain()
        self._closed = True
        _open.discard(self)
        self._native.close()
        self._dispatcher.stop()
        _tell("closed", self)

    def _drain(self) -> None:
        import time

        pause = 0.001
        while self._native.counts()[2]:
            time.sleep(pause)
            pause = min(0.05, pause * 1.5)

    def _check_process(self) -> None:
        # Before any lock is taken: a thread of the parent may have held it at the fork.
        if self._forked:
            raise forked()

    def _check_open(self) -> None:
        self._check_process()
        if self._closed:
            raise GridClosed("the grid is closed")

    def __enter__(self) -> Grid:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(cancel=kind is not None)

    def __repr__(self) -> str:
        if self._closed:
            return f"<gridrpc.Grid: {self.config.workers} {self.config.worker} workers, closed>"
        ready, queued, live = self._native.counts()
        return (
            f"<gridrpc.Grid: {ready} of {self.config.workers} {self.config.worker} workers ready, "
            f"{live} calls alive, {queued} of them queued>"
        )


def _tell(what: str, grid: Grid) -> None:
    # Nobody listens in a program that has not loaded `logging`, which takes 4 ms.
    if "logging" in sys.modules:
        from gridrpc._log import logger

        logger.info("%s %r", what, grid)


def _refuse_idempotent(idempotent: bool) -> None:
    if idempotent:
        raise TypeError("a module's function is idempotent if its IDL says `Idempotent`")


def _places(modules: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Files and folders that are there, as texts."""
    places = _texts(modules)
    for place in places:
        if not os.path.exists(place):
            raise ConfigError(f"`modules` names `{place}`, which is not there")
    return places


def _texts(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    return [os.fspath(path) for path in paths]


@atexit.register
def _close_all() -> None:
    for grid in list(_open):
        grid.close()


def _leave_to_parent() -> None:
    """In a child of fork: the grids are the parent's, and so are the threads that serve them."""
    for grid in list(_open):
        grid._forked = grid._closed = True


os.register_at_fork(after_in_child=_leave_to_parent)
