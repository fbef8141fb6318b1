"""Callables around a user's function: they are sent in its place, and run in the worker."""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: The longest pause before another attempt, seconds.
LONGEST_PAUSE = 60.0


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
        return self.function


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


def name_of(function: str | Callable[..., Any]) -> str:
    """What people call a function."""
    if isinstance(function, str):
        return function
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(name)
