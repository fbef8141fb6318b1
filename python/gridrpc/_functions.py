"""What workers are told of a function: its name where that is enough, else its pickle."""

from __future__ import annotations

import functools
import hashlib
import operator
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any, TypeAlias

from gridrpc import _native
from gridrpc._pickling import dumps
from gridrpc._worker import call_chunk

#: Values of the variables that a function closes over.
Contents: TypeAlias = tuple[object, ...]

#: Types whose values are the same as long as they are the same object.
UNCHANGEABLE = frozenset({NoneType, bool, int, float, complex, str, bytes, ModuleType, type})

#: Pickled functions that are kept registered.
MAX_PICKLED = 256


class Functions:
    """The functions of one grid that have been called; each is registered once while it lives."""

    def __init__(self, native: _native.Grid, typed: bool) -> None:
        self._native = native
        self._typed = typed
        self._named: dict[str, _native.Function] = {}
        #: With what each closed over when it was pickled.
        self._known: weakref.WeakKeyDictionary[Any, tuple[Contents, _native.Function]] = (
            weakref.WeakKeyDictionary()
        )
        #: By digest of the pickle, the one used last at the end.
        self._pickled: OrderedDict[bytes, _native.Function] = OrderedDict()

    def find(self, function: str | Callable[..., Any]) -> _native.Function:
        """The registered function for a name `module/function` or a Python callable."""
        if isinstance(function, str):
            registered = self._by_name(function)
            self._native.remember(function, registered)
            return registered
        contents = fixed_contents(function)
        if contents is None:
            return self._register(function)
        known = self._known.get(function)
        if known is not None and all(map(operator.is_, known[0], contents)):
            registered = known[1]
        else:
            registered = self._register(function)
            self._known[function] = contents, registered
        if not contents:
            self._native.remember(function, registered)
        return registered

    def find_chunked(self, function: str | Callable[..., Any]) -> _native.Function:
        """The registered function that calls `function` with each of many items."""
        if isinstance(function, str):
            raise TypeError("calls of functions by name cannot be sent in chunks: use chunk=1")
        self._check(function)
        return self._by_value(functools.partial(call_chunk, function), name_of(function))

    def _by_name(self, name: str) -> _native.Function:
        known = self._named.get(name)
        if known is None:
            if not all(name.partition("/")):
                raise ValueError(f"`{name}` is no name of a function: write `module/function`")
            known = self._named[name] = self._native.register(name, typed=self._typed)
        return known

    def _check(self, function: object) -> None:
        if not callable(function):
            raise TypeError(f"a {type(function).__name__} cannot be called: {function!r}")
        if self._typed:
            raise TypeError(
                "native workers run built-in functions by name, such as 'builtin/null': open the "
                "grid with worker='python' to run Python functions"
            )

    def _register(self, function: Callable[..., Any]) -> _native.Function:
        self._check(function)
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
        digest = hashlib.blake2b(head, digest_size=20).digest()
        known = self._pickled.get(digest)
        if known is None:
            known = self._pickled[digest] = self._native.register(name, head)
            if len(self._pickled) > MAX_PICKLED:
                self._pickled.popitem(last=False)
        else:
            self._pickled.move_to_end(digest)
        return known


def fixed_contents(function: object) -> Contents | None:
    """What a function carries with it, or None if that can change without us seeing it.

    Objects, methods and partials have state, and closures see variables: those are pickled at
    each submission, as a process pool does it. Plain functions are not.
    """
    if isinstance(function, FunctionType):
        if function.__closure__ is None:
            return ()
        try:
            contents = tuple(cell.cell_contents for cell in function.__closure__)
        except ValueError:  # a variable without a value yet
            return None
        return contents if all(type(content) in UNCHANGEABLE for content in contents) else None
    if isinstance(function, type):
        return ()
    if isinstance(function, BuiltinFunctionType) and isinstance(function.__self__, ModuleType):
        return ()
    return None


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
