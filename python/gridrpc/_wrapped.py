"""Callables around a user's function: they are sent in its place, and run in the worker."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import MethodType

from gridrpc import _native

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from numpy.random import BitGenerator

#: The longest pause before another attempt, seconds.
LONGEST_PAUSE = 60.0


#: Flags of the code of functions, as in `inspect`.
CO_COROUTINE = 0x80
CO_GENERATORS = 0x20 | 0x200


class Wrapped:
    """Stands for a function, given itself or by its name, "module/function"."""

    def __init__(self, function: str | Callable[..., Any]) -> None:
        self.function = function
        self.__qualname__ = name_of(function)

    def resolved(self) -> Callable[..., Any]:
        """The function, in the worker."""
        if isinstance(self.function, str):
            from gridrpc._worker import find_named

            self.function = find_named(self.function)
        function: Callable[..., Any] = runnable(self.function)
        self.function = function
        return function


class Spread(Wrapped):
    """Calls a function with the arguments that an item holds, as `starmap` does."""

    def __call__(self, *args: Any) -> Any:
        function = self.resolved()
        *first, item = args
        return function(*first, **item) if isinstance(item, Mapping) else function(*first, *item)


class InEnvironment(Wrapped):
    """Calls a function with some environment variables, in a folder."""

    def __init__(
        self, function: str | Callable[..., Any], variables: dict[str, str | None], cwd: str
    ) -> None:
        """`variables`: None unsets one; `cwd`: empty: where the worker is."""
        super().__init__(function)
        self.variables = variables
        self.cwd = cwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.resolved()
        # Also if the folder has been moved or removed.
        here = os.open(".", os.O_PATH | os.O_DIRECTORY)
        before = {name: os.environ.get(name) for name in self.variables}
        try:
            if self.cwd:
                os.chdir(self.cwd)
            _set_variables(self.variables)
            return function(*args, **kwargs)
        finally:
            _set_variables(before)
            try:
                os.fchdir(here)
            finally:
                os.close(here)


def _set_variables(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


class Seeded(Wrapped):
    """Calls a function with a NumPy generator that follows from a seed and an item's number."""

    def __init__(
        self,
        function: str | Callable[..., Any],
        entropy: int | Sequence[int],
        spawn_key: tuple[int, ...],
        pool_size: int,
        kind: type[BitGenerator],
    ) -> None:
        """`kind`: of the generators; the others are those of a `SeedSequence`."""
        super().__init__(function)
        self.entropy = entropy
        self.spawn_key = spawn_key
        self.pool_size = pool_size
        self.kind = kind

    def __call__(self, number: int, /, *args: Any, **kwargs: Any) -> Any:
        from numpy.random import Generator, SeedSequence

        key = (*self.spawn_key, number)
        seed = SeedSequence(self.entropy, spawn_key=key, pool_size=self.pool_size)
        return self.resolved()(*args, rng=Generator(self.kind(seed)), **kwargs)


class Capturing(Wrapped):
    """Calls a function, and gives with its result what it has written to standard output and error,
    as do C code and child processes."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.resolved()
        _show_crashes()
        _flush()
        capture = _native.OutputCapture()
        try:
            value = function(*args, **kwargs)
        except SystemExit:
            # The worker ends: nobody will get it otherwise.
            for stream, text in zip((sys.stdout, sys.stderr), _end(capture), strict=True):
                if stream is not None:
                    stream.write(text)
            raise
        except BaseException as error:
            stdout, stderr = _end(capture)
            _raised[:] = [(error, stdout, stderr)]
            raise
        return _native.CapturedResult(value, *_end(capture))


#: The error that has ended the last captured call, and the output of that call.
_raised: list[tuple[BaseException, str, str]] = []
#: Where standard error leads without a capture, for reports of crashes.
_crash_reports: list[int] = []


def output_before(error: BaseException) -> tuple[str, str] | None:
    """What the call that this error has ended wrote to standard output and error, once."""
    while _raised:
        raised, stdout, stderr = _raised.pop()
        if raised is error:
            return stdout, stderr
    return None


def result_of(value: Any) -> Any:
    """What a function returned, without its output."""
    return value.value if type(value) is _native.CapturedResult else value


def _end(capture: _native.OutputCapture) -> tuple[str, str]:
    _flush()
    return capture.end()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        # None: the client had it closed. A function may have put anything into the place of others.
        with suppress(Exception):
            if stream is not None:
                stream.flush()


def _show_crashes() -> None:
    """Have a crash show its Python line and its output, which the capture would end with it."""
    if _crash_reports:
        return
    import faulthandler

    _crash_reports.append(os.dup(2))
    is_enabled = faulthandler.is_enabled()
    # It comes first, and calls what was there before it.
    faulthandler.disable()
    _native.OutputCapture.show_at_a_crash()
    if is_enabled:
        faulthandler.enable(_crash_reports[0])


class Retrying(Wrapped):
    """Calls a function again when it raises one of some errors."""

    def __init__(
        self,
        function: str | Callable[..., Any],
        retries: int,
        on: tuple[type[BaseException], ...],
        backoff: float,
    ) -> None:
        super().__init__(function)
        self.retries = retries
        self.on = on
        self.backoff = backoff

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.resolved()
        for attempt in range(self.retries):
            try:
                return function(*args, **kwargs)
            except self.on:
                if self.backoff:
                    import time

                    time.sleep(min(self.backoff * 2**attempt, LONGEST_PAUSE))
        try:
            return function(*args, **kwargs)
        except self.on as error:
            error.add_note(f"gridrpc: the last of {self.retries + 1} attempts")
            raise


class Located:
    """Pickles as a function that workers look for in further places, or unpickle with them.

    `function`: its name, "module/function", or its pickle; `places`: folders for `sys.path`;
    `reloads`: modules that workers have to load again, each with a text that is another each time.
    """

    def __init__(self, function: str | bytes, places: list[str], reloads: dict[str, str]) -> None:
        self._parts = function, places, reloads

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from gridrpc._worker import find_in

        return find_in, self._parts


def runnable(function: Any) -> Any:
    """A function that returns what a coroutine function does; any other function as it is."""
    if not _kind_of(function) & CO_COROUTINE:
        return function

    def run(*args: Any, **kwargs: Any) -> Any:
        import asyncio  # takes 40 ms: not before it is needed

        return asyncio.run(function(*args, **kwargs))

    return run


def check_kind(function: Any) -> None:
    """Raises TypeError for a generator function, whose result no process can send to another."""
    while isinstance(function, Wrapped):
        function = function.function
    if _kind_of(function) & CO_GENERATORS:
        raise TypeError(
            f"`{name_of(function)}` is a generator function, and a generator cannot leave its "
            "process: take its parts by `Grid.stream`, or return a list instead"
        )


def _kind_of(function: Any) -> int:
    """The flags of a function's code, also of the function of a method or a partial."""
    while True:
        if isinstance(function, MethodType):
            function = function.__func__
        elif isinstance(function, functools.partial):
            function = function.func
        else:
            break
    code = getattr(function, "__code__", None)
    if code is None and not isinstance(function, (str, type)):
        # An object that can be called.
        code = getattr(getattr(type(function), "__call__", None), "__code__", None)  # noqa: B004
    flags = getattr(code, "co_flags", 0)
    return flags if isinstance(flags, int) else 0


def name_of(function: str | Callable[..., Any]) -> str:
    """What people call a function."""
    if isinstance(function, str):
        return function
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(name)
