"""The grid: worker processes, and calls to them."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import weakref
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

from gridrpc import _native, _tracing
from gridrpc._call import Dispatcher
from gridrpc._config import Config, Transport, WorkerKind, load, processors
from gridrpc._dataflow import NotAnArgument
from gridrpc._frozen import check_program
from gridrpc._functions import Functions
from gridrpc._hosts import HostState
from gridrpc._launch import launch
from gridrpc._launch import servers as servers_of
from gridrpc._mapping import MANY, check_idempotent, columns, itself, mapped, rows
from gridrpc._modules import ModuleFunction, ModuleObject, RemoteObject
from gridrpc._native import Call, CallOptions
from gridrpc._nesting import check_imports
from gridrpc._options import DEFAULT, NOTHING_ASKED, call_options, checked_ranks, offered
from gridrpc._pickling import dumps
from gridrpc._references import MAIN
from gridrpc._results import Results
from gridrpc._retries import Errors, Retries
from gridrpc._senders import MapOptions
from gridrpc._shared import Collected, Shared, dumps_collecting, share
from gridrpc.errors import ConfigError, GridClosed, forked

if TYPE_CHECKING:
    from numpy.random import Generator

    from gridrpc._detached import DetachedCall
    from gridrpc._directory import Directory, Policy
    from gridrpc._initializer import Initializer
    from gridrpc._journal import Journal
    from gridrpc._named_data import NamedData, SharedName
    from gridrpc._seeds import Rng, Seed, Seeds
    from gridrpc._stats import GridStats
    from gridrpc._stream import Stream
    from gridrpc._sweep import SweepOptions

T = TypeVar("T")

#: Callables whose calls are not simply pickled.
_UNUSUAL = frozenset({ModuleFunction, functools.partial})

_open: weakref.WeakSet[Grid] = weakref.WeakSet()


class Grid:
    """A grid of worker processes, on this machine and on servers.

    Use it as a context manager, or call `close`. An open grid is closed when the interpreter ends,
    and its workers end with this process, however that ends.

    `workers`: number of processes on this machine (default: one for each processor, or none if
    there are servers); `servers`: servers with workers, such as "ssh://node1"; `config`: a TOML
    file whose table [grid] holds values for `Config`, and whose tables [server.NAME] describe
    servers; `worker`: "python" or "native"; `transport`: "unix", "tcp" or "tls"; `modules`: files
    of compiled modules, and folders with them; `preload`: modules that workers have loaded before
    they count as ready; `initializer`: a function that each worker calls
    with `initargs` before its first call; `environment` and `cwd`: environment variables and
    working directory of the workers; `directory`: URLs of directories, such as
    "https://directory.example.org:7713", which know servers: each call of a function that they
    offer goes to one of them; `policy`: how it is chosen, by default the least predicted time:
    "least-load", "two-choices", "round-robin", "random", "data-locality", or a function that gets a
    list of `Prediction` and returns one; `seed`: a seed, as of `map`, from which the random numbers
    of all maps with `rng=True` and of `rng` follow. Arguments take precedence over the file.

    The constructor does not wait until the workers have started. Raises ConfigError, TypeError and
    ValueError for a wrong `seed`, and NestingError in a worker that is importing a module.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        config: str | os.PathLike[str] | None = None,
        worker: WorkerKind | None = None,
        transport: Transport | None = None,
        modules: Iterable[str | os.PathLike[str]] | None = None,
        preload: Iterable[str | os.PathLike[str]] | None = None,
        servers: str | Iterable[str] | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        directory: str | Iterable[str] | None = None,
        policy: Policy | None = None,
        seed: Seed | None = None,
        **settings: Any,
    ) -> None:
        arguments = {"workers": workers, "worker": worker, "transport": transport, **settings}
        if directory is not None:
            arguments["directory"] = (
                (directory,) if isinstance(directory, str) else tuple(directory)
            )
        if isinstance(policy, str):
            arguments["policy"] = policy
        if modules is not None:
            arguments["modules"] = _places(modules)
        if preload is not None:
            arguments["preload"] = _modules(preload)
        if settings.get("cwd") is not None:
            arguments["cwd"] = os.fspath(settings["cwd"])
        if servers is not None:
            arguments["servers"] = (servers,) if isinstance(servers, str) else tuple(servers)
        unknown = set(settings) - set(Config.__slots__)
        if unknown:
            raise TypeError(f"Grid() has no argument {sorted(unknown)[0]!r}")
        #: The resolved configuration.
        self.config = load(config, arguments)
        #: Whether the output of calls comes with their results.
        self._captures = self.config.output == "captured"
        check_program()
        check_imports()
        self._seeds: Seeds | None = None
        if seed is not None:
            from gridrpc._seeds import Seeds

            self._seeds = Seeds(seed)
        self._directory: Directory | None = None
        if self.config.directory:
            from gridrpc._directory import Directory

            self._directory = Directory(self.config.directory, policy or self.config.policy)
        #: What each worker runs first.
        self._initializer: Initializer | None = None
        if initializer is not None:
            self._initializer = _initializer(self.config, initializer, tuple(initargs))
        self._runs_python = self.config.worker == "python"
        self._modules = _native.Modules(list(self.config.modules))
        servers = servers_of(self.config, config)
        found = servers.get("servers", ())
        #: Whether names of functions mean Python's; servers of others offer functions of modules.
        self._names_are_python = (
            self._runs_python
            and not self.config.directory
            and (self.config.workers > 0 or not found or not all(one.only_offers for one in found))
        )
        #: Whether calls may run elsewhere, and so belong to a trace.
        self._has_servers = bool(found)
        #: Whether calls of callables need no further look.
        self._is_local = self._names_are_python and not self._has_servers
        if self._captures and not self._names_are_python:
            raise ConfigError(
                '`output="captured"` is for Python functions of this program, which the workers of '
                "this grid do not run: leave it out"
            )
        self._native = self._open(servers)
        self._functions = Functions(
            self._native,
            self._runs_python,
            workers_have_path=not any(one.is_session for one in found),
            captures=self._captures,
        )
        self._targets: dict[tuple[str, CallOptions, int], ModuleFunction] = {}
        self._dispatcher = Dispatcher()
        #: Whether arguments may refer to shared data, or to calls.
        self._refers = False
        #: Whether calls run at one server alone, which can keep data under names.
        self._keeps_data = self.config.workers == 0 and len(found) == 1 and found[0].is_server
        self._closed = False
        #: Whether this process is a child of the one that opened the grid.
        self._forked = False
        _open.add(self)
        _tell("opened", self)

    def _open(self, servers: dict[str, Any]) -> _native.Grid:
        """The native grid; with a directory, the grids of the servers in its place."""
        if self._directory is not None:
            return self._directory.grids()
        return _native.Grid(
            compiled=self._modules,
            preload=list(self.config.preload),
            runs_python=self._runs_python,
            workers=self.config.workers if self.config.transport == "unix" else 0,
            resources=offered(self.config.memory, self.config.resources),
            cores=processors(),
            max_queued=self.config.max_queued,
            max_queued_bytes=self.config.max_queued_bytes,
            shared_threshold=self.config.shared_threshold,
            keep_free=self.config.keep_free,
            grace=self.config.grace,
            retries=self.config.retries,
            calls_per_process=self.config.max_tasks_per_child or MANY,
            labelled=self.config.output == "labelled",
            progress=self.config.progress,
            **launch(self.config, self._initializer.path if self._initializer else None),
            **servers,
        )

    def submit(
        self,
        fn: str | Callable[..., T],
        /,
        *args: Any,
        deadline: float | None = None,
        idempotent: bool = False,
        priority: int = 0,
        server: str | None = None,
        cores: int = 1,
        memory: int | str | None = None,
        resources: Mapping[str, int] | None = None,
        expected: float | None = None,
        ranks: int = 0,
        **kwargs: Any,
    ) -> Call[T]:
        """Call `fn(*args, **kwargs)` on some worker, and return the `Call` without waiting for it.

        `fn`: a Python callable, or the name of a function, "module/function": of Python, or, with
        native workers, of a compiled module. `deadline`: seconds from now after which the call
        fails. `idempotent`: the call may run again when its worker is lost. `priority`: of the
        calls that wait for a worker, those with a higher priority go first, and those with the same
        priority in the order of submission. `server`: name of the server or host that has to run
        the call; "localhost" means this machine's own workers. `cores`: number of processors of one
        host that the call uses; as many workers keep their slots free for it, and numerical
        libraries start as many threads. `memory`, such as "4 GB" or a number of bytes, and
        `resources`, such as {"gpu": 1}: the call goes to a host that has as much of each free.
        `expected`: seconds that the call is expected to run; it does not begin on a host that ends
        before, such as that of a batch job. `ranks`: number of ranks of MPI that run the call side
        by side on one host; each rank uses `cores`, and the result is that of rank 0. Calls of this
        grid among the arguments stand for their results: the call waits for them, and the client
        does not. Blocks while too many calls wait for workers (Config.max_queued,
        max_queued_bytes). Raises GridClosed, ServerNotFound, TooFewCores, TooFewResources,
        ValueError, and any error of pickling the arguments.
        """
        requested = (deadline, idempotent, priority, server, cores, memory, resources, expected)
        nothing = requested == NOTHING_ASKED and cores is not True
        options = DEFAULT if nothing else self._options(*requested)
        if ranks or type(fn) in _UNUSUAL or not self._is_local:
            return self._submit_unusual(fn, args, kwargs, options, ranks)
        return self._native.submit(self, fn, args, kwargs, options)

    def stream(
        self,
        fn: str | Callable[..., Iterable[T] | AsyncIterable[T]],
        /,
        *args: Any,
        buffer: int = 8,
        timeout: float | None = None,
        server: str | None = None,
        **kwargs: Any,
    ) -> Stream[T]:
        """The parts that the generator `fn(*args, **kwargs)` yields, while it runs in a worker.

        `fn`: a generator function, an asynchronous one, or any function that returns an iterable;
        or the name of one, "module/function". Go through the parts with `for`, `async for` or
        `next`. The generator has a worker process of its own, beside those of the grid, and starts
        at once. `buffer`: number of parts that it makes ahead of the loop; then it waits. An
        exception of the generator comes behind the parts before it. When the loop is left early,
        the generator ends, as a local one would: see `Stream.close`. `timeout`: seconds from now
        after which TimeoutError is raised if the next part is not there. `server`: the server or
        host that has to run it, as in `submit`. Raises ServerNotFound, GridClosed, TypeError,
        ValueError, and any error of pickling the arguments.
        """
        from gridrpc._stream import Stream

        self._check_open()
        if self._directory is not None:
            raise TypeError(
                "`stream` needs workers of a server's own grid: open one without a `directory`"
            )
        return Stream(self, fn, args, kwargs, buffer=buffer, timeout=timeout, server=server)

    def detach(self, fn: str | ModuleFunction, /, *args: Any, **kwargs: Any) -> str:
        """Have a server run `fn(*args, **kwargs)` even if this program ends. Returns the call's id.

        `fn`: a function of a compiled module that a server offers. The server has stored the call
        when this returns: it survives a restart of the server, and its result is kept for its owner
        for the time that the server's configuration says. `attach` gives the call, here or in
        another program. A function that calls back, is a method or writes files of the client
        cannot be detached. Raises TypeError, LimitReached, ConnectionError if the server is away,
        and all that `submit` raises.
        """
        self._check_process()
        of_module = self._of_module(fn)
        if of_module is None:
            raise TypeError(
                f"{fn!r} is in Python: only calls of compiled modules that a server offers can be "
                "detached"
            )
        return of_module.detach_on(self, args, kwargs)

    def attach(self, call_id: str, /) -> Call[Any]:
        """The detached call with this id, at a server of this grid.

        The call can be used as any other. Its result has all results of the function, including
        arrays that the function changes in place. `cancel` cancels the detached call; closing the
        grid does not. Raises LookupError if the server keeps no such call of this user,
        ServerNotFound if the grid does not have its server, ConnectionError, and ValueError.
        """
        self._check_process()
        return self._native.attach(self, self._modules, call_id)

    def detached_calls(self) -> list[DetachedCall]:
        """The detached calls of this user at the servers of this grid, the oldest first."""
        from gridrpc._detached import DetachedCall

        self._check_process()
        return [DetachedCall(*call) for call in self._native.detached_calls()]

    def _submit_unusual(
        self,
        fn: str | Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: CallOptions,
        ranks: int,
    ) -> Call[Any]:
        """Calls of module functions, on ranks, and of partial functions."""
        self._check_process()
        checked_ranks(ranks)
        if type(fn) is functools.partial and _is_plain(fn):
            # Its arguments travel as those of the call: arrays beside the pickle.
            args, kwargs = (*fn.args, *args), {**fn.keywords, **kwargs}
            fn = fn.func
        of_module = self._of_module(fn)
        if of_module is not None:
            check_idempotent(of_module, options.idempotent)
            return of_module.submit_on(self, args, kwargs, options, ranks=ranks)
        if ranks:
            fn, options = (
                self._on_ranks(fn, ranks, options.cores),
                options.with_cores(ranks * options.cores),
            )
        if self._has_servers and _tracing.is_used():
            return _tracing.submitted(
                fn, options, lambda options: self._native.submit(self, fn, args, kwargs, options)
            )
        return self._native.submit(self, fn, args, kwargs, options)

    def _find(self, fn: str | Callable[..., Any]) -> _native.Function:
        """The function that workers know for a callable. Raises GridClosed in a forked process."""
        self._check_process()
        return self._functions.find(fn)

    def _options(  # noqa: PLR0917 (options in one order)
        self,
        deadline: float | None,
        idempotent: bool,
        priority: int,
        server: str | None,
        cores: int,
        memory: int | str | None,
        resources: Mapping[str, int] | None,
        expected: float | None,
    ) -> CallOptions:
        """Options of calls, checked. Raises ServerNotFound and ValueError."""
        self._check_process()
        bound = self._server(server)
        return call_options(
            deadline, idempotent, priority, bound, cores, memory, resources, expected
        )

    def _on_ranks(self, fn: str | Callable[..., T], ranks: int, threads: int) -> Callable[..., T]:
        """The Python function, as it is called on ranks of MPI."""
        from gridrpc._ranks import OnRanks

        return OnRanks(fn, ranks, threads, self.config.mpirun)

    def _server(self, name: str | None) -> int | None:
        """The number of a server. Raises ServerNotFound."""
        return None if name is None else self._native.server(name)

    def _pickled(self, arguments: object) -> Collected:
        if not self._refers:
            try:
                return Collected(*dumps(arguments), [], [])
            except NotAnArgument:
                self._refers = True
        return dumps_collecting(arguments, self._native, calls=True)

    def _of_module(self, fn: object) -> ModuleFunction | None:
        """The function of a compiled module that is meant; None: it is Python's."""
        if isinstance(fn, ModuleFunction):
            return fn
        if self._names_are_python:
            return None
        if isinstance(fn, str):
            return self.function(fn)
        self._functions.check_python(fn)
        return None

    def function(
        self,
        name: str,
        *,
        server: str | None = None,
        cores: int = 1,
        memory: int | str | None = None,
        resources: Mapping[str, int] | None = None,
        expected: float | None = None,
        ranks: int = 0,
    ) -> ModuleFunction:
        """The function of a compiled module, "module/function", as a callable.

        `help` shows its arguments. A bare name is looked for in all modules, those of this machine
        first and then those that the servers of the grid offer. `server`: the server
        that has to run its calls, as in `submit`; `cores`, `memory`, `resources`, `expected`: the
        needs of each call, as in `submit`. `ranks`: number of ranks of MPI that run each call of a
        function that is declared with `Backend "MPI"`; one by default. Raises FunctionNotFound,
        ServerNotFound, ValueError for a malformed name, and TypeError for ranks of a function that
        runs in one process.
        """
        self._check_open()
        options = self._options(None, False, 0, server, cores, memory, resources, expected)
        checked_ranks(ranks)
        known = self._targets.get((name, options, ranks))
        if known is None or known.has_changed:
            if self._directory is not None:
                from gridrpc._directory_function import function_of

                known = function_of(self._directory, self, name, options=options, ranks=ranks)
            else:
                known = ModuleFunction(self, name, options=options, ranks=ranks, server=server)
            self._targets[name, options, ranks] = known
        return known

    def object(
        self,
        cls: str | type,
        /,
        *args: Any,
        start_timeout: float | None = None,
        server: str | None = None,
        **kwargs: Any,
    ) -> RemoteObject:
        """A new remote object of a class of a module, "module/Class", or of a Python class.

        The object has a worker process of its own, which keeps its state; its methods are called
        like functions, and run one after the other. `args`, `kwargs`: for the constructor of a
        Python class, of this program or of a server. Use the object as a context manager, or call
        `close`. `start_timeout`: seconds within which its worker has to answer. `server`: the
        server or host where it has to live, as in `submit`. Raises FunctionNotFound,
        ServerNotFound, TimeoutError, ObjectLost, and any error of the constructor.
        """
        self._check_open()
        if self._directory is not None and isinstance(cls, str):
            from gridrpc._directory_function import object_of

            self._server(server)
            return object_of(self._directory, self, cls, args, kwargs, start_timeout)
        if isinstance(cls, str):
            offering = self._native.python_server(cls, server)
            if offering is not None:
                from gridrpc._objects import ServedObject

                return ServedObject(self, cls, args, kwargs, start_timeout, server=offering)
            if args or kwargs:
                raise TypeError(f"objects of {cls} take no arguments: call a method of it")
            return ModuleObject(self, cls, start_timeout, server)
        if not isinstance(cls, type):
            raise TypeError(f"give a class, or the name of one in a module, not {cls!r}")
        from gridrpc._objects import PythonObject

        return PythonObject(self, cls, args, kwargs, start_timeout, server=server)

    def map(
        self,
        fn: str | Callable[..., T],
        /,
        *iterables: Iterable[Any],
        chunk: int | Literal["auto"] = "auto",
        ordered: bool = True,
        deadline: float | None = None,
        idempotent: bool = False,
        priority: int = 0,
        server: str | None = None,
        cores: int = 1,
        memory: int | str | None = None,
        resources: Mapping[str, int] | None = None,
        expected: float | None = None,
        ranks: int = 0,
        timeout: float | None = None,
        retries: int = 0,
        retry_on: Errors = Exception,
        backoff: float = 0.0,
        return_exceptions: bool = False,
        rng: Rng = None,
        speculate: bool = False,
        progress: bool | str = False,
        journal: Journal | str | os.PathLike[str] | None = None,
    ) -> Results[T]:
        """The results of `fn` for the items of `iterables`, as the built-in `map` gives them.

        Items are taken only when they are needed, so there may be any number of them: the calls
        under way, and the results not yet taken, are bounded in number and bytes. `chunk`: number
        of items in one call; "auto": as many as keep its overhead small, and one if there is a
        `deadline`, calls are `idempotent`, or each has a new process (`max_tasks_per_child=1`).
        `ordered=False` gives each result as soon as it is
        there. An error is raised in place of its result: WorkerLost, in place of the item
        that its worker ran.

        `deadline`: seconds that each call may take. `priority`: of the calls that wait for a
        worker, as in `submit`. `server`: the server that has to run the calls, as in `submit`.
        `cores`, `memory`, `resources`, `expected`, `ranks`: the needs of each call, as in `submit`;
        each call then takes one item. `timeout`: seconds from now after which TimeoutError is
        raised if the next result is not there. `retries`, `retry_on`, `backoff`: as in `retrying`.
        `return_exceptions`: an error takes the place of its result.
        `rng`: a seed, or True for the next one that follows from the grid's `seed`, or else from
        one of the system: the function gets a NumPy generator of its own for each item, as the
        keyword argument `rng`. The generators follow from the seed and the numbers of the items, on
        any number of workers, in chunks and with retries: with `rng=7`, item i gets
        `numpy.random.default_rng(7).spawn(n)[i]`. A generator or SeedSequence is a seed too, and
        gives the next map other numbers.
        `speculate`: near the end, when workers are free, run the calls a second time that take much
        longer than others; the first result counts, and `Results.speculated` says which ran twice.
        They have to be `idempotent`, and each takes one item.
        `progress`: show a progress bar, with this name if it is a string; this needs the package
        `tqdm`.

        `journal`: a file that keeps results as they come. When the program is run again after an
        interruption, it takes these results from the file and computes the others. Items that were
        under way run again if they are `idempotent`; otherwise OutcomeUnknown takes their place.
        Raises JournalError if the function or an item has changed, or the file cannot be used.

        In a grid with `output="captured"`, `stdout` and `stderr` of what is returned are the output
        of the call whose result was taken last.
        """
        if not iterables:
            raise TypeError("map() needs at least one iterable")
        options = self._options(
            deadline, idempotent, priority, server, cores, memory, resources, expected
        )
        if self._has_servers and _tracing.is_used():
            options = _tracing.in_current_span(options)
        return mapped(
            self,
            fn,
            columns(iterables),
            MapOptions(False, options, itself if return_exceptions else None, checked_ranks(ranks)),
            chunk=chunk,
            ordered=ordered,
            timeout=timeout,
            retries=Retries(retries, retry_on, backoff),
            speculate=speculate,
            progress=progress,
            journal=journal,
            rng=rng,
        )

    def starmap(
        self,
        fn: str | Callable[..., T],
        items: Iterable[Sequence[Any] | Mapping[str, Any]],
        /,
        *,
        chunk: int | Literal["auto"] = "auto",
        ordered: bool = True,
        deadline: float | None = None,
        idempotent: bool = False,
        priority: int = 0,
        server: str | None = None,
        cores: int = 1,
        memory: int | str | None = None,
        resources: Mapping[str, int] | None = None,
        expected: float | None = None,
        ranks: int = 0,
        timeout: float | None = None,
        retries: int = 0,
        retry_on: Errors = Exception,
        backoff: float = 0.0,
        return_exceptions: bool = False,
        rng: Rng = None,
        speculate: bool = False,
        progress: bool | str = False,
        journal: Journal | str | os.PathLike[str] | None = None,
    ) -> Results[T]:
        """The results of `fn` for items each of which holds the arguments of one call.

        A sequence holds positional arguments, and a mapping holds keyword arguments: `fn(*item)` or
        `fn(**item)`. The options are those of `map`. Raises TypeError for an item that is neither.
        """
        return mapped(
            self,
            fn,
            rows(items),
            MapOptions(
                False,
                self._options(
                    deadline, idempotent, priority, server, cores, memory, resources, expected
                ),
                itself if return_exceptions else None,
                checked_ranks(ranks),
            ),
            chunk=chunk,
            ordered=ordered,
            timeout=timeout,
            retries=Retries(retries, retry_on, backoff),
            speculate=speculate,
            progress=progress,
            journal=journal,
            rng=rng,
        )

    def rng(self) -> Generator:
        """A new NumPy generator from the `seed` of the grid, other than those before.

        Generators are the same in each run of a program that requests them in the same order, by
        this method and by `map` with `rng=True`. Without a `seed`, the system draws one. For an
        argument of a call: `grid.submit(f, rng=grid.rng())`.
        """
        return self._all_seeds().generator()

    def _all_seeds(self) -> Seeds:
        if self._seeds is None:
            from gridrpc._seeds import Seeds

            self._seeds = Seeds(None)
        return self._seeds

    def sweep(
        self,
        fn: str | Callable[..., Any],
        table: Any,
        /,
        *,
        columns: Iterable[str] | None = None,
        constants: Mapping[str, Any] = MappingProxyType({}),
        output: str | os.PathLike[str] | None = None,
        resume: bool | str | os.PathLike[str] | Journal = False,
        progress: bool | str = False,
        **options: Unpack[SweepOptions],
    ) -> Any:
        """Call `fn` for each row of a table, and return the table with the outcome of each row.

        `table`: a DataFrame of pandas or polars, an Arrow table, a list of dicts, or the path of a
        CSV or Parquet file. What is returned is of the same kind; it is a list of dicts for a CSV
        file, and an Arrow table for a Parquet file. `fn` gets the values of a row as keyword
        arguments: of all columns, or of those in `columns`. `constants`: further arguments, the
        same for all rows.

        New columns, in the order of the rows: the results, one column for each name in a dict, a
        named tuple, a dataclass or the interface of a compiled function, whose arrays of one
        element become numbers, or else `result`; `status`, which is "ok", "failed", "unknown"
        or "not run"; `error`, the type and message of an error; and `seconds`, the time that `fn`
        ran, as far as it is known. A row that fails does not stop the others.

        `output`: the path of a CSV or Parquet file, which gets the same table at the end. `resume`:
        the path of a journal, as in `map`, or True for that of `output` with ".journal" behind it:
        a later run takes the results from there and runs only what is missing, or has failed.
        `progress` and `options`: as in `map`.

        Raises TypeError and ValueError if columns and arguments do not match, before anything runs;
        SweepInterrupted at Ctrl-C, with the table of what is there; and what `map` raises.
        """
        from gridrpc._sweep import sweep

        return sweep(
            self,
            fn,
            table,
            columns=columns,
            constants=constants,
            output=output,
            resume=resume,
            progress=progress,
            **options,
        )

    def share(
        self,
        x: Any,
        *,
        name: str | None = None,
        keep: float | None = None,
        readers: str | Iterable[str] = (),
    ) -> Shared:
        """Share data for many calls: memory holds it once on each machine, and calls refer to it.

        Pass the returned reference as an argument: the function gets the data itself, arrays as
        read-only views. `Shared.replace` puts a new version in its place. Raises MemoryError, and
        any error of pickling the data. A grid with a directory shares arrays and bytes: a server
        gets them with the first call that goes there, and removes what has no `name` when the grid
        is closed.

        `name`: the server of this grid stores the data, an array of numbers or bytes, under this
        name. `shared` refers to it in later programs. Data of this user with the same name is
        replaced; calls that have begun keep the old data. `keep`: seconds for which it is kept, by
        default as long as results of detached calls. `readers`: other users who may use it: names
        of users, groups such as "@quants", or "all". Raises TypeError if the data is anything else,
        or the grid has other workers than those of one server; ValueError for a malformed name;
        LimitReached; ConnectionError; RemoteError if the server cannot store it.
        """
        self._check_open()
        if self._directory is not None:
            return self._directory.share(x, name, keep, readers)
        if name is not None:
            return self._named_data().share(x, name, keep, readers)
        if keep is not None or readers:
            raise TypeError("`keep` and `readers` are for data with a `name`")
        self._refers = True
        return share(self._native, x, self._functions.forget)

    def shared(self, name: str, /) -> Shared:
        """Data that the server of this grid keeps under a name, "name" or "owner/name".

        Nothing is sent. A grid with a directory asks all servers, and sends calls that need the
        data to those that have it. Raises LookupError if there is no such data that this user may
        use, ValueError if servers have different data of this name, and what `share` raises.
        """
        if self._directory is not None:
            self._check_open()
            return self._directory.find_shared(name)
        return self._named_data().find(name)

    def unshare(self, name: str, /) -> None:
        """Remove data that this user shared under a name. Calls that have begun keep it.

        Raises LookupError if there is none, and what `share` raises.
        """
        self._named_data().remove(name)

    def shared_names(self) -> list[SharedName]:
        """The data that the server of this grid keeps under names and this user may use."""
        return self._named_data().names()

    def _named_data(self) -> NamedData:
        self._check_open()
        if not self._keeps_data:
            raise TypeError(
                "only a server keeps shared data under a name: open a grid with one server that "
                "many clients share, and no workers of its own"
            )
        from gridrpc._named_data import NamedData

        self._refers = True
        return NamedData(self._native)

    def reload(self, *modules: ModuleType | str) -> None:
        """Load modules again, here and in the workers, after their files have been edited.

        Give a module, or its name; those that others import from go first. This program reloads
        them as `importlib.reload` does. Workers, here and on hosts, do so before the next function
        that they are sent. Calls that have been submitted may run the old code. Raises what a
        module raises, ImportError, TypeError, ValueError for the main program, and GridClosed.
        """
        self._check_open()
        if not self._runs_python or self._directory is not None:
            raise TypeError("`reload` is for Python workers of this grid: this one has none")
        import importlib

        for module in modules:
            name = module if isinstance(module, str) else getattr(module, "__name__", None)
            if not isinstance(name, str):
                raise TypeError(f"{module!r} is no module: give one, or its name")
            if name in MAIN:
                raise ValueError(
                    "functions of the main program are sent as they are: define them "
                    "again, and submit them"
                )
            importlib.invalidate_caches()
            if name in sys.modules:
                importlib.reload(sys.modules[name])
            else:
                importlib.import_module(name)
            self._functions.reload(name)

    @property
    def workers(self) -> int:
        """Number of workers of the grid, started or not; those of a host count once it has joined.

        A server whose hosts come and go counts with the most workers that it can have.
        """
        return self._native.workers()

    #: As schedulers of Dask, to which a grid is a pool, ask for it.
    _max_workers = workers

    def hosts(self) -> list[HostState]:
        """The states of the hosts of all servers; with a directory, of those in use."""
        return [HostState(*reported) for reported in self._native.hosts()]

    def stats(self) -> GridStats:
        """Counts since the grid was opened, and its present state.

        For a closed grid, the counts and the state when it was closed. `gridrpc top` shows the same
        from outside the program.
        """
        from gridrpc._stats import GridStats

        self._check_process()
        return GridStats.parsed(self._native.stats())

    def wait_until_ready(self, timeout: float | None = None) -> None:
        """Wait until all workers have answered.

        Raises TimeoutError, StartError if a worker cannot be started and is given up, GridClosed.
        """
        self._check_process()
        ready = self._native.wait_until_ready(timeout)
        if not ready:
            count, _, _ = self._native.counts()
            text = f"{count} of {self.workers} workers have answered within {timeout} s"
            raise TimeoutError("\n  ".join([text, *self._native.absent_hosts()]))

    def cancel_all(self) -> int:
        """Cancel all calls of this grid that have not ended, those of maps included.

        Returns their number. The grid stays open, and detached calls continue. A `map` that is
        under way raises CallCancelled.
        """
        self._check_process()
        return self._native.cancel_all()

    def close(self, *, cancel: bool = True) -> None:
        """End the workers, and wait until they are gone. A second call does nothing.

        `cancel`: cancel calls that have not ended; otherwise wait for them first.
        """
        if self._closed:
            return
        if not cancel:
            self._drain()
        self._closed = True
        _open.discard(self)
        self._native.close()
        self._dispatcher.stop()
        if self._initializer is not None:
            self._initializer.close()
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

    async def __aenter__(self) -> Grid:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.close, cancel=kind is not None)

    def _repr_html_(self) -> str | None:
        # For notebooks.
        if not hasattr(self, "_closed") or self._forked or self._directory is not None:
            return None
        from gridrpc._notebook import grid_html

        return grid_html(self)

    def __repr__(self) -> str:
        if not hasattr(self, "_closed"):
            return "<gridrpc.Grid, not opened>"
        if self._closed:
            return f"<gridrpc.Grid: {self.workers} {self.config.worker} workers, closed>"
        ready, queued, live = self._native.counts()
        return (
            f"<gridrpc.Grid: {ready} of {self.workers} {self.config.worker} workers ready, "
            f"{live} calls alive, {queued} of them queued>"
        )


def _tell(what: str, grid: Grid) -> None:
    # Nobody listens in a program that has not loaded `logging`, which takes 4 ms.
    if "logging" in sys.modules:
        from gridrpc._log import logger

        logger.info("%s %r", what, grid)


def _initializer(
    config: Config, function: Callable[..., object], args: tuple[Any, ...]
) -> Initializer:
    if config.worker == "native":
        raise ConfigError(
            "`initializer` is for Python workers: leave it out, or give worker='python'"
        )
    from gridrpc._initializer import Initializer

    return Initializer(function, args)


def _is_plain(fn: functools.partial[Any]) -> bool:
    """Whether a partial is no more than a function and arguments that come before others."""
    placeholder = getattr(functools, "Placeholder", None)  # of Python 3.14
    gaps = placeholder is not None and any(value is placeholder for value in fn.args)
    return not gaps and not vars(fn)


def _places(modules: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Files and folders that are there, as texts."""
    places = _texts(modules)
    for place in places:
        if not os.path.exists(place):
            raise ConfigError(f"`modules` names `{place}`, which is not there")
    return places


def _modules(preload: Iterable[str | os.PathLike[str]]) -> object:
    """Names as they are, and files as texts; what is no list the configuration refuses."""
    if isinstance(preload, str):
        return preload
    return [os.fspath(one) if isinstance(one, os.PathLike) else one for one in preload]


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
