"""Callables around a user's function: they are sent in its place, and run in the worker."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MethodType

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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

    def __call__(self, item: Any) -> Any:
        function = self.resolved()
        return function(**item) if isinstance(item, Mapping) else function(*item)


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

    `function`: its name, "module/function", or its pickle; `places`: folders for `sys.path`.
    """

    def __init__(self, function: str | bytes, places: list[str]) -> None:
        self._function = function
        self._places = places

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str | bytes, list[str]]]:
        from gridrpc._worker import find_in

        return find_in, (self._function, self._places)


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
            "process: return a list instead"
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
