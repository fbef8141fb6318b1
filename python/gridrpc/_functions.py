"""What workers are told of a function: its name where that is enough, else its pickle."""

from __future__ import annotations

import operator
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any, NamedTuple, TypeAlias

from gridrpc import _native
from gridrpc._chunks import Chunked
from gridrpc._grain import Costs
from gridrpc._pickling import by_value_modules
from gridrpc._shared import dumps_collecting
from gridrpc._wrapped import name_of

#: Values of the variables that a function closes over.
Contents: TypeAlias = tuple[object, ...]


class Globals(NamedTuple):
    """Values of the global variables that a function and those that it calls refer to.

    `copies`: of small containers, which may change while they stay the same object.
    """

    names: tuple[str, ...]
    values: Contents
    copies: tuple[Any, ...]

    def are_current(self, variables: dict[str, Any]) -> bool:
        """Whether the variables are what they were."""
        return all(map(operator.is_, map(variables.get, self.names), self.values)) and [
            _copy(value) for value in self.values if type(value) in CONTAINERS
        ] == [*self.copies]


#: By function, with what it closed over and its globals when it was pickled.
Known: TypeAlias = weakref.WeakKeyDictionary[Any, tuple[Contents, Globals, _native.Function]]

#: Types whose values are the same as long as they are the same object.
UNCHANGEABLE = frozenset({NoneType, bool, int, float, complex, str, bytes, ModuleType, type})

#: Containers of at most so many plain values are compared by content, others by identity.
CONTAINERS = frozenset({dict, list, set})
MOST_COMPARED = 100
NO_GLOBALS = Globals((), (), ())
#: Names of the main program; the second is that of children of `multiprocessing`.
MAIN = frozenset({"__main__", "__mp_main__"})

#: Pickled functions that are kept registered.
MAX_PICKLED = 256


class Functions:
    """The functions of one grid that have been called; each is registered once while it lives."""

    def __init__(self, native: _native.Grid, runs_python: bool) -> None:
        self._native = native
        self._runs_python = runs_python
        #: Where workers look for modules.
        self._path = list(sys.path)
        self._named: dict[str, _native.Function] = {}
        self._known: Known = weakref.WeakKeyDictionary()
        self._known_chunked: Known = weakref.WeakKeyDictionary()
        #: By digest of the pickle, the one used last at the end.
        self._pickled: OrderedDict[bytes, _native.Function] = OrderedDict()
        #: What maps have learned of functions in chunks.
        self._costs: weakref.WeakKeyDictionary[_native.Function, Costs] = (
            weakref.WeakKeyDictionary()
        )

    def costs(self, function: _native.Function) -> Costs:
        """What is known of a function that `find_chunked` gave."""
        return self._costs.setdefault(function, Costs())

    def find(self, function: str | Callable[..., Any]) -> _native.Function:
        """The registered function for a name `module/function` or a Python callable."""
        if isinstance(function, str):
            registered = self._by_name(function)
            self._native.remember(function, registered)
            return registered
        registered = self._find(self._known, function, self._register)
        if fixed_contents(function) == ():
            carried = self._known[function][1]
            if not carried.names:
                self._native.remember(function, registered)
            elif not carried.copies:
                values, names = [*carried.values], [*carried.names]
                variables = function.__globals__
                self._native.remember(function, registered, variables, names, values)
        return registered

    def find_chunked(self, function: str | Callable[..., Any]) -> _native.Function:
        """The registered function that calls `function` with each item of a chunk."""
        if isinstance(function, str):
            return self._register_chunked(function)
        return self._find(self._known_chunked, function, self._register_chunked)

    @staticmethod
    def _find(
        known: Known, function: Callable[..., Any], register: Callable[..., _native.Function]
    ) -> _native.Function:
        contents = fixed_contents(function)
        if contents is None:
            return register(function)
        found = known.get(function)
        if (
            found is not None
            and all(map(operator.is_, found[0], contents))
            and (not found[1].names or found[1].are_current(function.__globals__))
        ):
            return found[2]
        # What is compared next time is what was there before it was pickled.
        carried = globals_of(function)
        registered = register(function)
        known[function] = contents, carried, registered
        return registered

    def _by_name(self, name: str) -> _native.Function:
        known = self._named.get(name)
        if known is None:
            module, _, path = name.partition("/")
            if not module or not path:
                raise ValueError(f"`{name}` is not a function's name: write `module/function`")
            self._prepare(module)
            known = self._named[name] = self._native.register(name)
        return known

    def _prepare(self, module: str) -> None:
        """Have workers that are still to be forked inherit the module of a function."""
        if module not in sys.builtin_module_names:
            self._native.prepare(module)

    def check_python(self, function: object) -> None:
        """Raises TypeError for what workers of this grid cannot call."""
        if not callable(function):
            raise TypeError(f"a {type(function).__name__} cannot be called: {function!r}")
        if not self._runs_python:
            raise TypeError(
                "native workers run functions of compiled modules: give the name of one, "
                "'module/function', or open the grid with worker='python' to run Python functions"
            )

    def _register(self, function: Callable[..., Any]) -> _native.Function:
        self.check_python(function)
        name = importable_name(function)
        if name is not None:
            added = self._added_to_path()
            if not added:
                return self._by_name(name)
            located: Any = Located(name, added)
            return self._by_value(located, name_of(function))
        return self._by_value(function, name_of(function))

    def _register_chunked(self, function: str | Callable[..., Any]) -> _native.Function:
        if not isinstance(function, str):
            self.check_python(function)
            name = importable_name(function)
            if name is not None:
                added = self._added_to_path()
                if added:
                    located: Any = Located(name, added)
                    return self._by_value(Chunked(located), name_of(function))
                self._prepare(name.partition("/")[0])
        return self._by_value(Chunked(function), name_of(function))

    def _added_to_path(self) -> list[str]:
        """Where the client looks for modules by now, and workers do not."""
        if sys.path == self._path:
            return []
        return [place for place in sys.path if place not in self._path]

    def _by_value(self, function: Callable[..., Any], name: str) -> _native.Function:
        head, buffers, blobs, _ = dumps_collecting(function, self._native)
        if buffers:
            # What a function carries with it goes in its pickle.
            head, _, blobs, _ = dumps_collecting(function, self._native, in_band=True)
        import hashlib  # not for functions that go by name

        digest = hashlib.blake2b(head, digest_size=20).digest()
        known = self._pickled.get(digest)
        if known is None:
            known = self._pickled[digest] = self._native.register(name, head, blobs=blobs)
            if len(self._pickled) > MAX_PICKLED:
                self._pickled.popitem(last=False)
        else:
            self._pickled.move_to_end(digest)
        return known


class Located:
    """Pickled in the place of a function that workers are to look for in further places too."""

    def __init__(self, name: str, places: list[str]) -> None:
        self.__qualname__ = name
        self._places = places

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, list[str]]]:
        from gridrpc._worker import find_in

        return find_in, (self.__qualname__, self._places)


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


def globals_of(function: Callable[..., Any]) -> Globals:
    """The globals that go with a function by value; none with one that workers import."""
    if not isinstance(function, FunctionType) or importable_name(function) is not None:
        return NO_GLOBALS
    variables = function.__globals__
    found: dict[str, Any] = {}
    left = [function]
    while left:
        for name in _names_in(left.pop().__code__):
            if name in variables and name not in found:
                value = found[name] = variables[name]
                if isinstance(value, FunctionType) and value.__globals__ is variables:
                    left.append(value)
    copies = tuple(_copy(value) for value in found.values() if type(value) in CONTAINERS)
    return Globals(tuple(found), tuple(found.values()), copies)


def _names_in(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_in(constant)
    return names


def _copy(container: Any) -> Any:
    """What tells whether a small container has changed; None: it is not looked at."""
    if len(container) > MOST_COMPARED:
        return None
    items = [*container.items()] if isinstance(container, dict) else [*container]
    flat = [value for item in items for value in (item if isinstance(item, tuple) else (item,))]
    return items if all(type(value) in UNCHANGEABLE for value in flat) else None


def importable_name(function: Callable[..., Any]) -> str | None:
    """`module/function` if importing the module gives this very function, else None."""
    module = getattr(function, "__module__", None)
    path = getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str) or module in MAIN:
        return None
    target: Any = sys.modules.get(module)
    if isinstance(function, FunctionType | type) and _goes_by_value(module, target):
        return None
    for attribute in path.split("."):
        target = getattr(target, attribute, None)
    return f"{module}/{path}" if target is function else None


def _goes_by_value(name: str, module: Any) -> bool:
    """Whether the user has said so, or the module was made by the program itself."""
    registered = by_value_modules()
    while registered and name:
        if name in registered:
            return True
        name = name.rpartition(".")[0]
    if getattr(module, "__spec__", None) is not None or hasattr(module, "__file__"):
        return False
    if type(module) is ModuleType and sys.modules.get(module.__name__) is module:
        import cloudpickle

        cloudpickle.register_pickle_by_value(module)
        return True
    return False
