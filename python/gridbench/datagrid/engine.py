"""Data grids that can be measured: what engine.toml says of one, and how its processes start."""

from __future__ import annotations

import difflib
import glob
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from gridbench.datagrid.engine_build import (
    CORE,
    FILE,
    LIBRARIES,
    Build,
    build_of,
    install,
    java,
    known_engines,
)
from gridbench.engines.installing import Tell
from gridbench.errors import InputError
from gridbench.quantities import MB
from gridbench.read_config import line_of_key, parse_toml, read_text
from gridbench.workload.numbers import shown

# ---- engine.toml


_REMEDY = "see docs/adding-a-data-grid.md for what such a file says"


def _count(default: int, least: int = 0, most: int | None = None) -> Any:
    """A field with limits."""
    return field(default=default, metadata={"limits": (least, most)})


@dataclass(frozen=True, slots=True)
class DataGridManifest:
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
    ports: int = _count(1)
    """How many a member may listen at."""
    alone: bool = False
    """Whether the first member has to have joined before others are started."""
    least_members: int = _count(1, least=1)
    most_backups: int = _count(0)
    """Copies of each object beside the first one that it can keep; 0: any number."""
    member_overhead: int = _count(100)
    """MB that a member takes before there are data."""
    object_overhead: int = _count(100)
    """Bytes that an object takes beside its key and value, in each copy."""
    heap: bool = True
    """Whether the data are in Java's heap."""
    heap_percent: int = _count(100, least=1, most=100)
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
        """Bytes that such a member may take for data and all else."""
        if not self.divided:
            return memory
        return max(0, memory - self.heap_of(memory) - self.member_overhead * MB)

    @property
    def stated(self) -> dict[str, str]:
        """What each case keeps of it."""
        return {"version": self.version, "settings": self.settings}


_KEYS = {one.name.replace("class_name", "class"): one for one in fields(DataGridManifest)}
_NEEDED = ("title", "class")
_KINDS = {
    "str": "a text in quotes",
    "bool": "true or false",
    "int": "a whole number",
    "tuple[str, ...]": "a list of texts",
}
_CLASS = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*")


def read_manifest(file: Path) -> DataGridManifest:
    """What a file says. InputError with the file, the line, and what is wrong."""
    text = read_text(file, "file of a data grid", _REMEDY)
    table = parse_toml(file, text, _REMEDY)
    try:
        return _manifest(table)
    except InputError as error:
        key = error.what.split("`")[1]
        raise InputError(
            error.what, file=file, line=line_of_key(text, key), remedy=error.remedy or _REMEDY
        ) from None


def _manifest(table: Mapping[str, Any]) -> DataGridManifest:
    for key in table:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            remedy = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(_KEYS)}"
            raise InputError(f"`{shown(key)}` is not known", remedy=remedy)
    for key in _NEEDED:
        if key not in table:
            raise InputError(f"`{key}` is missing")
    return DataGridManifest(**{_KEYS[key].name: _value(key, value) for key, value in table.items()})


def _value(key: str, value: Any) -> Any:
    kind = str(_KEYS[key].type)
    if kind == "tuple[str, ...]":
        right = isinstance(value, list) and all(isinstance(one, str) and one for one in value)
        value = tuple(value) if right else value
    else:
        right = type(value).__name__ == kind
    if not right:
        raise InputError(f"`{key}` must be {_KINDS[kind]}, not `{shown(str(value))}`")
    least, most = _KEYS[key].metadata.get("limits", (None, None))
    if least is not None and value < least:
        raise InputError(f"`{key}` must be {least} or more, not {value}")
    if most is not None and value > most:
        raise InputError(f"`{key}` must be {most} or less, not {value}")
    if key == "class" and not _CLASS.fullmatch(value):
        raise InputError(f"`class` must be the full name of a Java class, not `{shown(value)}`")
    if key == "title" and not value.strip():
        raise InputError("`title` is empty")
    return value


# ---- Data grids

MEMBER = "gridbench.datagrid.process.MemberProcess"
CLIENT = "gridbench.datagrid.process.ClientProcess"
"""The main classes."""
_JVM = (
    "-XX:+DisplayVMOutputToStderr",  # standard output is for answers
    "-XX:-UsePerfData",  # no files in /tmp
    "-XX:+ExitOnOutOfMemoryError",  # one that cannot continue is not to linger
)


@dataclass(frozen=True, slots=True)
class DataGridEngine:
    """A data grid: one that comes with gridbench, or a user's own."""

    name: str
    file: Path
    """Its engine.toml."""
    manifest: DataGridManifest
    own: bool
    """Whether it comes with gridbench, and is built by it."""

    @property
    def known_as(self) -> str:
        """What `find_engine` finds it by."""
        return self.name if self.own else str(self.file.absolute())

    @property
    def build(self) -> Build:
        """What has to be built for it: itself, or the core that runs a user's own."""
        return build_of(self.name) if self.own else Build(CORE)

    def ensure(self, notify: Tell) -> None:
        """Build what has to be built; `tell` gets lines about it. InputError if it fails, or if
        something else is missing that it needs."""
        self._require_programs()
        if self.build.state().kind != "installed":
            install(self.build, notify)
        self.require()

    def require(self) -> None:
        """Raise InputError if something is missing that it needs."""
        self._require_programs()
        self.build.require()
        self.class_path()

    def _require_programs(self) -> None:
        java()
        for program in self.manifest.programs:
            if shutil.which(program) is None:
                raise InputError(
                    f"the engine `{self.name}` needs the program `{program}`, which is not on PATH",
                    file=None if self.own else self.file,
                    remedy=f"install {program}, or choose another engine",
                )

    def class_path(self) -> list[str]:
        """Jars and folders, those of the engine first. InputError names what is not there."""
        ours = [str(self.build.folder / LIBRARIES / "*")]
        if self.own:
            return ours
        found = []
        for pattern in self.manifest.classpath:
            paths = sorted(glob.glob(os.path.join(self.file.parent.absolute(), pattern)))
            if not paths:
                raise InputError(
                    f"`classpath`: there is no {pattern} in {self.file.parent.absolute()}",
                    file=self.file,
                    remedy="build it first, or correct the path, which is relative to the file",
                )
            found += paths
        return found + ours

    def command(self, main: str, memory: int, extra: Sequence[str] = ()) -> list[str]:
        """How a process is started: `MEMBER` or `CLIENT`, with so many bytes of heap at most.

        `extra`: further options of Java. InputError if something is missing.
        """
        path = os.pathsep.join(self.class_path())
        options = (*_JVM, f"-Xmx{memory}", *self.manifest.jvm, *extra)
        return [java(), *options, "-cp", path, main]


def find_engine(name: str | Path) -> DataGridEngine:
    """The data grid of this name, or of this path of an engine.toml or of its folder; InputError if
    there is none, or if a user's file or class path cannot be used."""
    known = known_engines()
    if isinstance(name, str) and name in known:
        return DataGridEngine(name, known[name], read_manifest(known[name]), own=True)
    path = Path(name)
    if isinstance(name, str) and not ("/" in name or name.endswith(".toml")):
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        guess = f"did you mean `{near[0]}`? " if near else ""
        raise InputError(
            f"unknown data grid `{name}`",
            remedy=f"{guess}known are {', '.join(known)}, or the path of your own {FILE}",
        )
    if path.is_dir():
        path = path / FILE
    engine = DataGridEngine(path.absolute().parent.name, path, read_manifest(path), own=False)
    engine.class_path()
    return engine


def own_engines() -> list[DataGridEngine]:
    """All data grids that come with gridbench."""
    return [find_engine(name) for name in known_engines()]
