"""What the worker of a remote object runs: it makes the object, and calls its methods."""

from __future__ import annotations

import functools
import importlib

from gridrpc._wrapped import runnable

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
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
