"""Building gridbench's own data grids from their sources, by Maven, once for each content of these.

Jars are fetched by Maven into its own repository (~/.m2), with its own settings.
"""

from __future__ import annotations

import fcntl
import os
import shutil

from gridbench.datagrid.engines.build import LIBRARIES, MARKER, Build
from gridbench.datagrid.engines.java import java, maven
from gridbench.datagrid.engines.sources import FILE, copy_sources, digest
from gridbench.engines import installing
from gridbench.engines.installing import Tell, failure, run_logged

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


def install(build: Build, tell: Tell) -> None:
    """Build a data grid, or repair what is there; `tell` gets lines about the progress.

    Does nothing if it is built from these very sources. InputError if it fails, and then nothing is
    left of it but the log.
    """
    installing.install(build, _make, tell)


def _make(build: Build, lock: int, tell: Tell) -> None:
    content = digest(build.name)
    work = build.folder / "sources"
    copy_sources(work)
    # Two of Maven's processes may not fill its repository at the same time.
    with (build.root / ".maven.lock").open("a") as alone, build.log.open("wb") as log:
        fcntl.flock(alone, fcntl.LOCK_EX)
        tell(f"building with Maven (log: {build.log}) ...")
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
