"""Functions and classes of compiled modules, as Python callables and objects."""

from __future__ import annotations

import functools
import inspect
import keyword
import math
import operator
import os
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any, Literal

from gridrpc import _native, _tracing
from gridrpc._grain import MOST_BYTES, Costs, Grain
from gridrpc._options import DEFAULT

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import numpy as np

    from gridrpc._grid import Grid
    from gridrpc._native import Call, CallOptions

#: Methods that run at the start and at the end of an object.
INITIALIZE, FINALIZE = "_initialize", "_finalize"

#: Seconds that an object's `_finalize` may take when it is closed.
FINALIZE_TIME = 10.0


class ModuleFunction:
    """A function of a compiled module, from `Grid.function`.

    Call it with arguments by position or by name, as its interface lists them. Lengths that are
    dimensions of arrays may be left out. Arrays are contiguous NumPy arrays of the right type;
    INOUT arrays are changed in place. One result is returned as itself, several as a named tuple.
    `out=`: an array, or several, for the results, in place of new arrays. If an argument does
    not fit, ArgumentError is raised before anything is sent.
    """

    #: Whether it says which arguments it takes, and whether its calls may run again.
    has_interface = True

    def __init__(
        self,
        grid: Grid,
        name: str,
        on: _native.Reserved | None = None,
        *,
        options: CallOptions = DEFAULT,
        ranks: int = 0,
        server: str | None = None,
    ) -> None:
        self._target = grid._native.target(grid._modules, name, server)
        self._grid = grid
        self._on = on
        self._options = options
        self._ranks = ranks
        self._check_ranks(ranks)
        #: What maps have learned of it.
        self.costs: Costs = Costs()
        self.__name__ = self._target.name.rpartition("/")[2]
        self.__qualname__ = self._target.name

    @property
    def name(self) -> str:
        """`module/function`."""
        return self._target.name

    @property
    def path(self) -> str:
        """The file of its module; empty if a server offers it."""
        return dict(self._grid._modules.all()).get(self.name.partition("/")[0], "")

    @property
    def interface(self) -> str:
        """Its interface, as JSON."""
        return self._target.description

    @property
    def has_changed(self) -> bool:
        """Whether its server has refused a call because the interface has changed."""
        return self._target.has_changed

    @property
    def returned(self) -> list[str]:
        """Names of its results, in order."""
        return self._target.returned

    @property
    def is_idempotent(self) -> bool:
        """Whether a call may be run again if its worker is lost, as its interface says."""
        return self._target.idempotent

    @functools.cached_property
    def description(self) -> dict[str, Any]:
        """Its interface: parameters with modes, types and dimensions."""
        import json  # for this only

        described: dict[str, Any] = json.loads(self._target.description)
        return described

    @functools.cached_property
    def _input_files(self) -> frozenset[str]:
        """Names of the parameters that are files whose contents are only read."""
        of = self.description["parameters"]
        return frozenset(
            one["name"] for one in of if one.get("type") == "filename" and one["mode"] == "in"
        )

    @property
    def reads_files(self) -> bool:
        """Whether it has such parameters. Its calls go one by one then."""
        return bool(self._input_files)

    def files_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Any]:
        """The paths of files among its arguments whose contents are only read. Arguments that do
        not fit have none."""
        passed = self._target.passed
        needed = [name for name, may_be_left_out in passed if not may_be_left_out]
        names = needed if len(args) <= len(needed) else [name for name, _ in passed]
        for name, value in chain(zip(names, args), kwargs.items()):  # noqa: B905 - may not fit
            if name in self._input_files:
                for path in value if isinstance(value, (list, tuple)) else (value,):
                    if isinstance(path, (str, bytes, os.PathLike)):
                        yield path

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        by_name = inspect.Parameter.KEYWORD_ONLY
        passed = self._target.passed
        # A length that may be left out cannot stand before one that may not.
        parameters = [
            inspect.Parameter(name, kind) for name, may_be_left_out in passed if not may_be_left_out
        ]
        parameters += [
            inspect.Parameter(name, by_name, default=None)
            for name, may_be_left_out in passed
            if may_be_left_out
        ]
        if self.returned:
            parameters.append(inspect.Parameter("out", by_name, default=None))
        return inspect.Signature(parameters)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return describe(self.description, self.returned)

    def __call__(
        self, /, *args: Any, out: Any = None, deadline: float | None = None, **kw: Any
    ) -> Any:
        grid = self._grid
        options = DEFAULT if deadline is None else _native.CallOptions(deadline=deadline)
        if self._target.parallel:
            return self._submit(grid, args, kw, out, options).result()
        grid._check_process()
        options = self._options if options is DEFAULT else options.over(self._options)
        native = grid._native
        if grid._has_servers and _tracing.is_used():
            return _tracing.called(
                self.name,
                options,
                lambda options: native.call_target(
                    grid, self._target, args, kw or None, out, options, self._on
                ),
            )
        return native.call_target(grid, self._target, args, kw or None, out, options, self._on)

    def submit(
        self, /, *args: Any, out: Any = None, deadline: float | None = None, **kwargs: Any
    ) -> Call[Any]:
        """Call the function, and return the `Call` without waiting for it.

        Do not change arrays until the call has ended. Arrays that the function changes in place
        have their new values when `result` has returned.
        """
        options = DEFAULT if deadline is None else _native.CallOptions(deadline=deadline)
        return self._submit(self._grid, args, kwargs, out, options)

    def detach(self, /, *args: Any, **kwargs: Any) -> str:
        """Have the function's server run the call even if this program ends, and return its id.

        See `Grid.detach`.
        """
        return self.detach_on(self._grid, args, kwargs)

    def detach_on(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """What `Grid.detach` does with it."""
        self._check_grid(grid)
        if self._on is not None:
            raise TypeError(
                f"{self.name} is a method, and its object ends with this program: only calls of "
                "functions can be detached"
            )
        grid._check_process()
        # A server keeps detached calls in its own byte order.
        args = tuple(map(_in_native_order, args))
        kwargs = {name: _in_native_order(value) for name, value in kwargs.items()}
        return grid._native.detach_target(
            self._target, args, kwargs or None, self._options, self._ranks or 1, grid.config.mpirun
        )

    def submit_on(
        self,
        grid: Grid,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: CallOptions,
        *,
        ranks: int = 0,
        has_span: bool = True,
    ) -> Call[Any]:
        """What `Grid.submit` and `Grid.map` do with it. `has_span`: the call has its own span."""
        self._check_grid(grid)
        self._check_ranks(ranks)
        out = kwargs.pop("out", None)
        return self._submit(grid, args, kwargs, out, options, ranks=ranks, has_span=has_span)

    def submit_many_on(
        self,
        grid: Grid,
        items: list[Any],
        single: bool,
        grain: Grain,
        options: CallOptions,
    ) -> tuple[Call[Any], int] | None:
        """One call for the first items, and how many those are; None: the first one goes alone."""
        self._check_grid(grid)
        # Results are to fit where they outlive a worker.
        limit, budget = grain.limit(), min(grain.budget(), MOST_BYTES)
        options = options.over(self._options)
        return grid._native.submit_chunk(
            grid, self._target, items, single, limit, budget, options, self._on
        )

    def _check_ranks(self, ranks: int) -> None:
        if ranks and not self._target.parallel:
            raise TypeError(
                f"{self.name} runs in one process: leave out `ranks`, or declare it with "
                '`Backend "MPI"` in its interface'
            )

    def _check_grid(self, grid: Grid) -> None:
        if grid is not self._grid:
            raise ValueError(f"{self.name} was found by another grid: find it with this one")

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
        grid._check_process()

        def submit(options: CallOptions) -> Call[Any]:
            return grid._native.submit_target(
                grid,
                self._target,
                args,
                kwargs or None,
                out,
                options,
                self._on,
                ranks or self._ranks or 1,
                grid.config.mpirun,
            )

        options = options.over(self._options)
        if has_span and grid._has_servers and _tracing.is_used():
            return _tracing.submitted(self.name, options, submit)
        return submit(options)

    def __repr__(self) -> str:
        return f"<gridrpc function {self.name}{self.__signature__}>"


def describe(description: dict[str, Any], returned: list[str]) -> str:
    """The help text of a function."""
    lines = [(description["description"] or "").strip(), "", description["signature"], ""]
    for parameter in description["parameters"]:
        sizes = "".join(f"[{size}]" for size in parameter.get("dimensions", []))
        kind = "callback" if "callback" in parameter else f"{parameter['type']}{sizes}"
        lines.append(f"  {parameter['name']}: {parameter['mode']} {kind}")
    if returned:
        lines += ["", f"Returns {', '.join(returned)}."]
    if description["idempotent"]:
        lines += ["", "Idempotent: it is run again if its worker is lost."]
    return "\n".join(lines).strip()


@functools.cache
def _result_type(function: str, names: tuple[str, ...]) -> Callable[..., Any]:
    name = function.rpartition("/")[2].replace(".", "_") + "_result"
    name = name if name.isidentifier() and not keyword.iskeyword(name) else "result"
    return namedtuple(name, names, rename=True)


def named_results(function: str, names: list[str], values: list[Any]) -> Any:
    """Several results of a function as a tuple that names them."""
    return _result_type(function, tuple(names))(*values)


def many_named_results(function: str, names: list[str], columns: list[list[Any]]) -> list[Any]:
    """The same for many items, from lists with what each item has of one name."""
    return [*starmap(_result_type(function, tuple(names)), zip(*columns, strict=True))]


class RemoteObject:
    """An object in a worker of its own, from `Grid.object`: its methods are attributes."""

    _grid: Grid
    _name: str
    _on: _native.Reserved
    _closed: bool
    #: Is called once the object has ended.
    when_released: Callable[[], object] | None = None

    def _reserve(
        self,
        grid: Grid,
        name: str,
        server: str | None,
        *,
        python: bool = False,
        offered: bool = False,
    ) -> None:
        self._grid = grid
        self._name = name
        self._on = grid._native.reserve(grid._server(server), python, offered)
        self._closed = False

    def _wait_for_worker(self, start_timeout: float | None) -> None:
        if start_timeout is not None:
            standing, loss = self._grid._native.standing(self._on, start_timeout, self._name)
            if standing == "starting":
                raise TimeoutError(
                    f"the worker of {self._name} takes longer than {start_timeout} s"
                )
            if loss is not None:
                raise loss

    def close(self) -> None:
        """End the object and its worker.

        Before, the worker runs the method `_finalize` of a module's class, or `close` of a Python
        class. Calls of the object that have not ended are cancelled. A second call does nothing.
        """
        if self._closed:
            return
        try:
            standing, _ = self._grid._native.standing(self._on, 0.0, self._name)
            if standing == "ready" and not self._grid._closed:
                self._finalize()
        finally:
            self._release()

    def __getattr__(self, name: str) -> Any:
        """The method of that name. Raises AttributeError."""
        raise NotImplementedError

    def _finalize(self) -> None:
        """Run what the object has for its end."""
        raise NotImplementedError

    def _release(self) -> None:
        self._closed = True
        self._grid._native.release(self._on)
        if self.when_released is not None:
            self.when_released()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not self.__dict__.get("_closed", True) and not self._grid._forked:
            self._release()

    def __repr__(self) -> str:
        standing = (
            "closed" if self._closed else self._grid._native.standing(self._on, 0.0, self._name)[0]
        )
        return f"<gridrpc object {self._name}: {standing}>"


class ModuleObject(RemoteObject):
    """An object of a class of a compiled module."""

    def __init__(
        self, grid: Grid, name: str, start_timeout: float | None, server: str | None
    ) -> None:
        methods, offering = grid._native.methods(grid._modules, name, server)
        self._reserve(grid, name, offering or server, offered=offering is not None)
        self._methods = {
            method: ModuleFunction(grid, f"{name}.{method}", self._on, server=offering or server)
            for method in methods
        }
        try:
            self._wait_for_worker(start_timeout)
            if INITIALIZE in self._methods:
                self._methods[INITIALIZE]()
        except BaseException:
            self._release()
            raise

    def __getattr__(self, name: str) -> ModuleFunction:
        methods = self.__dict__.get("_methods", {})
        if name in methods:
            method: ModuleFunction = methods[name]
            return method
        known = ", ".join(sorted(methods))
        raise AttributeError(f"{self.__dict__.get('_name')} has no method `{name}`; it has {known}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._methods})

    def _finalize(self) -> None:
        if FINALIZE in self._methods:
            self._methods[FINALIZE](deadline=FINALIZE_TIME)


def _in_native_order(value: Any) -> Any:
    """The argument, or a copy of an array of the other byte order."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or getattr(dtype, "isnative", True):
        return value
    return value.astype(dtype.newbyteorder("="), order="K")


def empty(
    shape: int | tuple[int, ...], dtype: Any = float, order: Literal["C", "F"] = "C"
) -> np.ndarray[Any, Any]:
    """A new array in shared memory, which calls do not copy.

    As with `numpy.empty`, its elements are arbitrary. Workers see the array itself, not a copy: the
    caller sees what a module function changes in it, and the function sees what the caller changes
    while the call runs. Python functions get a read-only view of it. Nor is such an array copied
    when a function that runs in a worker returns it, unless the function keeps it.
    """
    import numpy as np

    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"arrays of {kind} cannot lie in shared memory")
    if order not in {"C", "F"}:
        raise ValueError(f"order is {order!r}: give 'C' or 'F'")
    # NumPy's integers are none of Python's.
    whole = shape if isinstance(shape, (tuple, list)) else (shape,)
    shape = tuple(operator.index(length) for length in whole)
    if any(length < 0 for length in shape):
        raise ValueError("negative dimensions are not allowed")
    count = math.prod(shape)
    memory = _native.shared_memory(count * kind.itemsize)
    return np.ndarray(shape, kind, memoryview(memory), order=order)


def empty_like(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`empty` with the shape, type and order of another array."""
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return empty(array.shape, array.dtype, "F" if fortran else "C")
