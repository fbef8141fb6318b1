"""The file of a data grid, engine.toml: what the benchmark has to know of it."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.read_config import read_text
from gridbench.workload.numbers import shown

MB = 1 << 20
_REMEDY = "see docs/adding-a-data-grid.md for what such a file says"


@dataclass(frozen=True, slots=True)
class Description:
    """What engine.toml says, with its names, but for `class_name`, which it calls `class`."""

    title: str
    class_name: str
    """The Java class that implements gridbench.datagrid.DataGrid."""
    classpath: tuple[str, ...] = ()
    """Jars and folders with classes, as paths and patterns from the file's folder."""
    version: str = ""
    """Of the product."""
    jvm: tuple[str, ...] = ()
    """Options of Java for members and clients."""
    members: bool = True
    """Whether there are storage members at all."""
    ports: int = 1
    """How many a member may listen at."""
    alone: bool = False
    """Whether the first member has to have joined before others are started."""
    least_members: int = 1
    most_backups: int = 0
    """Copies of each object beside the first one that it can keep; 0: any number."""
    member_overhead: int = 100
    """MB that a member takes before there are data."""
    object_overhead: int = 100
    """Bytes that an object takes beside its key and value, in each copy."""
    heap: bool = True
    """Whether the data are in Java's heap."""
    heap_percent: int = 100
    """Of a member's memory, what Java's heap gets, if the same process has the data outside of it:
    they have the rest, but for `member_overhead`."""
    programs: tuple[str, ...] = ()
    """Programs on PATH that it needs."""
    storage: str = ""
    """The program that holds the data, if it is not Java."""
    settings: str = ""
    """How the product is configured, in a line."""

    @property
    def divided(self) -> bool:
        """Whether a member's memory is divided into Java's heap and what is outside of it."""
        return self.heap_percent < 100

    def heap_of(self, memory: int) -> int:
        """Bytes of Java's heap of a member that has so many in all."""
        return memory * self.heap_percent // 100

    def data_of(self, memory: int) -> int:
        """Bytes that such a member is told to take for data, and for all else that is with them."""
        if not self.divided:
            return memory
        return max(0, memory - self.heap_of(memory) - self.member_overhead * MB)

    @property
    def stated(self) -> dict[str, str]:
        """What each case keeps of it."""
        return {"version": self.version, "settings": self.settings}


_KEYS = {field.name.replace("class_name", "class"): field for field in fields(Description)}
_NEEDED = ("title", "class")
_KINDS = {
    "str": "a text in quotes",
    "bool": "true or false",
    "int": "a whole number",
    "tuple[str, ...]": "a list of texts",
}
_LEAST = {
    "ports": 0,
    "least_members": 1,
    "most_backups": 0,
    "member_overhead": 0,
    "object_overhead": 0,
    "heap_percent": 1,
}
_MOST = {"heap_percent": 100}
_CLASS = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*")


def read_description(file: Path) -> Description:
    """What a file says. InputError with the file, the line, and what is wrong."""
    text = read_text(file, "file of a data grid", _REMEDY)
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        where = re.search(r" \(at line ([0-9]+)", str(error))
        line = int(where[1]) if where else None
        raise InputError(f"is not TOML: {error}", file=file, line=line, remedy=_REMEDY) from None
    try:
        return _description(table)
    except InputError as error:
        key = error.what.split("`")[1]
        raise InputError(
            error.what, file=file, line=_line_of(text, key), remedy=error.remedy or _REMEDY
        ) from None


def _description(table: Mapping[str, Any]) -> Description:
    for key in table:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            remedy = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(_KEYS)}"
            raise InputError(f"`{shown(key)}` is not known", remedy=remedy)
    for key in _NEEDED:
        if key not in table:
            raise InputError(f"`{key}` is missing")
    return Description(**{_KEYS[key].name: _value(key, value) for key, value in table.items()})


def _value(key: str, value: Any) -> Any:
    kind = str(_KEYS[key].type)
    if kind == "tuple[str, ...]":
        right = isinstance(value, list) and all(isinstance(one, str) and one for one in value)
        value = tuple(value) if right else value
    else:
        right = type(value).__name__ == kind
    if not right:
        raise InputError(f"`{key}` must be {_KINDS[kind]}, not `{shown(str(value))}`")
    if key in _LEAST and value < _LEAST[key]:
        raise InputError(f"`{key}` must be {_LEAST[key]} or more, not {value}")
    if key in _MOST and value > _MOST[key]:
        raise InputError(f"`{key}` must be {_MOST[key]} or less, not {value}")
    if key == "class" and not _CLASS.fullmatch(value):
        raise InputError(f"`class` must be the full name of a Java class, not `{shown(value)}`")
    if key == "title" and not value.strip():
        raise InputError("`title` is empty")
    return value


def _line_of(text: str, key: str) -> int | None:
    """Where a key stands, if it does."""
    found = re.search(rf"^[ \t]*[\"']?{re.escape(key)}[\"']?[ \t]*=", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else None
