"""Calls that are tried again when they raise certain errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeVar

from gridrpc._wrapped import Retrying

T = TypeVar("T")

Errors: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]


class Retries(NamedTuple):
    """How often a call is tried again: the options of `map` and of `retrying`."""

    times: int
    on: Errors
    backoff: float

    def kinds(self) -> tuple[type[BaseException], ...]:
        """The errors. Raises TypeError and ValueError for options that are invalid."""
        kinds = self.on if isinstance(self.on, tuple) else (self.on,)
        for kind in kinds:
            if not (isinstance(kind, type) and issubclass(kind, BaseException)):
                raise TypeError(f"`retry_on` has {kind!r}: give classes of exceptions")
        if isinstance(self.times, bool) or not isinstance(self.times, int) or self.times < 0:
            raise ValueError(f"`retries` is {self.times!r}: give a number from 0 on")
        if not 0 <= self.backoff < float("inf"):
            raise ValueError(f"`backoff` is {self.backoff!r}: give seconds from 0 on")
        return kinds

    def around(self, function: str | Callable[..., T]) -> str | Callable[..., T]:
        """The function with these retries; itself if there are none."""
        kinds = self.kinds()
        return Retrying(function, self.times, kinds, self.backoff) if self.times else function


NO_RETRIES = Retries(0, Exception, 0.0)


def retrying(
    fn: Callable[..., T],
    retries: int = 3,
    *,
    retry_on: Errors = Exception,
    backoff: float = 0.0,
) -> Callable[..., T]:
    """`fn`, called again up to `retries` times when it raises one of the errors `retry_on`.

    The worker that runs the call makes all attempts, one after the other; a `deadline` holds for
    all of them together. `backoff`: seconds before the second attempt; each further pause is twice
    as long, at most a minute. A lost worker is not an error of the function: `idempotent` says
    whether such a call runs again. Raises TypeError and ValueError for invalid arguments.
    """
    if not callable(fn):
        raise TypeError(f"an object of type {type(fn).__name__} cannot be called: {fn!r}")
    return Retries(retries, retry_on, backoff).around(fn)  # type: ignore[return-value]
