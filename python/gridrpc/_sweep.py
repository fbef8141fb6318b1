"""Parameter sweeps: one call for each row of a table, and the table with their outcomes."""

from __future__ import annotations

import dataclasses
import inspect
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from gridrpc import _tables
from gridrpc._journal import Journal
from gridrpc._modules import ModuleFunction
from gridrpc._retries import Errors, Retries
from gridrpc._wrapped import Wrapped, name_of
from gridrpc.errors import OutcomeUnknown, SweepInterrupted

if TYPE_CHECKING:
    from gridrpc._grid import Grid
    from gridrpc._results import Results
    from gridrpc._tables import Columns, Table

#: Columns that say how each row ended.
STATUS, ERROR, SECONDS = "status", "error", "seconds"
#: The column of results that have no names.
RESULT = "result"
OWN = (STATUS, ERROR, SECONDS)
#: Types in an interface of numbers with a fraction, and of arguments that are no real numbers.
REAL = ("float", "double")
NO_NUMBERS = ("string", "filename", "scomplex", "dcomplex")


class SweepOptions(TypedDict, total=False):
    """Options of `Grid.map` that hold for sweeps as well."""

    chunk: int | Literal["auto"]
    deadline: float | None
    idempotent: bool
    priority: int
    server: str | None
    cores: int
    memory: int | str | None
    resources: Mapping[str, int] | None
    expected: float | None
    ranks: int
    retries: int
    retry_on: Errors
    backoff: float
    speculate: bool


class RowFailed(Exception):
    """The function raised an error for a row: the type, the message, and the seconds it took."""


class Timed(Wrapped):
    """Calls a function with the values of a row, by their names, and measures the time."""

    def __init__(
        self, function: str | Callable[..., Any], names: Sequence[str], constants: dict[str, Any]
    ) -> None:
        super().__init__(function)
        self._names = names
        self._constants = constants

    def __call__(self, *values: Any) -> tuple[float, Any]:
        function = self.resolved()
        arguments = dict(zip(self._names, values, strict=True))
        start = time.perf_counter()
        try:
            value = function(**self._constants, **arguments)
        except Exception as error:
            seconds = time.perf_counter() - start
            raise RowFailed(type(error).__name__, _message(error), seconds) from error
        return time.perf_counter() - start, value


def sweep(
    grid: Grid,
    fn: str | Callable[..., Any],
    table: object,
    *,
    columns: Iterable[str] | None,
    constants: Mapping[str, Any],
    output: str | os.PathLike[str] | None,
    resume: bool | str | os.PathLike[str] | Journal,
    progress: bool | str,
    **options: Unpack[SweepOptions],
) -> Any:
    """What `Grid.sweep` returns."""
    path = _checked_output(output, table)
    journal = _journal(resume, path)
    source = _tables.read(table)
    of_module = grid._of_module(fn)
    names = _argument_names(fn if of_module is None else of_module, source, columns, constants)
    # A server runs none but its own code, so nobody measures the time there.
    is_timed = of_module is None and not (
        isinstance(fn, str) and grid._native.python_server(fn) is not None
    )
    arguments = {name: source.columns[name] for name in names}
    if of_module is not None:
        arguments = _as_declared(of_module, arguments, isinstance(table, (str, os.PathLike)))
    results = (_timed_map if is_timed else _plain_map)(
        grid,
        fn,
        arguments,
        constants,
        options,
        ordered=False,
        return_exceptions=True,
        journal=journal,
        progress=progress,
    )
    outcome = _Outcome(source, names, is_timed, _columns_of(of_module))
    try:
        for number, result in results.numbered():
            outcome.take(number, result)
    except BaseException as error:
        results.close()
        if path is not None:
            _tables.write(path, source, outcome.columns())
        text = f"{outcome.taken:,} of {source.size:,} rows have ended"
        if path is not None:
            text += f", and are in {path}"
        if isinstance(error, KeyboardInterrupt):
            raise SweepInterrupted(text, source.extended(outcome.columns())) from None
        with suppress(Exception):  # it may refuse to be changed
            error.add_note(f"gridrpc: sweep: {text}")
        raise
    added = outcome.columns()
    if path is not None:
        _tables.write(path, source, added)
    return source.extended(added)


def _plain_map(
    grid: Grid,
    fn: str | Callable[..., Any],
    columns: Columns,
    constants: Mapping[str, Any],
    options: SweepOptions,
    **how: Any,
) -> Results[Any]:
    rows = [
        {**constants, **dict(zip(columns, values, strict=True))}
        for values in zip(*columns.values(), strict=True)
    ]
    return grid.starmap(fn, rows, **how, **options)


def _as_declared(function: ModuleFunction, columns: Columns, is_file: bool) -> Columns:
    """Numbers as the interface declares them. A column of numbers has other types if single cells
    are empty or no numbers: integers are floats, and those of a CSV file are texts."""

    def fitting(value: Any, is_real: bool) -> Any:
        if is_file and isinstance(value, str):
            number = _tables.number_of(value)
            value = value if number is None else number
        if not is_real and isinstance(value, float) and value.is_integer():
            return int(value)
        return value

    numbers = {
        one["name"]: one["type"] in REAL
        for one in function.description["parameters"]
        if "callback" not in one and not one.get("dimensions") and one["type"] not in NO_NUMBERS
    }
    return {
        name: [fitting(value, numbers[name]) for value in values] if name in numbers else values
        for name, values in columns.items()
    }


def _timed_map(
    grid: Grid,
    fn: str | Callable[..., Any],
    columns: Columns,
    constants: Mapping[str, Any],
    options: SweepOptions,
    **how: Any,
) -> Results[Any]:
    # The wrapper is around all attempts.
    retries = Retries(
        options.pop("retries", 0), options.pop("retry_on", Exception), options.pop("backoff", 0.0)
    )
    timed = Timed(retries.around(fn), [*columns], dict(constants))
    return grid.map(timed, *columns.values(), **how, **options)


class _Outcome:
    """Outcomes of the rows, as columns."""

    def __init__(
        self,
        source: Table,
        names: Sequence[str],
        is_timed: bool,
        columns_of: Callable[[Any], Mapping[str, Any]],
    ) -> None:
        #: Names of columns that results cannot have.
        self._reserved = frozenset({*names, *OWN})
        #: Whether results are those of `Timed`.
        self._is_timed = is_timed
        self._columns_of = columns_of
        self._status: list[Any] = ["not run"] * source.size
        self._errors: list[Any] = [None] * source.size
        self._seconds: list[Any] = [None] * source.size
        self._results: Columns = {}
        self._size = source.size
        #: How many rows have ended.
        self.taken = 0

    def take(self, number: int, result: Any) -> None:
        """Take the outcome of a row."""
        self.taken += 1
        if isinstance(result, RowFailed):
            kind, message, self._seconds[number] = result.args
            self._failed(number, kind, message)
        elif isinstance(result, OutcomeUnknown):
            self._status[number] = "unknown"
            self._errors[number] = f"OutcomeUnknown: {_message(result)}"
        elif isinstance(result, BaseException):
            self._failed(number, type(result).__name__, _message(result))
        else:
            self._seconds[number], value = result if self._is_timed else (None, result)
            self._status[number] = "ok"
            for name, one in self._columns_of(value).items():
                self._column(name)[number] = one

    def _failed(self, number: int, kind: str, message: str) -> None:
        self._status[number] = "failed"
        self._errors[number] = f"{kind}: {message}" if message else kind

    def _column(self, name: str) -> list[Any]:
        while name in self._reserved:
            name = f"result_{name}"
        return self._results.setdefault(name, [None] * self._size)

    def columns(self) -> Columns:
        """The columns that the table gets."""
        own = {STATUS: self._status, ERROR: self._errors, SECONDS: self._seconds}
        return {**(self._results or {RESULT: [None] * self._size}), **own}


def _columns_of(function: ModuleFunction | None) -> Callable[[Any], Mapping[str, Any]]:
    """How a result becomes columns. Those of a compiled function have the names of its interface,
    and an array that the interface declares with one element becomes a number."""
    names = [] if function is None else function.returned
    if function is None or not names:
        return _named
    parameters = function.description["parameters"]
    single = {
        one["name"]
        for one in parameters
        if one.get("dimensions") == ["1"] and one["type"] not in ("string", "filename")
    }

    def columns(value: Any) -> dict[str, Any]:
        values = [value] if len(names) == 1 else value
        pairs = zip(names, values, strict=True)
        return {name: one.item() if name in single else one for name, one in pairs}

    return columns


def _named(value: Any) -> Mapping[str, Any]:
    """The columns of a result of a Python function."""
    if isinstance(value, Mapping):
        return {str(name): one for name, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return dict(value._asdict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {RESULT: value}


def _message(error: BaseException) -> str:
    """The text of an error, in one line as its row is."""
    try:
        lines = str(error).splitlines()
    except Exception:  # an error may well have a broken __str__
        return ""
    return " ".join(line.strip() for line in lines if line.strip())


def _argument_names(
    fn: str | Callable[..., Any],
    source: Table,
    columns: Iterable[str] | None,
    constants: Mapping[str, Any],
) -> list[str]:
    """The columns that are arguments. Raises TypeError and ValueError if the function does not
    take them, or needs others."""
    there = _quoted(source.columns)
    if columns is None:
        names = list(source.columns)
    else:
        names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in source.columns:
            raise ValueError(f"`columns` has {name!r}, and the table has the columns {there}")
        if names.count(name) > 1:
            raise ValueError(f"`columns` has {name!r} twice")
        if name in constants:
            raise ValueError(f"`constants` has {name!r}, which is a column of the table")
        if name in OWN:
            raise ValueError(
                f"the column `{name}` is an argument, and the result has a column of this name: "
                "rename it, or choose the columns that are arguments with `columns=`"
            )
    if not names:
        raise ValueError("the table has no columns that are arguments")
    try:
        parameters = None if isinstance(fn, str) else inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # such as some functions of C
        parameters = None
    if parameters is not None:
        taken = list(parameters)
        if isinstance(fn, ModuleFunction) and fn.returned:
            taken.pop()  # `out`, which is for single calls
        _check_arguments(name_of(fn), taken, names, there, constants)
    return names


def _check_arguments(
    function: str,
    parameters: list[inspect.Parameter],
    names: list[str],
    there: str,
    constants: Mapping[str, Any],
) -> None:
    kinds = inspect.Parameter
    by_name = (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    taken = [one.name for one in parameters if one.kind in by_name]
    if not any(one.kind is kinds.VAR_KEYWORD for one in parameters):
        for given, where in ((names, "the table has a column"), (constants, "`constants` has one")):
            for name in given:
                if name not in taken:
                    raise TypeError(
                        f"`{function}` has no argument `{name}`, and {where} of this name; it "
                        f"takes {_quoted(taken)}. Rename it, or choose the columns that are "
                        "arguments with `columns=`"
                    )
    for one in parameters:
        if one.default is not kinds.empty or one.name in names or one.name in constants:
            continue
        if one.kind is kinds.POSITIONAL_ONLY:
            raise TypeError(f"`{function}` takes `{one.name}` by position only, not by its name")
        if one.name in taken:
            raise TypeError(
                f"`{function}` needs `{one.name}`, and the table has the columns {there}: add one, "
                "or give a value in `constants`"
            )


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _checked_output(output: str | os.PathLike[str] | None, table: object) -> str | None:
    """The path of the output. Raises what would come of writing it, before anything runs."""
    if output is None:
        return None
    path = os.fspath(output)
    _tables.suffix_of(path)
    if isinstance(table, (str, os.PathLike)) and os.path.realpath(table) == os.path.realpath(path):
        raise ValueError(f"`output` is the table itself: {path}")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"`output` is {path}, and there is no folder {folder}")
    if os.path.isdir(path):
        raise IsADirectoryError(f"`output` is {path}, which is a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"`output` is {path}, and files in {folder} cannot be written")
    return path


def _journal(
    resume: bool | str | os.PathLike[str] | Journal, output: str | None
) -> Journal | str | os.PathLike[str] | None:
    if resume is False:
        return None
    if resume is not True:
        return resume
    if output is None:
        raise ValueError("`resume=True` needs `output`: give the path of a journal in its place")
    return f"{output}.journal"
