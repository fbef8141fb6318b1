"""Requirements of cases: engines, programs, links and sshds of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from gridbench.engines.environments import environment, folder_with, launch_of
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.process.children import PythonLaunch
from gridbench.process.leftovers import Leftovers
from gridbench_testbed.links import sshd
from gridbench_testbed.links.network import Network, uninterrupted


def launch_with_benchmarks(engine: str) -> PythonLaunch:
    """An engine's Python, with this package on its path. InputError if there is none."""
    launch = launch_of(engine)
    own = environment(engine)
    if own is None:  # it is this Python
        return launch
    path = [launch.variables["PYTHONPATH"], folder_with(own.root, Path(__file__).resolve().parent)]
    variables = {**launch.variables, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return replace(launch, variables=variables)


def missing_engine(name: str) -> str:
    """Why an engine's environment cannot be used, with a remedy; empty if it can."""
    try:
        if (own := environment(name)) is not None:
            own.require()
    except InputError as error:
        return str(error)
    return ""


def missing_program(*names: str) -> str:
    """Which of these programs is not installed, with a remedy; empty if all are."""
    absent = [name for name in names if not find_program(name)]
    return f"`{absent[0]}` is not installed\nhint: `make rpc-peers` does that" if absent else ""


def find_program(name: str) -> str:
    """The path of a program of the system or of this Python's folder; empty: there is none."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.prefix, "bin"))])
    return shutil.which(name, path=path) or ""


def missing_links() -> str:
    """Why links of known rate cannot be emulated here; empty if they can."""
    try:
        with Network(1, 1e9):
            return ""
    except InputError as error:
        return str(error)


def missing_sshd() -> str:
    """Why hosts with sshds cannot be emulated here; empty if they can."""
    why = sshd.why_not()
    remedy = "run as root; `scripts/ensure-sshd` installs OpenSSH and iproute2"
    return f"{why}\nhint: {remedy}" if why else ""


def output_of(command: list[str], variables: dict[str, str], limit: float) -> str:
    """Run a peer for at most `limit` seconds; returns what it prints. RuntimeError if it fails.

    Processes that it started are ended.
    """
    with Leftovers() as leftovers, tempfile.TemporaryFile("w+") as errors:
        started = subprocess.Popen(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
        try:
            output, _ = started.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"did not end in {as_given(limit)}") from None
        finally:
            # A peer that is over its limit gets no time to end, nor do its processes.
            with uninterrupted():
                leftovers.end(started, patience=5.0 if started.poll() is not None else 0.0)
        errors.seek(0)
        if started.returncode != 0:
            lines = [line.strip() for line in errors.read().splitlines() if line.strip()]
            raise RuntimeError(f"ended with {started.returncode}: {' / '.join(lines[-4:])}")
    return output.decode("utf-8", "replace")
