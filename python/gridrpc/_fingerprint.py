"""Fingerprints of functions and items, to recognise those of an earlier run."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import pickle
import stat
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from gridrpc._modules import ModuleFunction
from gridrpc._references import MAIN, UNCHANGEABLE
from gridrpc._shared import Shared
from gridrpc._wrapped import name_of

DIGEST = 16  # bytes
#: Of files up to this size the contents count, bytes; of larger ones the size and the time.
LARGEST_READ = 16 << 20
#: Containers whose contents count, if they are plain.
CONTAINERS = (tuple, list, dict, set, frozenset)


class Fingerprint(NamedTuple):
    """Of a function: its name, a digest of all that it consists of, and Python's version."""

    name: str
    digest: str
    python: str

    def change(self, now: Fingerprint) -> str:
        """Changes since this fingerprint was taken, for messages."""
        what = f"was begun with `{self.name}`"
        if self.name != now.name:
            return f"{what}, not with `{now.name}`"
        if self.python != now.python:
            return f"{what} under Python {self.python}, and this is {now.python}"
        return (
            f"{what}, which has changed since: its code or "
            "its module's file, its defaults, or what it refers to"
        )


def of_function(function: str | Callable[..., Any]) -> Fingerprint:
    """What a function consists of: its code, that of the functions it calls in the program's own
    modules, defaults, what it closes over, and plain global values that it names.

    Of installed packages the name and the version count; of a function of a compiled module, or one
    that is given by its name, the file that it is in; and of a server's function its interface.
    """
    walk = _Walk()
    if isinstance(function, ModuleFunction):
        name = function.name
        walk.add(name, _contents(function.path) if function.path else function.interface)
    elif isinstance(function, str):
        name = function
        walk.add(name)
        found = find_spec(name.partition("/")[0])
        if found is not None and found.origin is not None and not _is_installed(found.origin):
            walk.add(_contents(found.origin))
    else:
        name = name_of(function)
        walk.value(function)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Fingerprint(name, walk.digest(), version)


class _Walk:
    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=DIGEST)
        #: By identity: as which it came, and the object itself, so that no other gets its identity.
        self._seen: dict[int, tuple[int, Any]] = {}

    def digest(self) -> str:
        return self._hash.hexdigest()

    def add(self, *parts: object) -> None:
        for part in parts:
            piece = part if isinstance(part, bytes) else str(part).encode("utf-8", "replace")
            self._hash.update(len(piece).to_bytes(8, "little") + piece)

    def value(self, value: Any) -> None:
        kind = type(value)
        self.add(kind.__qualname__)
        if kind in UNCHANGEABLE and kind not in (ModuleType, type):
            self.add(repr(value))
            return
        if id(value) in self._seen:
            self.add(self._seen[id(value)][0])
            return
        self._seen[id(value)] = len(self._seen), value
        if kind in CONTAINERS:
            self._container(value)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, CodeType):
            self._code(value)
        elif isinstance(value, MethodType):
            self.value(value.__func__)
            self.value(value.__self__)
        elif isinstance(value, functools.partial):
            self.value(value.func)
            self.value(value.args)
            self.value(value.keywords)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, ModuleType):
            self.add(value.__name__, _version(value.__name__))
        elif isinstance(value, BuiltinFunctionType):
            self.add(value.__module__, value.__qualname__, _version(value.__module__ or ""))
        else:
            self._class(kind)
            self._state(value)

    def _state(self, value: Any) -> None:
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:  # such as a lock: it cannot be sent either
            return
        if isinstance(reduced, str):
            self.add(reduced)
            return
        for part in reduced:
            if type(part) is tuple:
                # Its class is known.
                self.value(tuple(one for one in part if one is not type(value)))
            else:
                self.value(list(part) if isinstance(part, Iterator) else part)

    def _container(self, value: Any) -> None:
        if isinstance(value, (set, frozenset)):
            self.add(*sorted(digest_of([one]) for one in value))
            return
        for one in value.items() if isinstance(value, dict) else value:
            self.value(one)

    def _function(self, function: FunctionType) -> None:
        self.add(function.__module__, function.__qualname__)
        if not _is_own(function.__module__):
            self.add(_version(function.__module__))
            return
        self._code(function.__code__)
        self.value(function.__defaults__)
        self.value(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                self.value(cell.cell_contents)
            except ValueError:  # a variable without a value yet
                self.add("empty")
        names = sorted(_names_in(function.__code__))
        for name in names:
            if name in function.__globals__:
                self._global(name, function.__globals__[name], names)

    def _global(self, name: str, value: Any, names: list[str]) -> None:
        self.add(name)
        if isinstance(value, ModuleType) and _is_own(value.__name__):
            for part in names:
                found = vars(value).get(part)
                if isinstance(found, (FunctionType, type)):
                    self.value(found)
        elif isinstance(value, (FunctionType, type, ModuleType)) or _is_plain(value):
            self.value(value)
        # Other objects, such as caches, are as likely to differ from run to run.

    def _code(self, code: CodeType) -> None:
        self.add(code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self.add(code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
        for constant in code.co_consts:
            self.value(constant)

    def _class(self, kind: type) -> None:
        self.add(kind.__module__, kind.__qualname__)
        if not _is_own(kind.__module__):
            self.add(_version(kind.__module__))
            return
        for base in kind.__bases__:
            self.value(base)
        for name, member in sorted(vars(kind).items()):
            if name == "__slotnames__":  # the first pickling of an object leaves them there
                continue
            function = member
            if isinstance(member, (staticmethod, classmethod)):
                function = member.__func__
            elif isinstance(member, property):
                function = member.fget
            if isinstance(function, FunctionType) or _is_plain(function):
                self.add(name)
                self.value(function)


def _is_plain(value: Any) -> bool:
    if type(value) not in CONTAINERS:
        return type(value) in UNCHANGEABLE
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return all(map(_is_plain, parts))


@functools.cache
def _installed_in() -> tuple[str, ...]:
    places = sysconfig.get_paths()
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(os.path.join(os.path.realpath(places[kind]), "") for kind in kinds)


def _is_own(module: str) -> bool:
    """Whether a module is the program's own: neither Python's nor an installed package's."""
    if module in MAIN:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and not _is_installed(file)


@functools.cache
def _is_installed(file: str) -> bool:
    return os.path.realpath(file).startswith(_installed_in())


def _contents(file: str) -> bytes:
    """A digest of a file; empty if it cannot be read."""
    try:
        with open(file, "rb") as contents:
            return hashlib.file_digest(contents, "blake2b").digest()
    except OSError:
        return b""


@functools.cache
def _version(module: str) -> str:
    """Of the package that a module belongs to; empty if it has none."""
    package = sys.modules.get(module.partition(".")[0])
    return str(getattr(package, "__version__", ""))


def digest_of_file(path: str | bytes | os.PathLike[Any]) -> bytes:
    """Of the contents of a file up to `LARGEST_READ` bytes, else of its size and the time of its
    last change. Empty if it is no regular file or cannot be read."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # to read a FIFO would empty it
            return b""
        if status.st_size > LARGEST_READ:
            return f"{status.st_size} {status.st_mtime_ns}".encode()
        with open(path, "rb") as contents:
            return hashlib.file_digest(contents, "blake2b").digest()
    except (OSError, ValueError):
        return b""


class _Pickler(pickle.Pickler):
    """Pickles equal values alike, whether they are one object or several."""

    def __init__(self, file: io.BytesIO, take: Callable[[pickle.PickleBuffer], None]) -> None:
        super().__init__(file, 5, buffer_callback=take)
        self.fast = True

    def reducer_override(self, value: Any) -> Any:
        """Objects whose pickle does not identify them."""
        if isinstance(value, Shared):
            # Its content has gone to the workers: use its size.
            return str, (f"shared {value.nbytes} {value._version.parts}",)
        if isinstance(value, FunctionType):
            return str, (of_function(value).digest,)
        return NotImplemented


def digest_of(items: list[Any], files: Iterable[str | bytes | os.PathLike[Any]] = ()) -> bytes:
    """Of values that go as items, and of the files that go with them. Raises TypeError for what
    cannot be recognized in another run."""
    buffers: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    try:
        _Pickler(file, buffers.append).dump(items)
    except Exception:
        from gridrpc import _by_value

        del buffers[:]
        file = io.BytesIO(_by_value.dumps(items))
    found = hashlib.blake2b(file.getbuffer(), digest_size=DIGEST)
    for buffer in buffers:
        found.update(buffer.raw())
    for path in files:
        found.update(digest_of_file(path))
    return found.digest()


def _names_in(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_in(constant)
    return names
