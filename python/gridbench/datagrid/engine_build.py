"""Builds of gridbench's own data grids: their sources, Java, Maven, and what is installed.

Maven makes of a data grid a folder `datagrid/NAME` below the folder of all engines. It has the file
engine.toml, the class path in target/lib, and a marker with the digest of the sources. Maven
fetches jars into its own repository (~/.m2), with its own settings.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from gridbench.engines import installing
from gridbench.engines.installing import (
    Installable,
    InstallationState,
    Tell,
    environments_folder,
    failure,
    run_logged,
)
from gridbench.errors import InputError

# ---- Java and Maven

OLDEST = 17
"""Java's version that the data grids need, at least."""
_JAVA = (
    f"install a JDK of version {OLDEST} or newer (Debian: apt-get install openjdk-17-jdk-headless),"
    " or set JAVA_HOME to one"
)
_MAVEN = "install Maven (Debian: apt-get install maven)"


def java() -> str:
    """The program that runs Java: that of JAVA_HOME, or the first on PATH. InputError if there is
    none, or an old one."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(Path(home, "bin", "java")) if home else shutil.which("java")
    if found is None:
        where = f"in JAVA_HOME, which is {home}" if home else "on PATH"
        raise InputError(f"data grids need Java, and there is none {where}", remedy=_JAVA)
    version = _version_of(found)
    if version < OLDEST:
        raise InputError(
            f"data grids need Java {OLDEST} or newer, and {found} is Java {version}", remedy=_JAVA
        )
    return found


def maven() -> str:
    """The program that builds. InputError if there is none."""
    found = shutil.which("mvn")
    if found is None:
        raise InputError(
            "data grids are built by Maven, and there is no program `mvn` on PATH", remedy=_MAVEN
        )
    return found


@functools.cache
def _version_of(program: str) -> int:
    """The main version of a Java."""
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    said = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if done.returncode != 0 or said is None:
        first = next(iter((done.stderr + done.stdout).splitlines()), "nothing")
        raise InputError(f"{program} does not print its version, but: {first}", remedy=_JAVA)
    return int(said[1])


# ---- Sources

FILE = "engine.toml"
"""What describes a data grid, in its folder."""
CORE = "embedded"
"""The data grid that is nothing but the core; what else lives in the core is built with it."""

_PACKAGE = Path(__file__).resolve().parent
_LEFT_OUT = ("target", "test")


def sources() -> Path:
    """The folder with Maven's project. InputError if there is none."""
    places = (_PACKAGE / "java", _PACKAGE.parents[2] / "datagrid")
    for place in places:
        if (place / "pom.xml").is_file():
            return place
    raise InputError(
        "the sources of the data grids are missing",
        file=places[0],
        remedy="install the package gridrpc again, which gridbench is part of",
    )


def known_engines() -> dict[str, Path]:
    """The file of each data grid that comes with gridbench, by name, sorted."""
    return {file.parent.name: file for file in sorted(sources().glob(f"engines/*/{FILE}"))}


def module_of(name: str) -> str:
    """Build folder of a data grid, below the sources."""
    module = f"engines/{name}"
    return module if (sources() / module / "pom.xml").is_file() else "core"


def digest(name: str) -> str:
    """Tells whether the sources that a data grid is built from are the same."""
    root = sources()
    found = hashlib.sha256()
    for path in _files(root):
        place = path.relative_to(root).as_posix()
        if place == "pom.xml" or place.startswith(("core/", f"engines/{name}/")):
            content = path.read_bytes()
            found.update(f"{place}\0{len(content)}\0".encode())
            found.update(content)
    return found.hexdigest()


def copy_sources(folder: Path) -> None:
    """Copy them all, without tests and what was built. OSError if it cannot be done."""
    root = sources()
    for path in _files(root):
        copy = folder / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _LEFT_OUT:
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


# ---- Builds

MARKER = "gridbench-built.txt"
"""Written last: the digest of the sources."""
LIBRARIES = Path("target", "lib")


class Build(Installable):
    """A data grid, built or not."""

    commands = "gridbench data engines"
    kind = "build"

    def __init__(self, name: str) -> None:
        super().__init__(environments_folder() / "datagrid", name)
        self.module = module_of(name)
        """What Maven builds for it."""

    def state_unlocked(self) -> InstallationState:
        """As `state`, for who keeps others from changing it."""
        if not self.folder.exists():
            return InstallationState("missing", what="is not installed", remedy=self.remedy)
        marker = self.folder / MARKER
        if not marker.is_file():
            what = "is half installed: its build was cut off"
            return InstallationState(
                "half installed", "", what, f"{self.remedy}, which rebuilds it"
            )
        if not any((self.folder / LIBRARIES).glob("*.jar")):
            what = f"is half installed: {self.folder / LIBRARIES} is empty"
            return InstallationState(
                "half installed", "", what, f"{self.remedy}, which rebuilds it"
            )
        if marker.read_text(encoding="ascii") != digest(self.name):
            what = "is of another version: its sources have changed since it was built"
            return InstallationState("other version", "", what, self.remedy)
        return InstallationState("installed")

    def require_tools(self) -> None:
        """Raise InputError if Java or Maven is missing."""
        java()
        maven()


def build_of(name: str) -> Build:
    """What the data grid `name` of gridbench's own lives in."""
    return Build(CORE if module_of(name) == "core" else name)


_CAUSES = (
    (
        ("No compiler is provided in this environment",),
        "this Java has no compiler",
        "install a JDK (Debian: apt-get install openjdk-17-jdk-headless)",
    ),
    (
        (
            "UnknownHostException",
            "Unknown host",
            "Temporary failure in name resolution",
            "Network is unreachable",
            "Connection refused",
            "Connection reset",
            "Connect timed out",
            "connect timed out",
            "Read timed out",
            "SSLHandshakeException",
            "PKIX path building failed",
            "in offline mode",
        ),
        "Maven's repository cannot be reached",
        "see to the network, or to Maven's settings (~/.m2/settings.xml), and try again",
    ),
    (
        ("Could not find artifact", "was not found in"),
        "Maven's repository has no such jar",
        "see to Maven's settings (~/.m2/settings.xml): which repository they name",
    ),
)


def install(build: Build, notify: Tell) -> None:
    """Build or repair a data grid; `tell` gets lines about the progress.

    Does nothing if it is built from these very sources. InputError if it fails, and then nothing is
    left of it but the log.
    """
    installing.install(build, _make, notify)


def _make(build: Build, lock: int, notify: Tell) -> None:
    content = digest(build.name)
    work = build.folder / "sources"
    copy_sources(work)
    # Two of Maven's processes may not fill its repository at the same time.
    with (build.root / ".maven.lock").open("a") as alone, build.log.open("wb") as log:
        fcntl.flock(alone, fcntl.LOCK_EX)
        notify(f"building with Maven (log: {build.log}) ...")
        command = [maven(), "-q", "-B", "-U", "-pl", build.module, "-am", "package", "-DskipTests"]
        # A newer compiler may warn of what was in order when the sources were written.
        command.append("-Dmaven.compiler.failOnWarning=false")
        home = os.path.dirname(os.path.dirname(os.path.realpath(java())))
        status = run_logged(
            command, log, lock, folder=work, variables=os.environ | {"JAVA_HOME": home}
        )
    if status != 0:
        raise failure(build, status, "Maven", _CAUSES)
    (build.folder / LIBRARIES).parent.mkdir()
    os.replace(work / build.module / LIBRARIES, build.folder / LIBRARIES)
    shutil.copyfile(work / "engines" / build.name / FILE, build.folder / FILE)
    shutil.rmtree(work)
    partial = build.folder / f".{MARKER}"
    partial.write_text(content, encoding="ascii")
    os.replace(partial, build.folder / MARKER)
