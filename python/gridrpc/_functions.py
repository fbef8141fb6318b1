"""What workers are told of a function: its name where that is enough, else its pickle."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

from gridrpc import _native
from gridrpc._pickling import dumps
from gridrpc._worker import call_chunk


class Functions:
    """The functions of one grid that have been called; each is registered once while it lives."""

    def __init__(self, native: _native.Grid, typed: bool) -> None:
        self._native = native
        self._typed = typed
        self._named: dict[str, _native.Function] = {}
        self._by_object: weakref.WeakKeyDictionary[Any, _native.Function] = (
            weakref.WeakKeyDictionary()
        )
        self._chunked: weakref.WeakKeyDictionary[Any, _native.Function] = (
            weakref.WeakKeyDictionary()
        )

    def find(self, function: str | Callable[..., Any]) -> _native.Function:
        """The registered function for a name `module/function` or a Python callable."""
        if isinstance(function, str):
            return self._by_name(function)
        try:
            known = self._by_object.get(function)
        except TypeError:  # not hashable, or no weak references to it: nothing to find it by
            return self._register(function)
        if known is None:
            known = self._register(function)
            self._by_object[function] = known
        return known

    def find_chunked(self, function: str | Callable[..., Any]) -> _native.Function:
        """The registered function that calls `function` with each of many items."""
        if isinstance(function, str):
            raise TypeError("calls of functions by name cannot be sent in chunks: use chunk=1")
        try:
            known = self._chunked.get(function)
        except TypeError:
            return self._by_value(functools.partial(call_chunk, function), name_of(function))
        if known is None:
            chunked = functools.partial(call_chunk, function)
            known = self._chunked[function] = self._by_value(chunked, name_of(function))
        return known

    def _by_name(self, name: str) -> _native.Function:
        known = self._named.get(name)
        if known is None:
            if not all(name.partition("/")):
                raise ValueError(f"`{name}` is no name of a function: write `module/function`")
            known = self._named[name] = self._native.register(name, typed=self._typed)
        return known

    def _register(self, function: Callable[..., Any]) -> _native.Function:
        if not callable(function):
            raise TypeError(f"a {type(function).__name__} cannot be called: {function!r}")
        if self._typed:
            raise TypeError(
                "native workers run built-in functions by name, such as 'builtin/null': open the "
                "grid with worker='python' to run Python functions"
            )
        name = importable_name(function)
        if name is not None:
            return self._by_name(name)
        return self._by_value(function, name_of(function))

    def _by_value(self, function: Callable[..., Any], name: str) -> _native.Function:
        head, buffers = dumps(function)
        if buffers:
            # What a function carries with it goes in its pickle.
            import cloudpickle

            head = cloudpickle.dumps(function, 5)
        return self._native.register(name, head)


def importable_name(function: Callable[..., Any]) -> str | None:
    """`module/function` if importing the module gives this very function, else None."""
    module = getattr(function, "__module__", None)
    path = getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str) or module == "__main__":
        return None
    target: Any = sys.modules.get(module)
    for attribute in path.split("."):
        target = getattr(target, attribute, None)
    return f"{module}/{path}" if target is function else None


def name_of(function: str | Callable[..., Any]) -> str:
    """What people call a function."""
    if isinstance(function, str):
        return function
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(name)
