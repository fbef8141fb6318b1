"""Making and removing the environments of engines."""

from __future__ import annotations

import os
import shutil
import sys

from gridbench.engines import installing
from gridbench.engines.environments import MARKER, Environment
from gridbench.engines.installing import Tell, failure, run_logged

_CAUSES = (
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


def install(environment: Environment, tell: Tell) -> None:
    """Install an engine, or repair what is there; `tell` gets lines about the progress.

    InputError if it fails, and then nothing is left of it but the log.
    """
    installing.install(environment, _make, tell)


def _make(environment: Environment, lock: int, tell: Tell) -> None:
    engine = environment.required()[0]
    with environment.log.open("wb") as log:
        tell("making an environment ...")
        # That of a virtual environment would depend on it.
        python: str = getattr(sys, "_base_executable", sys.executable)
        made = (python, "-I", "-m", "venv", "--without-pip", str(environment.folder))
        status = run_logged(made, log, lock)
        module = (*environment.command(), "-I", "-m")
        # Done by itself, as otherwise nothing is told when it fails.
        status = status or run_logged((*module, "ensurepip", "--default-pip"), log, lock)
        if status == 0:
            tell(f"installing {engine.package} {engine.version} (log: {environment.log}) ...")
            options = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off")
            requirements = ("--requirement", str(environment.requirements))
            status = run_logged((*module, "pip", "install", *options, *requirements), log, lock)
    if status != 0:
        raise failure(environment, status, "pip", _CAUSES)
    partial = environment.folder / f".{MARKER}"
    shutil.copyfile(environment.requirements, partial)
    os.replace(partial, environment.folder / MARKER)
