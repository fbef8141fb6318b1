"""Detects changes in the objects that a pickled function refers to."""

from __future__ import annotations

import copyreg
import functools
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable
from enum import Enum, EnumMeta
from types import (
    BuiltinFunctionType,
    CodeType,
    EllipsisType,
    FunctionType,
    GenericAlias,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
    NotImplementedType,
    SimpleNamespace,
    UnionType,
)
from typing import Any, NamedTuple

from gridrpc import _native
from gridrpc._pickling import by_value_modules
from gridrpc._wrapped import name_of
from gridrpc.errors import CapturedStateWarning

#: Names of the main program; the second is that of children of `multiprocessing`.
MAIN = frozenset({"__main__", "__mp_main__"})
#: Types whose values are the same as long as they are the same object.
UNCHANGEABLE = frozenset({NoneType, bool, int, float, complex, str, bytes, ModuleType, type})

#: References that are compared one by one, of one function. With more, it is pickled again.
MOST_COMPARED = 1000
#: Bytes of arrays whose hash is compared, of one function.
MOST_HASHED = 16 << 20
#: A longer pickle is not made again to see whether it is the same, bytes.
MOST_PICKLED_AGAIN = 4 << 20

_PLAIN = frozenset({NoneType, bool, int, float, complex, str, bytes})
_CONTAINERS = frozenset({tuple, frozenset, list, dict, set})
#: Further types whose values do not change, and what is pickled by name.
_FIXED = frozenset(
    {
        range,
        slice,
        EllipsisType,
        NotImplementedType,
        GenericAlias,
        UnionType,
        GetSetDescriptorType,
        MemberDescriptorType,
        type(str.join),
        type(object.__init__),
        type(dict.__dict__["fromkeys"]),
    }
)
#: The same of modules that may not be loaded.
_FIXED_NAMES = frozenset(
    {
        "datetime.date",
        "datetime.datetime",
        "datetime.time",
        "datetime.timedelta",
        "datetime.timezone",
        "decimal.Decimal",
        "fractions.Fraction",
        "gridrpc._shared.Shared",
        "logging.Logger",
        "logging.RootLogger",
        "numpy.ufunc",
        "operator.attrgetter",
        "operator.itemgetter",
        "pathlib.PosixPath",
        "pathlib._local.PosixPath",
        "pathlib.PurePosixPath",
        "re.Pattern",
        "typing.ParamSpec",
        "typing.TypeVar",
        "typing._GenericAlias",
        "typing._SpecialForm",
        "typing._UnionGenericAlias",
        "uuid.UUID",
        "zoneinfo.ZoneInfo",
    }
)
#: Types whose objects do not change themselves, with what these are made of.
_MADE_OF: dict[type, tuple[str, ...]] = {
    MethodType: ("__func__", "__self__"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    functools._lru_cache_wrapper: ("__wrapped__",),
    functools.partial: ("func", "args", "keywords"),
}
#: Attributes of classes that hold nothing that functions compute with.
_OF_CLASSES = frozenset(
    {
        "__abstractmethods__",
        "__annotations__",
        "__annotations_cache__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__dict__",
        "__doc__",
        "__match_args__",
        "__module__",
        "__orig_bases__",
        "__parameters__",
        "__slots__",
        "__weakref__",
        "_abc_impl",
    }
)


class _Simple:
    """An object with nothing but attributes."""


class Captured(NamedTuple):
    """What a function referred to when it was pickled."""

    #: Compares it with what is there now. None: it refers to nothing that can change.
    references: _native.References | None
    #: Where there are objects that only another pickle can be compared with.
    unchecked: tuple[str, ...]
    #: Modules that it uses.
    modules: tuple[str, ...] = ()

    def is_current(self, function: Callable[..., Any]) -> bool:
        """Whether nothing that can be compared has changed."""
        return self.references is None or self.references.are_current(function)


NOTHING = Captured(None, ())


def has_state(function: object) -> bool:
    """Whether a callable is pickled at each submission, as a process pool does it.

    Objects, methods, partials and classes of the main program have state, and closures see
    variables. A plain function, and a closure over plain values, is compared with what it was.
    """
    if isinstance(function, FunctionType):
        if function.__closure__ is None:
            return False
        try:
            contents = [cell.cell_contents for cell in function.__closure__]
        except ValueError:  # a variable without a value yet
            return True
        return any(type(content) not in UNCHANGEABLE for content in contents)
    if isinstance(function, type):
        return importable_name(function) is None
    return not (
        isinstance(function, BuiltinFunctionType) and isinstance(function.__self__, ModuleType)
    )


def captured_by(function: Callable[..., Any]) -> Captured:
    """What a function refers to now. Warns of random generators."""
    if not isinstance(function, FunctionType) or importable_name(function) is not None:
        return NOTHING
    walk = _Walk(function)
    _warn_of_streams(function, walk.streams)
    references = _native.References(
        walk.own, walk.attributes, walk.mappings(), walk.lists, walk.sets, walk.arrays
    )
    return Captured(references, tuple(walk.unchecked), tuple(walk.modules))


#: Functions whose random generators the user has been warned of.
_warned: weakref.WeakSet[Any] = weakref.WeakSet()


class _Walk:
    """Goes through what cloudpickle would send with a function."""

    def __init__(self, root: FunctionType) -> None:
        #: As `_native.References` takes them.
        self.own: list[tuple[str, Any]] = []
        self.attributes: list[tuple[Any, str, Any]] = []
        self.lists: list[list[Any]] = []
        self.sets: list[tuple[set[Any], set[Any]]] = []
        self.arrays: list[Any] = []
        self._whole: list[tuple[Any, list[tuple[Any, Any]]]] = []
        #: By identity: global variables that functions name.
        self._globals: dict[int, tuple[dict[str, Any], dict[str, Any], set[str]]] = {}
        #: Objects that cannot be compared.
        self.unchecked: dict[str, None] = {}
        self.streams: list[str] = []
        #: Names of modules that are not installed.
        self.modules: list[str] = []
        self._seen = {id(root)}
        #: So that no other object gets the identity of one of these.
        self._held: list[Any] = []
        self._left: list[tuple[str, Any]] = []
        self._compared = 0
        self._hashed = 0
        self._function(name_of(root), root, is_root=True)
        while self._left:
            self._value(*self._left.pop())

    def mappings(self) -> list[tuple[Any, bool, list[tuple[Any, Any]], list[Any]]]:
        """Mappings whose keys all count, and global variables."""
        whole: list[tuple[Any, bool, list[tuple[Any, Any]], list[Any]]] = [
            (mapping, True, pairs, []) for mapping, pairs in self._whole
        ]
        named = [
            (variables, False, [*found.items()], [*absent])
            for variables, found, absent in self._globals.values()
            if found or absent
        ]
        return [*named, *whole]

    def _value(self, name: str, value: Any) -> None:
        kind = type(value)
        if kind in _PLAIN or kind in _FIXED or id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._held.append(value)
        if kind in _CONTAINERS:
            self._container(name, value)
        elif isinstance(value, FunctionType):
            if importable_name(value) is None:
                self._function(name, value)
        elif isinstance(value, type):
            if importable_name(value) is None:
                self._class(name, value)
        elif isinstance(value, ModuleType | BuiltinFunctionType):
            if not _goes_by_name(value):
                self._unchecked(name)
            elif isinstance(value, ModuleType) and _may_be_edited(value):
                # A reload gives it another.
                self.attributes.append((value, "__spec__", value.__spec__))
                self.modules.append(value.__name__)
        elif isinstance(kind, EnumMeta):
            self._left.append((name, kind))
        elif (inner := _inner(value)) is not None:
            self._add(name, inner)
        elif not _is_fixed(value, kind):
            self._object(name, value, kind)

    def _container(self, name: str, value: Any) -> None:
        kind = type(value)
        if kind is dict:
            self._dict(name, value)
        elif kind is set:
            if not all(map(_is_plain, value)):
                self._unchecked(name)
            elif self._may_compare(name, len(value)):
                self.sets.append((value, value.copy()))
        elif kind is not list:
            self._add(name, value)
        elif self._may_compare(name, len(value)):
            self.lists.append(value)
            self._add(name, value)

    def _add(self, name: str, values: Iterable[Any]) -> None:
        """Look at these, too."""
        self._left.extend((f"{name}[{at}]", value) for at, value in enumerate(values))

    def _unchecked(self, name: str) -> None:
        self.unchecked[name] = None

    def _may_compare(self, name: str, count: int) -> bool:
        """Whether so many more may be compared one by one."""
        if self._compared + count > MOST_COMPARED:
            self._unchecked(name)
            return False
        self._compared += count
        return True

    def _dict(self, name: str, value: Any, form: str = "{}[{!r}]") -> None:
        if not all(map(_is_plain, value)):
            self._unchecked(name)
        elif self._may_compare(name, len(value)):
            self._whole.append((value, [*value.items()]))
            for key, item in value.items():
                if type(item) not in _PLAIN:
                    self._left.append((form.format(name, key), item))

    def _function(self, name: str, function: Any, *, is_root: bool = False) -> None:
        own = [(part, getattr(function, part)) for part in _PARTS]
        if is_root:
            self.own += own
        else:
            self.attributes += [(function, part, value) for part, value in own]
        self._dict(name, function.__dict__, "{}.{}")
        self._left.append((f"{name}.__defaults__", function.__defaults__))
        self._left.append((f"{name}.__kwdefaults__", function.__kwdefaults__))
        variables = function.__globals__
        _, found, absent = self._globals.setdefault(id(variables), (variables, {}, set()))
        for variable in _global_names(function.__code__):
            if variable in variables:
                found[variable] = variables[variable]
                self._left.append((variable, variables[variable]))
            else:
                absent.add(variable)
        for variable, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                contents = cell.cell_contents
            except ValueError:
                self._unchecked(variable)
                continue
            self.attributes.append((cell, "cell_contents", contents))
            self._left.append((variable, contents))

    def _class(self, name: str, kind: type) -> None:
        attributes = kind.__dict__
        if not self._may_compare(name, len(attributes)):
            return
        self._whole.append((attributes, [*attributes.items()]))
        self._add(name, (type(kind), *kind.__bases__))
        for attribute, value in attributes.items():
            if attribute not in _OF_CLASSES and (
                not issubclass(kind, Enum) or isinstance(value, FunctionType)
            ):
                self._left.append((f"{name}.{attribute}", value))

    def _object(self, name: str, value: Any, kind: type) -> None:
        numpy = sys.modules.get("numpy")
        if numpy is not None and kind is numpy.ndarray:
            self._array(name, value)
            return
        if _is_stream(value):
            self.streams.append(name)
        if kind is SimpleNamespace or _is_simple(value, kind):
            attributes = value.__dict__
            self.attributes.append((value, "__dict__", attributes))
            self._dict(name, attributes, "{}.{}")
            self._left.append((name, kind))
        else:
            self._unchecked(name)

    def _array(self, name: str, array: Any) -> None:
        self._hashed += array.nbytes
        flags = array.flags
        if (
            array.dtype.kind not in "biufc"
            or self._hashed > MOST_HASHED
            or not (flags.c_contiguous or flags.f_contiguous)
        ):
            self._unchecked(name)
        else:
            self.arrays.append(array)


_PARTS = ("__code__", "__defaults__", "__kwdefaults__")


def _goes_by_name(value: ModuleType | BuiltinFunctionType) -> bool:
    if isinstance(value, BuiltinFunctionType):
        return isinstance(value.__self__, ModuleType | type | None)
    return value.__name__ in sys.modules and value.__name__ not in by_value_modules()


def _may_be_edited(module: ModuleType) -> bool:
    """Whether a module is in a file of the program's own."""
    file = vars(module).get("__file__")
    return isinstance(file, str) and not file.startswith((sys.prefix, sys.base_prefix))


def _is_plain(value: Any) -> bool:
    """Whether a key, or an element of a set, can be compared without the user's code."""
    kind = type(value)
    return kind in _PLAIN or (kind is tuple and all(map(_is_plain, value)))


def _inner(value: Any) -> tuple[Any, ...] | None:
    """What an object that does not change itself is made of; None: it is not such an object."""
    names = _MADE_OF.get(type(value))
    return None if names is None else tuple(getattr(value, name) for name in names)


def _is_fixed(value: Any, kind: type) -> bool:
    """Whether an object does not change, or goes by name."""
    if f"{kind.__module__}.{kind.__qualname__}" in _FIXED_NAMES:
        return True
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic | numpy.dtype):
        return not isinstance(value, numpy.void)
    return isinstance(getattr(value, "__qualname__", None), str) and (
        importable_name(value) is not None
    )


def _is_simple(value: Any, kind: Any) -> bool:
    """Whether an object is pickled as its class and its attributes."""
    return (
        kind.__basicsize__ == _Simple.__basicsize__
        and kind.__itemsize__ == 0
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and kind.__getattribute__ is object.__getattribute__
        and getattr(kind, "__getstate__", None) is getattr(object, "__getstate__", None)
        and not hasattr(kind, "__getnewargs_ex__")
        and not hasattr(kind, "__getnewargs__")
        and kind not in copyreg.dispatch_table
        # An object of the native module may have the same size, and no attributes.
        and type(getattr(value, "__dict__", None)) is dict
    )


def _is_stream(value: Any) -> bool:
    standard, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
    return (standard is not None and isinstance(value, standard.Random)) or (
        numpy is not None and isinstance(value, numpy.Generator | numpy.RandomState)
    )


def _global_names(code: CodeType) -> Iterable[str]:
    """Names of the global variables that cloudpickle sends with a function."""
    from cloudpickle import cloudpickle  # not for functions that go by name

    names: Iterable[str] = cloudpickle._extract_code_globals(code)
    return names


def warn_of_stale(function: Callable[..., Any], captured: Captured, size: int) -> None:
    """Warn that workers may use an old state of what a function refers to."""
    names = _listed(captured.unchecked)
    _warn(
        f"`{name_of(function)}` was not pickled again: its pickle has {size / 1e6:.0f} MB, and "
        f"workers use {names} as it was when they first called the function. Pass {names} as an "
        "argument, or share it with `Grid.share`"
    )


def warn_of_edit(module: str, file: str) -> None:
    """Warn that workers may run the old code of a module."""
    _warn(
        f"`{file}` has been changed since workers loaded the module `{module}`, and they may run "
        f'the old code: call `grid.reload("{module}")`'
    )


def warn_of_streams(function: FunctionType) -> None:
    """Warn of random generators that a closure refers to."""
    if function not in _warned:
        _warn_of_streams(function, _Walk(function).streams)


def _warn_of_streams(function: FunctionType, names: list[str]) -> None:
    if names and function not in _warned:
        _warn(
            f"`{name_of(function)}` refers to the random generator {_listed(names)}: each worker "
            "gets a copy, and all copies return the same numbers. Pass each call a seed, or a "
            "generator of its own from `numpy.random.Generator.spawn`"
        )
    _warned.add(function)


def _listed(names: Iterable[str]) -> str:
    first = [f"`{name}`" for name in names]
    return ", ".join(first[:3]) + (" and others" if len(first) > 3 else "")


def _warn(text: str) -> None:
    """Warn at the line of the user's program."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, CapturedStateWarning, stacklevel=depth)


def importable_name(function: Any) -> str | None:
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
