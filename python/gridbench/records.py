"""Dataclasses from JSON, checked: errors name the place of a wrong value."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from pathlib import Path
from typing import Any, Literal, TypeVar

T = TypeVar("T")


class RecordError(Exception):
    """A record does not have the form that its dataclass asks for; says what, and where in it."""


def from_record(kind: type[T], record: Any, place: str = "") -> T:
    """`record`, as `json.loads` gives it, as the dataclass `kind`.

    Fields can be strings, paths, booleans, finite numbers, choices (Literal), one of these or None,
    tuples of one kind, dicts with string keys, and further dataclasses. Fields with a default
    may be missing, and unknown keys are ignored. `place` names the record in messages. Raises
    RecordError.
    """
    if not isinstance(record, dict):
        raise RecordError(f"{place or 'the whole'} is {_named(record)}, not an object")
    found: dict[str, Any] = {}
    for field, hint in _fields(kind):
        inner = f"{place}.{field.name}" if place else field.name
        if field.name in record:
            found[field.name] = _value(hint, record[field.name], inner)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise RecordError(f"{inner} is missing")
    return kind(**found)


_Fields = tuple[tuple[dataclasses.Field[Any], Any], ...]
_known: dict[type[Any], _Fields] = {}


def _fields(kind: type[Any]) -> _Fields:
    """Fields with their types. To look these up takes longer than to read a record."""
    if kind not in _known:
        hints = typing.get_type_hints(kind)
        _known[kind] = tuple((field, hints[field.name]) for field in dataclasses.fields(kind))
    return _known[kind]


def _value(hint: Any, value: Any, place: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or (value is None and type(None) in arguments):
        return value
    if origin in (typing.Union, types.UnionType):
        return _value(next(part for part in arguments if part is not type(None)), value, place)
    if origin in (tuple, dict):
        return _several(origin, arguments, value, place)
    if dataclasses.is_dataclass(hint):
        return from_record(typing.cast("type[Any]", hint), value, place)
    if origin is Literal:
        if isinstance(value, str) and value in arguments:
            return value
        raise RecordError(f"{place} is {_named(value)}, not one of {', '.join(arguments)}")
    return _plain(hint, value, place)


def _several(origin: type, arguments: tuple[Any, ...], value: Any, place: str) -> Any:
    if origin is tuple:
        if not isinstance(value, list):
            raise RecordError(f"{place} is {_named(value)}, not a list")
        return tuple(_value(arguments[0], item, f"{place}[{n}]") for n, item in enumerate(value))
    if not isinstance(value, dict):
        raise RecordError(f"{place} is {_named(value)}, not an object")
    return {name: _value(arguments[1], item, f"{place}.{name}") for name, item in value.items()}


def _plain(hint: Any, value: Any, place: str) -> Any:
    # True is an int to Python, but nobody's number.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float and number:
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        if math.isfinite(result):
            return result
        raise RecordError(f"{place} is not a finite number")
    if hint is Path and isinstance(value, str):
        return Path(value)
    if (hint is int and number and isinstance(value, int)) or (
        hint in (str, bool) and isinstance(value, hint)
    ):
        return value
    name = {
        float: "a number",
        int: "a whole number",
        str: "a text",
        Path: "a path",
        bool: "true or false",
    }[hint]
    raise RecordError(f"{place} is {_named(value)}, not {name}")


def _named(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value)
    return f"`{text if len(text) <= 40 else text[:37] + '...'}`"
