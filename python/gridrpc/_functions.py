"""What workers are told of a function: its name where that is enough, else its pickle."""

from __future__ import annotations

import operator
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any, TypeAlias

from gridrpc import _native
from gridrpc._chunks import Chunked
from gridrpc._pickling import dumps

#: Values of the variables that a function closes over.
Contents: TypeAlias = tuple[object, ...]
#: By function, with what it closed over when it was pickled.
Known: TypeAlias = weakref.WeakKeyDictionary[Any, tuple[Contents, _native.Function]]

#: Types whose values are the same as long as they are the same object.
UNCHANGEABLE = frozenset({NoneType, bool, int, float, complex, str, bytes, ModuleType, type})

#: The native function that calls another one for each item of a chunk.
EACH = "builtin/each"

#: Pickled functions that are kept registered.
MAX_PICKLED = 256


class Functions:
    """The functions of one grid that have been called; each is registered once while it lives."""

    def __init__(self, native: _native.Grid, typed: bool) -> None:
        self._native = native
        self._typed = typed
        self._named: dict[str, _native.Function] = {}
        self._known: Known = weakref.WeakKeyDictionary()
        self._known_chunked: Known = weakref.WeakKeyDictionary()
        #: By digest of the pickle, the one used last at the end.
        self._pickled: OrderedDict[bytes, _native.Function] = OrderedDict()

    def find(self, function: str | Callable[..., Any]) -> _native.Function:
        """The registered function for a name `module/function` or a Python callable."""
        if isinstance(function, str):
            registered = self._by_name(function)
            self._native.remember(function, registered)
            return registered
        registered = self._find(self._known, function, self._register)
        if fixed_contents(function) == ():
            self._native.remember(function, registered)
        return registered

    def find_chunked(self, function: str | Callable[..., Any]) -> _native.Function:
        """The registered function that calls `function` with each item of a chunk."""
        if isinstance(function, str):
            return self._by_name(EACH) if self._typed else self._register_chunked(function)
        return self._find(self._known_chunked, function, self._register_chunked)

    @staticmethod
    def _find(
        known: Known, function: Callable[..., Any], register: Callable[..., _native.Function]
    ) -> _native.Function:
        contents = fixed_contents(function)
        if contents is None:
            return register(function)
        found = known.get(function)
        if found is not None and all(map(operator.is_, found[0], contents)):
            return found[1]
        registered = register(function)
        known[function] = contents, registered
        return registered

    def _by_name(self, name: str) -> _native.Function:
        known = self._named.get(name)
        if known is None:
            module, _, path = name.partition("/")
            if not module or not path:
                raise ValueError(f"`{name}` is no name of a function: write `module/function`")
            if not self._typed:
                self._prepare(module)
            known = self._named[name] = self._native.register(name, typed=self._typed)
        return known

    def _prepare(self, module: str) -> None:
        """Have workers that are still to be forked inherit the module of a function."""
        if module not in sys.builtin_module_names:
            self._native.prepare(module)

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

    def _register_chunked(self, function: str | Callable[..., Any]) -> _native.Function:
        if not isinstance(function, str):
            self._check(function)
            name = importable_name(function)
            if name is not None:
                self._prepare(name.partition("/")[0])
        return self._by_value(Chunked(function), name_of(function))

    def _by_value(self, function: Callable[..., Any], name: str) -> _native.Function:
        head, buffers = dumps(function)
        if buffers:
            # What a function carries with it goes in its pickle.
            import cloudpickle

            head = cloudpickle.dumps(function, 5)
        import hashlib  # not for functions that go by name

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
