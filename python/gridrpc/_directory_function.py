"""Functions and objects that a directory finds: a server for each call, and for each object."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

from gridrpc import _native
from gridrpc._directory import Directory, Prediction
from gridrpc._directory_call import REFUSALS, DirectoryCall, options_with
from gridrpc._directory_choice import UNUSABLE, Choice, Chooser, Work, item_arguments
from gridrpc._directory_shared import DirectoryArguments
from gridrpc._grain import Costs
from gridrpc._modules import ModuleFunction, RemoteObject
from gridrpc.errors import NotTrusted, StartError

if TYPE_CHECKING:
    from gridrpc._grain import Grain
    from gridrpc._grid import Grid
    from gridrpc._native import Call, CallOptions


def function_of(
    directory: Directory, grid: Grid, name: str, *, options: CallOptions, ranks: int
) -> PlacedFunction:
    """What `Grid.function` returns."""
    offers = directory.answer(name).offers
    if any(one.signature is not None for one in offers):
        return DirectoryFunction(directory, grid, name, options=options, ranks=ranks)
    if ranks:
        raise TypeError(f"{name} is in Python: its calls have no `ranks`")
    return DirectoryPythonFunction(directory, grid, name, options)


class PlacedFunction(ModuleFunction):
    """A function with a server for each call."""

    _chooser: Chooser

    def _work(self, arguments: DirectoryArguments) -> Work:
        """What a call needs."""
        raise NotImplementedError

    def predictions(self, /, *args: Any, **kwargs: Any) -> list[Prediction]:
        """The predicted time of a call with these arguments on each server."""
        work = self._work(DirectoryArguments(args, kwargs))
        return [one.prediction for one in self._chooser.predicted(work)]

    @property
    def has_changed(self) -> bool:
        return False

    def __call__(
        self, /, *args: Any, out: Any = None, deadline: float | None = None, **kw: Any
    ) -> Any:
        return self._submit(self._grid, args, kw, out, options_with(deadline)).result()


class DirectoryFunction(PlacedFunction):
    """A function of a compiled module, with a server for each call, from `Grid.function`."""

    def __init__(
        self, directory: Directory, grid: Grid, name: str, *, options: CallOptions, ranks: int
    ) -> None:
        self._directory = directory
        first = self._first(name, options, ranks)
        self._target = first._target
        self._native = first._grid._native
        #: Calls keep to this interface, whatever other servers have.
        self.signature: str = first.description["signature"]
        self._chooser = Chooser(directory, first.name, self.signature)
        self._grid = grid
        self._on = None
        self._options = options
        self._ranks = ranks
        self.costs = first.costs
        self.__name__, self.__qualname__ = first.__name__, first.__qualname__
        self._warn_of_others()

    def _first(self, name: str, options: CallOptions, ranks: int) -> ModuleFunction:
        """The function at one of its servers, which gives the interface."""
        offers = self._directory.answer(name).offers
        usable = [one for one in offers if one.signature is not None and not one.is_silent]
        failure: Exception = StartError(f"all servers that offer {name} are silent")
        for offer in sorted(usable, key=lambda offer: (offer.is_full, offer.load)):
            server = self._directory.server(offer)
            try:
                return server.function(name, options, ranks)
            except UNUSABLE as error:
                server.refuse()
                failure = error
        raise failure

    def _warn_of_others(self) -> None:
        others = {
            offer.address
            for offer in self._directory.answer(self.name).offers
            if offer.signature not in (None, self.signature)
        }
        if others:
            warnings.warn(
                f"{self.name} has another interface at {', '.join(sorted(others))}: calls keep to "
                f"{self.signature}",
                RuntimeWarning,
                stacklevel=5,
            )

    def _work(self, arguments: DirectoryArguments) -> Work:
        """Bytes in, bytes out and operations of a call, and whether `CalcOrder` gives these."""
        size = self._native.call_size(self._target, *arguments.values())
        bytes_in, bytes_out, operations = size
        if operations is None or operations <= 0:
            return Work(arguments, (float(bytes_in), float(bytes_out), 1.0), False)
        return Work(arguments, (float(bytes_in), float(bytes_out), operations), True)

    def _choose(self, work: Work, tried: set[str], failure: Exception | None = None) -> Choice:
        return self._chooser.choose(work, self._connect, tried, failure)

    def _connect(self, choice: Choice) -> bool:
        """Find the function at a server. Returns whether it has the same interface."""
        function = choice.server.function(self.name, self._options, self._ranks)
        choice.function, choice.grid = function, function._grid
        return bool(function.description["signature"] == self.signature)

    def detach_on(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        self._check_grid(grid)
        arguments = DirectoryArguments(args, kwargs)
        choice = self._choose(self._work(arguments), set())
        try:
            args, kwargs = choice.arguments(arguments)
            id_: str = choice.function.detach(*args, **kwargs)
            return id_
        finally:
            choice.release()

    def submit_many_on(
        self, grid: Grid, items: list[Any], single: bool, grain: Grain, options: CallOptions
    ) -> tuple[Call[Any], int] | None:
        self._check_grid(grid)
        work = self._work(DirectoryArguments(*item_arguments(items[0], single)))
        count = len(items)

        def send(choice: Choice, options: CallOptions) -> Call[Any]:
            nonlocal count
            there = [choice.item(one, single) for one in items[:count]]
            function = choice.function
            made = function.submit_many_on(choice.grid, there, single, grain, options)
            if made is None:
                raise _GoesAlone
            call: Call[Any]
            call, count = made
            return call

        try:
            moving = DirectoryCall(
                grid, self.name, functools.partial(self._choose, work), send, options,
                is_idempotent=self.is_idempotent, times=count,
            )  # fmt: skip
        except _GoesAlone:
            return None
        return moving.as_call, count

    def _submit(
        self,
        grid: Grid,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
        options: CallOptions,
        *,
        ranks: int = 0,
        has_span: bool = True,
    ) -> Call[Any]:
        grid._check_open()
        arguments = DirectoryArguments(args, kwargs)
        work = self._work(arguments)

        def send(choice: Choice, options: CallOptions) -> Call[Any]:
            args, kwargs = choice.arguments(arguments)
            call: Call[Any] = choice.function._submit(
                choice.grid, args, kwargs, out, options, ranks=ranks, has_span=has_span
            )
            return call

        return DirectoryCall(
            grid, self.name, functools.partial(self._choose, work), send, options,
            is_idempotent=self.is_idempotent,
        ).as_call  # fmt: skip


class _GoesAlone(Exception):
    """The first item of a chunk cannot go in a chunk."""


class DirectoryPythonFunction(PlacedFunction):
    """A function in Python that servers offer, with a server for each call."""

    has_interface = False

    def __init__(self, directory: Directory, grid: Grid, name: str, options: CallOptions) -> None:
        check_trust(directory, name)
        self._directory, self._grid, self._on = directory, grid, None
        self._chooser = Chooser(directory, name, None)
        self._options = options
        self._ranks = 0
        self.costs = Costs()
        self._name = name
        #: Bytes of results.
        self._returned = _native.Average()
        self.__name__, self.__qualname__ = name.rpartition("/")[2], name

    @property
    def name(self) -> str:
        """`module/function`."""
        return self._name

    @property
    def path(self) -> str:
        """Empty: servers offer it."""
        return ""

    @property
    def is_idempotent(self) -> bool:
        """False: calls say that themselves."""
        return False

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return f"{self._name}: in Python, at the servers of a directory."

    def _check_ranks(self, ranks: int) -> None:
        if ranks:
            raise TypeError(f"{self._name} is in Python at a server: its calls have no `ranks`")

    def _work(self, arguments: DirectoryArguments) -> Work:
        """Arguments count with their bytes, results with those of earlier ones."""
        return Work(arguments, (arguments.nbytes, self._returned.value or 0.0, 1.0), False)

    def detach_on(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        del grid, args, kwargs
        raise TypeError(
            f"{self._name} is in Python: only calls of compiled modules that a server offers can "
            "be detached"
        )

    def submit_many_on(
        self, grid: Grid, items: list[Any], single: bool, grain: Grain, options: CallOptions
    ) -> None:
        """Each item goes alone: servers run no code that would unpack several."""

    def _submit(
        self,
        grid: Grid,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
        options: CallOptions,
        *,
        ranks: int = 0,
        has_span: bool = True,
    ) -> Call[Any]:
        # A call of Python that a server runs has a span of its own in any case.
        del ranks, has_span
        grid._check_open()
        if out is not None:
            kwargs = {**kwargs, "out": out}
        arguments = DirectoryArguments(args, kwargs)
        work = self._work(arguments)
        options = options.over(self._options)

        def send(choice: Choice, options: CallOptions) -> Call[Any]:
            args, kwargs = choice.arguments(arguments)
            return choice.grid._submit_unusual(self._name, args, kwargs, options, 0)

        def choose(tried: set[str], failure: Exception | None) -> Choice:
            return self._chooser.choose(work, None, tried, failure)

        call = DirectoryCall(
            grid, self._name, choose, send, options, is_idempotent=options.idempotent
        ).as_call
        call.add_done_callback(self._learn)
        return call

    def _learn(self, call: Call[Any]) -> None:
        if call.exception() is None:
            self._returned.add(float(call._profile()["bytes_out"]))

    def __repr__(self) -> str:
        return f"<gridrpc function {self._name}, in Python>"


def object_of(  # noqa: PLR0917 (as `Grid.object` has them)
    directory: Directory,
    grid: Grid,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    start_timeout: float | None,
) -> RemoteObject:
    """A new object of a class at the server that is best for it, where it stays."""
    grid._check_open()
    is_python = all(one.signature is None for one in directory.answer(name).offers)
    if is_python:
        check_trust(directory, name)
    chooser = Chooser(directory, name, None, is_any=not is_python)
    arguments = DirectoryArguments(args, kwargs)
    work = Work(arguments, (arguments.nbytes, 0.0, 1.0), False)
    tried, failure = set[str](), None
    while True:
        choice = chooser.choose(work, lambda choice: choice.server.is_connected(), tried, failure)
        try:
            args, kwargs = choice.arguments(arguments)
            made = choice.grid.object(name, *args, start_timeout=start_timeout, **kwargs)
        except (*REFUSALS, OSError) as error:
            # No worker has made it.
            choice.release()
            if isinstance(error, TimeoutError):
                raise
            choice.server.refuse()
            tried.add(choice.server.address)
            failure = error
        except BaseException:
            choice.release()
            raise
        else:
            made.when_released = choice.release
            return made


def check_trust(directory: Directory, name: str) -> None:
    """Raise NotTrusted unless results of servers may be unpickled."""
    if not directory.is_trusted:
        raise NotTrusted(
            f"{name} is in Python, and results of Python functions can run code in this program: "
            "if you trust all servers that the directory lists, add ?trusted=true to its URL"
        )
