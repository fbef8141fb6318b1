"""Description of a function for workers: its name where that is enough, else its pickle."""

from __future__ import annotations

import os
import pickle
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from gridrpc import _native
from gridrpc._chunks import Chunked
from gridrpc._grain import Costs
from gridrpc._pickling import dumps
from gridrpc._references import (
    MOST_PICKLED_AGAIN,
    Captured,
    captured_by,
    has_state,
    importable_name,
    warn_of_edit,
    warn_of_stale,
    warn_of_streams,
)
from gridrpc._shared import dumps_collecting
from gridrpc._wrapped import Capturing, Located, check_kind, name_of

#: Pickled functions that are kept registered.
MAX_PICKLED = 256


class Known(NamedTuple):
    """A function that has been registered, with what it referred to then."""

    captured: Captured
    registered: _native.Function


class Functions:
    """The functions of one grid that have been called; each is registered once while it lives."""

    def __init__(
        self,
        native: _native.Grid,
        runs_python: bool,
        *,
        workers_have_path: bool = True,
        captures: bool = False,
    ) -> None:
        """`workers_have_path`: whether workers look for modules where this program does; those of
        a session look where the session does. `captures`: the output of calls comes with their
        results."""
        self._native = native
        self._runs_python = runs_python
        self._captures = captures
        #: Where workers look for modules.
        self._path = list(sys.path) if workers_have_path else []
        self._named: dict[str, _native.Function] = {}
        #: Modules that workers have to load again before they run a function, each with a text that
        #: no other reload has.
        self._reloads: dict[str, str] = {}
        #: When the files of modules had been changed last, ns, when functions of them were
        #: registered.
        self._modified: dict[str, int] = {}
        self._known: weakref.WeakKeyDictionary[Any, Known] = weakref.WeakKeyDictionary()
        self._known_chunked: weakref.WeakKeyDictionary[Any, Known] = weakref.WeakKeyDictionary()
        #: Those that the user has been warned of.
        self._stale: weakref.WeakSet[Any] = weakref.WeakSet()
        #: By digest of the pickle, the one used last at the end.
        self._pickled: OrderedDict[bytes, _native.Function] = OrderedDict()
        #: What maps have learned of functions in chunks.
        self._costs: weakref.WeakKeyDictionary[_native.Function, Costs] = (
            weakref.WeakKeyDictionary()
        )

    def costs(self, function: _native.Function) -> Costs:
        """State of a function from `find_chunked`."""
        return self._costs.setdefault(function, Costs())

    def find(self, function: str | Callable[..., Any]) -> _native.Function:
        """The registered function for a name `module/function` or a Python callable."""
        if isinstance(function, str):
            captures = self._captures and self._native.python_server(function) is None
            registered = (
                self._register_wrapped(function, Capturing) if captures else self._by_name(function)
            )
            self._native.remember(function, registered)
            return registered
        registered = self._find(self._known, function, self._register)
        known = None if has_state(function) else self._known[function]
        if known is not None and not known.captured.unchecked:
            self._native.remember(function, registered, known.captured.references)
        return registered

    def find_chunked(self, function: str | Callable[..., Any]) -> _native.Function:
        """The registered function that calls `function` with each item of a chunk."""
        if isinstance(function, str):
            return self._register_chunked(function)
        return self._find(self._known_chunked, function, self._register_chunked)

    def _find(
        self,
        all_known: weakref.WeakKeyDictionary[Any, Known],
        function: Callable[..., Any],
        register: Callable[..., _native.Function],
    ) -> _native.Function:
        if has_state(function):
            if isinstance(function, FunctionType):
                warn_of_streams(function)
            return register(function)
        known = all_known.get(function)
        if known is None or not known.captured.is_current(function):
            # What is compared next time is what was there before it was pickled.
            captured = captured_by(function)
        elif not known.captured.unchecked:
            return known.registered
        elif known.registered.bytes > MOST_PICKLED_AGAIN:
            if function not in self._stale:
                self._stale.add(function)
                warn_of_stale(function, known.captured, known.registered.bytes)
            return known.registered
        else:
            captured = known.captured
        registered = register(function)
        for module in captured.modules:
            self._check_file(module)
        all_known[function] = Known(captured, registered)
        return registered

    def forget(self, blob: int) -> None:
        """Register functions again that carry a version of shared data which has been replaced."""
        for all_known in (self._known, self._known_chunked):
            for function, known in list(all_known.items()):
                if blob in known.registered.blobs:
                    del all_known[function]
        for digest, registered in list(self._pickled.items()):
            if blob in registered.blobs:
                # Another thread may have dropped it meanwhile.
                self._pickled.pop(digest, None)

    def _by_name(self, name: str, title: str = "") -> _native.Function:
        module = _check_name(name)
        self._check_file(module)
        added = self._added_to_path()
        if added or self._reloads:
            located = pickle.dumps(Located(name, added, self._reloads), 5)
            return self._registered(title or name, located, [])
        known = self._named.get(name)
        if known is None:
            self._prepare(module)
            known = self._named[name] = self._native.register(name)
        return known

    def _prepare(self, module: str) -> None:
        """Have workers that are still to be forked inherit the module of a function."""
        if module not in sys.builtin_module_names:
            self._native.prepare(module)

    def method(self, name: str, method: Callable[..., Any]) -> _native.Function:
        """The registered function for what calls a method of a worker's object."""
        return self._native.register(
            name, dumps(Capturing(method) if self._captures else method)[0]
        )

    def check_python(self, function: object, *, may_yield: bool = False) -> None:
        """Raises TypeError for what workers of this grid cannot call; `may_yield`: generator
        functions are no such thing."""
        if not callable(function):
            raise TypeError(
                f"an object of type {type(function).__name__} cannot be called: {function!r}"
            )
        if not self._runs_python:
            raise TypeError(
                "native workers run functions of compiled modules: give the name of one, "
                "'module/function', or open the grid with worker='python' to run Python functions"
            )
        if not may_yield:
            check_kind(function)

    def _register(self, function: Callable[..., Any]) -> _native.Function:
        if self._captures:
            return self._register_wrapped(function, Capturing)
        self.check_python(function)
        name = importable_name(function)
        if name is not None:
            return self._by_name(name, name_of(function))
        return self._by_value(function, name_of(function))

    def _register_chunked(self, function: str | Callable[..., Any]) -> _native.Function:
        wrap: Callable[[Any], Callable[..., Any]] = Chunked
        if self._captures:
            wrap = _captured_chunk
        return self._register_wrapped(function, wrap)

    def _register_wrapped(
        self, function: str | Callable[..., Any], wrap: Callable[[Any], Callable[..., Any]]
    ) -> _native.Function:
        """Register what `wrap` makes of a function."""
        inner = function
        if isinstance(function, str):
            _check_name(function)
        else:
            self.check_python(function)
            name = importable_name(function)
            if name is not None:
                module = name.partition("/")[0]
                self._check_file(module)
                if self._added_to_path():
                    inner = name
                else:
                    self._prepare(module)
        return self._by_value(wrap(inner), name_of(function))

    def _added_to_path(self) -> list[str]:
        """Where this program looks for modules, and workers do not."""
        if sys.path == self._path:
            return []
        return [os.path.abspath(place) for place in sys.path if place not in self._path]

    def located(self, pickled: bytes) -> bytes:
        """A pickle that workers load with the places that were added to the path, after they have
        reloaded modules."""
        added = self._added_to_path()
        if not added and not self._reloads:
            return pickled
        return pickle.dumps(Located(pickled, added, self._reloads), 5)

    def reload(self, module: str) -> None:
        """Have workers load a module again before the next function that they are sent."""
        self._reloads.pop(module, None)
        self._reloads[module] = os.urandom(8).hex()
        self._modified.pop(module, None)
        self._named.clear()
        self._known.clear()
        self._known_chunked.clear()
        self._native.forget()

    def _check_file(self, module: str) -> None:
        """Warn if a module's file has been changed since workers may have loaded it."""
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is None:
            return
        try:
            modified = os.stat(file).st_mtime_ns
        except OSError:  # it has been removed: there is nothing newer
            return
        if self._modified.setdefault(module, modified) != modified:
            self._modified[module] = modified
            warn_of_edit(module, file)

    def _by_value(self, function: Callable[..., Any], name: str) -> _native.Function:
        head, buffers, blobs, _ = dumps_collecting(function, self._native)
        if buffers:
            # What a function carries with it goes in its pickle.
            head, _, blobs, _ = dumps_collecting(function, self._native, in_band=True)
        return self._registered(name, self.located(head), blobs)

    def _registered(self, name: str, head: bytes, blobs: list[int]) -> _native.Function:
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


def _captured_chunk(function: str | Callable[..., Any]) -> Chunked:
    """What calls a function with many items, and gives each result with its output."""
    return Chunked(Capturing(function))


def _check_name(name: str) -> str:
    """The module in a function's name. Raises ValueError for an invalid name."""
    module, _, path = name.partition("/")
    if not module or not path:
        raise ValueError(f"`{name}` is not a function's name: write `module/function`")
    return module
