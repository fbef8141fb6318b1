"""Java and Maven, as they are on this machine."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from gridbench.errors import InputError

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
        raise InputError(f"{program} does not tell its version, but: {first}", remedy=_JAVA)
    return int(said[1])
