"""Functions of programs as workers of a session run them, and pickles of items and results.

The daemon of a session has none of the program's modules: functions, items and results pass through
it as bytes. Classes of the main program are pickled by name, so that items and results of one run
of the program have the classes of any other run.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import pickle
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from gridrpc._chunks import describe
from gridrpc._references import MAIN
from gridrpc._wrapped import Wrapped, check_kind, name_of, runnable

#: Folders of packages that do not change while a program runs, in any environment.
INSTALLED = re.compile("/(?:site|dist)-packages/")


class Source(NamedTuple):
    """A module of a program: the folder with it or its package, and the digest of its file."""

    root: str
    digest: bytes


class Task:
    """A pickled function of a program: it takes a pickled item, and returns a pickled result.

    `places`: the program's module path; `sources`: its own modules.
    """

    def __init__(
        self, name: str, function: bytes, places: list[str], sources: dict[str, Source]
    ) -> None:
        self.__qualname__ = name
        self.function = function
        self.digest = hashlib.blake2b(function, digest_size=16).digest()
        self.places = places
        self.sources = sources

    def __call__(self, item: bytes) -> bytes:
        global _main
        function: Callable[..., Any] | None = None
        try:
            function, _main = _loaded_function(self)
            return sealed(function(*pickle.loads(item)))
        except Exception as error:
            passes = isinstance(function, Tried) and isinstance(error, function.retry_on)
            kind = Passing if passes else Raised
            name, message, trace, *_ = describe(error)
            try:
                head = sealed(BaseException.with_traceback(error, None))
            except Exception:  # of its own __reduce__: the text is left
                head = b""
            raise kind(name, message, trace, head) from None


class Raised(Exception):
    """An error of a function: its type, message, trace and pickle."""

    def __str__(self) -> str:
        return str(self.args[1])

    def raised(self) -> BaseException:
        """The error, for the program."""
        from gridrpc import _native

        name, message, trace, head = self.args
        error = _native.raised(name, message, trace, head, [])
        with suppress(Exception):  # it may refuse to be changed
            for note in getattr(self, "__notes__", ()):
                error.add_note(note)
        return error


class Passing(Raised):
    """An error after which the function runs again."""


class Tried(Wrapped):
    """A function, and the errors after which it runs again."""

    def __init__(
        self, function: str | Callable[..., Any], retry_on: tuple[type[BaseException], ...]
    ) -> None:
        super().__init__(function)
        self.retry_on = retry_on

    def __call__(self, *args: Any) -> Any:
        return self.resolved()(*args)


def of_program(function: str | Callable[..., Any]) -> Task:
    """The task for a function of this program."""
    check_kind(function)
    main = sys.modules.get("__main__")
    own = {
        name: value
        for name, value in vars(main).items()
        if isinstance(value, type) and value.__module__ in MAIN
    }
    places = [place for place in sys.path if isinstance(place, str) and place]
    return Task(name_of(function), _pickled(function, own), places, _sources())


def _pickled(function: str | Callable[..., Any], own: dict[str, type]) -> bytes:
    """The pickle of a function, and of the classes of its main program."""
    from gridrpc._pickling import dumps_by_value
    from gridrpc._references import importable_name

    if not own and (isinstance(function, str) or importable_name(function) is not None):
        return pickle.dumps((function, own), 5)
    try:
        return dumps_by_value((function, own), in_band=True)[0]
    except Exception:
        # One of the classes cannot be pickled, but may not be needed.
        return dumps_by_value((function, {}), in_band=True)[0]


def _sources() -> dict[str, Source]:
    """Modules of the program that may change while a session runs, by name."""
    from gridrpc._fingerprint import _contents, _is_own

    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if (
            file is None
            or not file.endswith(".py")
            or name.partition(".")[0] in ("gridrpc", *MAIN)
            or not _is_own(name)
            or INSTALLED.search(file)
        ):
            continue
        depth = name.count(".") + file.endswith("/__init__.py")
        root = os.path.abspath(file)
        for _ in range(depth + 1):
            root = os.path.dirname(root)
        found[name] = Source(root, _contents(file))
    return found


def sealed(value: object) -> bytes:
    """Pickle the arguments of an item, or a result."""
    try:
        head = pickle.dumps(value, 5)
    except (pickle.PicklingError, AttributeError, TypeError):
        return _sealed_by_value(value)
    from gridrpc._pickling import _names_other

    return _sealed_by_value(value) if b"_main__" in head or _names_other(head) else head


def _sealed_by_value(value: object) -> bytes:
    from gridrpc import _by_value

    class Pickler(_by_value.Pickler):
        """Pickles classes of the main program by name."""

        def reducer_override(self, value: Any) -> Any:
            if (
                isinstance(value, type)
                and value.__module__ in MAIN
                and "<locals>" not in value.__qualname__
            ):
                return of_main, (value.__qualname__,)
            return super().reducer_override(value)

    with io.BytesIO() as file:
        Pickler(file, protocol=5).dump(value)
        return file.getvalue()


#: Number of functions in the cache of a worker.
MOST_FUNCTIONS = 64
#: In a worker: classes of the main program of the current function.
_main: dict[str, Any] | None = None
#: In a worker: functions by the digests of their pickles.
_functions: dict[bytes, tuple[Callable[..., Any], dict[str, Any]]] = {}
#: In a worker: the program's own modules when they were imported.
_modules: dict[str, Source] = {}


def of_main(path: str) -> Any:
    """A class of the main program."""
    first, *rest = path.split(".")
    if _main is None:
        target: Any = vars(sys.modules["__main__"]).get(first)
    else:
        target = _main.get(first)
    if target is None:
        raise AttributeError(
            f"the class `{first}` belongs to another main program: put it into a module that all "
            "programs import"
        )
    for attribute in rest:
        target = getattr(target, attribute)
    return target


def _loaded_function(task: Task) -> tuple[Callable[..., Any], dict[str, Any]]:
    _forget_changed(task.sources)
    found = _functions.get(task.digest)
    if found is None:
        sys.path.extend(place for place in task.places if place not in sys.path)
        function, main = pickle.loads(task.function)
        if isinstance(function, str):
            from gridrpc._worker import find_named

            function = find_named(function)
        found = _functions[task.digest] = runnable(function), main
        if len(_functions) > MOST_FUNCTIONS:
            del _functions[next(iter(_functions))]
    return found


def _forget_changed(sources: dict[str, Source]) -> None:
    """Import changed modules again, and the others in their folder, which may refer to them."""
    changed = {
        source.root
        for name, source in sources.items()
        if name in _modules and _modules[name] != source
    }
    if changed:
        for name, source in _modules.items():
            if source.root in changed:
                sys.modules.pop(name, None)
        _functions.clear()
        importlib.invalidate_caches()
    _modules.update(sources)
