"""The path to an object that cannot be pickled, for the message of the error."""

from __future__ import annotations

import functools
import sys
from contextlib import suppress
from time import monotonic
from types import (
    AsyncGeneratorType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

from gridrpc import _by_value
from gridrpc._references import _global_names, importable_name
from gridrpc._wrapped import Wrapped, name_of

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from collections.abc import Iterator

    Parts = Iterator[tuple[str, Any]]

#: Seconds that the search may take, and how many objects deep it goes.
LONGEST = 1.0
DEEPEST = 30
#: What to do instead, by the name of a type.
HINTS = {
    "_thread.lock": "workers share no locks: use that of a `multiprocessing.Manager`",
    "_thread.RLock": "workers share no locks: use that of a `multiprocessing.Manager`",
    "builtins.async_generator": "collect its items in a list",
    "builtins.coroutine": "await it in the function",
    "builtins.generator": "make a list of it",
    "gridrpc._native.Modules": "in a function, `gridrpc.current_grid()` is the grid that runs it",
    "gridrpc._native.Target": "a compiled function cannot be called by a Python function in a "
    "worker: give it to `submit` or `map` itself",
    "_contextvars.ContextVar": "pass its value as an argument",
}


def explain(value: object, error: BaseException) -> None:
    """Add to an error of pickling where in `value` it came from, and what to do."""
    path, culprit = _search(value)
    for awaitable in (culprit, value):
        if isinstance(awaitable, CoroutineType):
            awaitable.close()  # nobody will await it, and Python would say so
    kind = type(culprit)
    hint = HINTS.get(
        f"{kind.__module__}.{kind.__qualname__}", "make it in the worker (`initializer=`)"
    )
    text = f"{' -> '.join(path)}; {hint}" if path else hint
    with suppress(Exception):  # it may refuse to be changed
        if len(error.args) == 1 and isinstance(error.args[0], str):
            error.args = (f"{error.args[0]}: {text}",)
        else:
            error.add_note(f"gridrpc: {text}")


def _search(value: Any) -> tuple[list[str], Any]:
    """The steps to what cannot be pickled, and this object, as far as there is time to find it."""
    until = monotonic() + LONGEST
    path: list[str] = []
    parts, seen = _rooted(value), {id(value)}
    while len(path) < DEEPEST:
        failing = None
        for step, part in parts:
            if monotonic() > until:
                break
            if id(part) not in seen and not _can_be_pickled(part):
                failing = step, part
                break
        if failing is None:
            break
        step, value = failing
        seen.add(id(value))
        if step:
            path.append(step)
        parts = _parts(value)
    return path, value


def _can_be_pickled(value: Any) -> bool:
    try:
        _by_value.dumps(value, _drop)
    except Exception:
        return False
    return True


def _drop(_: Any) -> bool:
    return False


def _rooted(value: Any) -> Parts:
    """The parts of what was to be pickled: a call, a result, or a function."""
    worker = sys.modules.get("gridrpc._worker")
    if type(value) is tuple and [*map(type, value)] == [tuple, dict]:
        args, kwargs = value
        for at, argument in enumerate(args, 1):
            yield f"argument {at}", argument
        for name, argument in kwargs.items():
            yield f"argument {name!r}", argument
    elif worker is not None and worker.serving:
        for name, part in _parts(value):
            yield f"result -> {name}", part
    elif type(value) is tuple:
        for at, argument in enumerate(value, 1):
            yield f"argument {at}", argument
    elif isinstance(value, Wrapped):
        yield name_of(value.function), value.function
    elif isinstance(value, (FunctionType, type)):
        name = name_of(value)
        for step, part in _parts(value):
            yield f"{name} -> {step}", part
    else:
        yield from _parts(value)


def _parts(value: Any) -> Parts:
    """What goes into the pickle of an object, each part with its name."""
    if isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{at}]", item) for at, item in enumerate(value))
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"[{key!r}]", item
            yield f"key {key!r}", key
    if isinstance(value, FunctionType):
        yield from _of_function(value)
    elif isinstance(value, type):
        if importable_name(value) is None:
            yield from ((f"attribute {name!r}", part) for name, part in vars(value).items())
            yield from (("base class", base) for base in value.__bases__)
    elif isinstance(value, (property, staticmethod, classmethod)):
        for name in ("fget", "fset", "fdel", "__func__"):
            yield name, getattr(value, name, None)
    elif isinstance(value, MethodType):
        yield "its object", value.__self__
        yield "", value.__func__
    elif isinstance(value, functools.partial):
        yield "its function", value.func
        yield from ((f"argument {at}", item) for at, item in enumerate(value.args, 1))
        yield from ((f"argument {name!r}", item) for name, item in value.keywords.items())
    elif not isinstance(value, (ModuleType, GeneratorType, CoroutineType, AsyncGeneratorType)):
        yield from _of_object(value)


def _of_function(function: Any) -> Parts:
    if importable_name(function) is not None:
        return
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield f"global {name!r}", function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a variable without a value yet
            yield f"variable {name!r}", cell.cell_contents
    for default in [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]:
        yield "a default", default
    yield from ((f"attribute {name!r}", part) for name, part in vars(function).items())


def _of_object(value: Any) -> Parts:
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict):
        yield from ((f"attribute {name!r}", part) for name, part in attributes.items())
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:
        return
    if isinstance(reduced, tuple):
        for part in reduced[1:3]:
            if part is attributes:
                continue
            if isinstance(part, dict):
                yield from ((f"attribute {name!r}", item) for name, item in part.items())
            elif isinstance(part, tuple):
                for item in part:
                    if isinstance(item, dict):
                        yield from ((f"attribute {name!r}", one) for name, one in item.items())
                    else:
                        yield "", item
    yield f"class {type(value).__qualname__!r}", type(value)
