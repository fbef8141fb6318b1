"""A data grid that can be measured, and the command lines of its processes."""

from __future__ import annotations

import difflib
import glob
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gridbench.datagrid.engines.build import LIBRARIES, Build, build_of
from gridbench.datagrid.engines.engine_file import Description, read_description
from gridbench.datagrid.engines.installation import install
from gridbench.datagrid.engines.java import java
from gridbench.datagrid.engines.sources import CORE, FILE, known_engines
from gridbench.engines.installing import Tell
from gridbench.errors import InputError

MEMBER = "gridbench.datagrid.process.MemberProcess"
CLIENT = "gridbench.datagrid.process.ClientProcess"
"""The main classes."""
_JVM = (
    "-XX:+DisplayVMOutputToStderr",  # standard output is for answers
    "-XX:-UsePerfData",  # no files in /tmp
    "-XX:+ExitOnOutOfMemoryError",  # one that cannot go on is not to linger
)


@dataclass(frozen=True, slots=True)
class Engine:
    """A data grid: one that comes with gridbench, or a user's own."""

    name: str
    file: Path
    """Its engine.toml."""
    described: Description
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

    def ensure(self, tell: Tell) -> None:
        """Build what has to be built; `tell` gets lines about it. InputError if it fails, or if
        something else is missing that it needs."""
        self._require_programs()
        if self.build.state().kind != "installed":
            install(self.build, tell)
        self.require()

    def require(self) -> None:
        """Raise InputError if something is missing that it needs."""
        self._require_programs()
        self.build.require()
        self.class_path()

    def _require_programs(self) -> None:
        java()
        for program in self.described.programs:
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
        for pattern in self.described.classpath:
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
        options = (*_JVM, f"-Xmx{memory}", *self.described.jvm, *extra)
        return [java(), *options, "-cp", path, main]


def find_engine(name: str | Path) -> Engine:
    """The data grid of this name, or of this path of an engine.toml or of its folder; InputError if
    there is none, or if a user's file or class path cannot be used."""
    known = known_engines()
    if isinstance(name, str) and name in known:
        return Engine(name, known[name], read_description(known[name]), own=True)
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
    engine = Engine(path.absolute().parent.name, path, read_description(path), own=False)
    engine.class_path()
    return engine


def own_engines() -> list[Engine]:
    """All data grids that come with gridbench."""
    return [find_engine(name) for name in known_engines()]
