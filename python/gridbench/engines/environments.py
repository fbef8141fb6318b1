"""Python environments of engines, or this Python for engines without one.

Dependencies of engines conflict. So an engine with a file `requirements/NAME.txt` has its own
environment, created by `gridbench engines install NAME`, with its packages and without gridbench.
Its processes import gridbench through PYTHONPATH, a folder with links to this package and its
testbed.

Environments are in `environments_folder` (installing.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import gridbench_testbed
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
from gridbench.process.children import PYTHON, PythonLaunch

MARKER = "gridbench-installed.txt"
"""Written last into an environment: its requirements."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""One thread for numerical libraries, for all engines."""

_PACKAGE = Path(__file__).resolve().parents[1]
_TESTBED = Path(gridbench_testbed.__file__).resolve().parent
_REQUIREMENTS = Path(__file__).with_name("requirements")
_SHARED = {"emulated-slurm-dask": "dask", "emulated-slurm-hyperqueue": "hyperqueue"}
"""Engines that use the environment of another engine."""
VARIABLES = {**ONE_THREAD, "PYTHONSAFEPATH": "1"}
"""For processes of engines, whose Python does not import from the current folder."""
_PROGRAMS = {"mpi": ("mpiexec", "install Open MPI (Debian: apt-get install openmpi-bin)")}
"""Programs that pip cannot install, and the remedy if one is missing."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package in exactly one version."""

    package: str
    version: str


class Environment(Installable):
    """The environment of one engine, installed or not."""

    commands = "gridbench engines"
    kind = "environment"

    def __init__(self, name: str) -> None:
        super().__init__(environments_folder(), name)
        self.requirements = _REQUIREMENTS / f"{name}.txt"

    def required(self) -> list[Requirement]:
        """Its packages, the engine's first."""
        lines = self.requirements.read_text(encoding="ascii").split()
        pairs = (line.split("==") for line in lines)
        # Installed packages do not have the extras in their names.
        return [Requirement(name.partition("[")[0], version) for name, version in pairs]

    def command(self) -> list[str]:
        """Command of the environment's Python, as `PYTHON`."""
        return [str(self.folder / "bin" / "python"), "-P"]

    def variables(self) -> dict[str, str]:
        """Environment variables of its processes: this gridbench, and its programs first on PATH.

        Packages of the user in other places are ignored.
        """
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
        path = os.pathsep.join([str(self.folder / "bin"), os.environ.get("PATH", os.defpath)])
        return (
            inherited
            | VARIABLES
            | {
                "PATH": path,
                "PYTHONPATH": str(folder_with(self.root, _PACKAGE, _TESTBED)),
                "PYTHONNOUSERSITE": "1",
                "VIRTUAL_ENV": str(self.folder),
            }
        )

    def state_unlocked(self) -> InstallationState:
        """The state, while the caller holds the lock."""
        remedy = self.remedy
        if not self.folder.exists():
            return InstallationState("missing", what="is not installed", remedy=remedy)
        wanted = self.required()
        found = {one.package: self._version_of(one.package) for one in wanted}
        version = found[wanted[0].package]
        if reason := self._not_whole(found):
            what = f"is half installed: {reason}"
            return InstallationState(
                "half installed", version, what, f"{remedy}, which rebuilds it"
            )
        for one in wanted:
            if found[one.package] != one.version:
                what = f"is of another version: {one.package} is {found[one.package]}"
                return InstallationState(
                    "other version", version, f"{what}, not {one.version}", remedy
                )
        missing = self.missing_program()
        if missing is not None:
            program, how = missing
            what = f"is half installed: there is no program `{program}`"
            return InstallationState("half installed", version, what, how)
        return InstallationState("installed", version)

    def require_tools(self) -> None:
        """Raise InputError if a program of the system is missing."""
        missing = self.missing_program()
        if missing is not None:
            program, remedy = missing
            raise InputError(
                f"the engine `{self.name}` needs the program `{program}`, which this machine"
                " does not have",
                remedy=remedy,
            )

    def missing_program(self) -> tuple[str, str] | None:
        """A required program that the machine lacks, and the remedy."""
        if self.name in _PROGRAMS and shutil.which(_PROGRAMS[self.name][0]) is None:
            return _PROGRAMS[self.name]
        return None

    def _not_whole(self, found: dict[str, str]) -> str:
        """Why it is incomplete; empty if it is complete."""
        if not (self.folder / MARKER).is_file():
            return "its installation was cut off"
        if not os.access(self.command()[0], os.X_OK):
            return "the Python that it was made with is gone"
        absent = [package for package, version in found.items() if not version]
        return f"{', '.join(absent)} is missing" if absent else ""

    def _version_of(self, package: str) -> str:
        """The version of an installed package; empty if missing."""
        places = [str(place) for place in self.folder.glob("lib/python3*/site-packages")]
        for one in metadata.distributions(name=package, path=places):
            with contextlib.suppress(KeyError):  # its metadata are damaged
                return str(one.version)
        return ""


def environment(name: str) -> Environment | None:
    """The environment of the engine `name`; None if it uses this Python."""
    name = _SHARED.get(name, name)
    return Environment(name) if (_REQUIREMENTS / f"{name}.txt").is_file() else None


def our_launch() -> PythonLaunch:
    """This Python, with the variables of engine clients."""
    return PythonLaunch([*PYTHON], os.environ | VARIABLES)


def launch_of(name: str) -> PythonLaunch:
    """The Python of the engine `name`. InputError if its environment cannot be used."""
    found = environment(name)
    if found is None:
        return our_launch()
    found.require()
    return PythonLaunch(found.command(), found.variables())


def folder_with(root: Path, *packages: Path) -> Path:
    """A folder with links to these packages only, for PYTHONPATH, so that engines do not import
    other packages from beside them.

    It is named after their place, as several installations of gridbench can share environments.
    """
    places = os.pathsep.join(map(str, packages))
    folder = root / f".gridbench-{hashlib.sha256(os.fsencode(places)).hexdigest()[:12]}"
    for package in packages:
        link = folder / package.name
        if not link.is_symlink():
            folder.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # created by another process
                link.symlink_to(package)
    return folder


_PIP_CAUSES = (
    (
        (
            "Failed to establish a new connection",
            "NameResolutionError",
            "Temporary failure in name resolution",
            "Network is unreachable",
            "Connection refused",
            "Connection reset",
            "ConnectTimeoutError",
            "ReadTimeoutError",
            "ProxyError",
            "SSLError",
            "RemoteDisconnected",
        ),
        "the package index cannot be reached",
        "see to the network, or to pip's settings (`pip config list`), and try again",
    ),
    (
        ("No matching distribution found",),
        "the package index does not answer, or has no such version for this Python",
        "see to pip's settings (`pip config list`), and what the engine supports",
    ),
)


def install_environment(environment: Environment, notify: Tell) -> None:
    """Install or repair an engine; `tell` gets lines about the progress.

    InputError if it fails; then only the log remains.
    """
    installing.install(environment, _make_environment, notify)


def _own_pip_installs_elsewhere() -> bool:
    """Whether this Python has a pip with the option --python: a pip for each environment would
    take 3 s to install."""
    try:
        release = metadata.version("pip").split(".")
    except metadata.PackageNotFoundError:
        return False
    return (int(release[0]), int(release[1])) >= (22, 3)


def _make_environment(environment: Environment, lock: int, notify: Tell) -> None:
    engine = environment.required()[0]
    with environment.log.open("wb") as log:
        notify("making an environment ...")
        # The new environment must not depend on a virtual environment.
        python: str = getattr(sys, "_base_executable", sys.executable)
        made = (python, "-I", "-m", "venv", "--without-pip", str(environment.folder))
        status = run_logged(made, log, lock)
        module = (*environment.command(), "-I", "-m")
        pip = (*module, "pip")
        if _own_pip_installs_elsewhere():
            pip = (sys.executable, "-I", "-m", "pip", "--python", environment.command()[0])
        else:
            # A step of its own, whose errors are reported.
            status = status or run_logged((*module, "ensurepip", "--default-pip"), log, lock)
        if status == 0:
            notify(f"installing {engine.package} {engine.version} (log: {environment.log}) ...")
            options = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off")
            requirements = ("--requirement", str(environment.requirements))
            # pip starts the environment's Python, and passes no -I on.
            variables = {
                name: value
                for name, value in os.environ.items()
                if name not in ("PYTHONPATH", "PYTHONHOME")
            }
            command = (*pip, "install", *options, *requirements)
            status = run_logged(command, log, lock, variables=variables)
    if status != 0:
        raise failure(environment, status, "pip", _PIP_CAUSES)
    partial = environment.folder / f".{MARKER}"
    shutil.copyfile(environment.requirements, partial)
    os.replace(partial, environment.folder / MARKER)
