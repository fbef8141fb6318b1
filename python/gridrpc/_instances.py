"""What the worker of a remote object runs: it makes the object, and calls its methods."""

from __future__ import annotations

import functools
import importlib

from gridrpc._wrapped import name_of, runnable

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from asyncio import Runner
    from collections.abc import Callable
    from typing import Any

#: The object of this worker, once it has been made.
_made: list[Any] = []


def make(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Make the object of this worker."""
    if _made:
        raise RuntimeError("the worker has an object already")
    _made.append(cls(*args, **kwargs))


class Method:
    """A method of the object, as a callable that is sent like any pickled function."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _made:
            raise RuntimeError("the worker has no object: its making has failed")
        return runnable(getattr(_made[0], self.name))(*args, **kwargs)


class Producer:
    """The object behind a `Stream`, in its worker: gives parts one by one."""

    def __init__(
        self, function: str | Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if isinstance(function, str):
            from gridrpc._worker import find_named

            function = find_named(function)
        parts = runnable(function)(*args, **kwargs)
        self._runner: Runner | None = None
        if hasattr(type(parts), "__aiter__"):
            import asyncio  # takes 40 ms: not before it is needed

            self._runner = asyncio.Runner()
            self._parts: Any = parts.__aiter__()
        elif hasattr(type(parts), "__iter__"):
            self._parts = iter(parts)
        else:
            raise TypeError(
                f"`{name_of(function)}` returned an object of type {type(parts).__name__}: "
                "`stream` is for generators, and for functions that return an iterable"
            )
        self._ended = False

    def take(self) -> tuple[Any] | None:
        """The next part; None: there are no more."""
        if self._ended:
            return None
        try:
            return (next(self._parts) if self._runner is None else self._runner.run(self._await()),)
        except (StopIteration, StopAsyncIteration):
            self._ended = True
            return None
        except BaseException:
            self._ended = True
            raise

    async def _await(self) -> Any:
        return await anext(self._parts)

    def close(self) -> None:
        """Have a generator run its `finally` blocks."""
        self._ended = True
        try:
            if self._runner is None:
                close = getattr(self._parts, "close", None)
                if close is not None:
                    close()
            elif hasattr(self._parts, "aclose"):
                self._runner.run(self._close())
        finally:
            if self._runner is not None:
                self._runner.close()

    async def _close(self) -> None:
        await self._parts.aclose()


class _Makers:
    """By name, `package:module:Class`, what makes an object of a class that a server offers."""

    def __getattr__(self, name: str) -> functools.partial[dict[str, str]]:
        module, _, cls = name.rpartition(":")
        if not module:
            raise AttributeError(name)
        return functools.partial(_make_offered, module.replace(":", "."), cls)


class _Methods:
    """By name, what calls a method of the object of this worker."""

    def __getattr__(self, name: str) -> Method:
        if name.startswith("_"):
            raise AttributeError(name)
        return Method(name)


#: A server names functions of these: crates/server/src/pools.rs.
MAKE, METHOD = _Makers(), _Methods()


def _make_offered(module: str, cls: str, /, *args: Any, **kwargs: Any) -> dict[str, str]:
    """Make the object of this worker. Returns the names and descriptions of its methods."""
    named: type = getattr(importlib.import_module(module), cls)
    make(named, args, kwargs)
    return {name: getattr(named, name).__doc__ or "" for name in public_methods(named)}


def public_methods(cls: type) -> list[str]:
    """The names of the methods that a remote object of this class has."""
    names = (name for name in dir(cls) if not name.startswith("_"))
    return [name for name in names if callable(getattr(cls, name, None))]
