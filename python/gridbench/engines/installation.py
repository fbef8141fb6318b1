"""Making and removing the environments of engines."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gridbench.engines.environments import MARKER, PLACE, Environment
from gridbench.errors import InputError

Tell = Callable[[str], object]

_TAIL = 12  # lines of the log that are shown when something fails
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_NETWORK = (
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
)


def install(environment: Environment, tell: Tell) -> None:
    """Install an engine, or repair what is there; `tell` gets lines about the progress.

    Does nothing if all is well already. Several processes may do it at the same time: one works,
    and the others wait. InputError if it fails, and then nothing is left of it but the log.
    """
    missing = environment.missing_program()
    if missing is not None:
        program, remedy = missing
        raise InputError(
            f"the engine `{environment.name}` needs the program `{program}`, which this machine"
            " does not have",
            remedy=remedy,
        )
    with _alone(environment, tell) as lock:
        if environment.state_unlocked().kind == "installed":
            tell("is installed already")
            return
        started = time.monotonic()
        try:
            if environment.folder.exists():
                tell("removing what is left of an earlier installation ...")
                shutil.rmtree(environment.folder)
            _make(environment, lock, tell)
        except InputError:
            shutil.rmtree(environment.folder, ignore_errors=True)
            raise
        tell(f"installed in {time.monotonic() - started:.0f} s")


def remove(environment: Environment, tell: Tell) -> None:
    """Remove an engine's environment. InputError if there is none or it cannot be removed."""
    with _alone(environment, tell):
        if not environment.folder.exists():
            raise InputError(f"the engine `{environment.name}` is not installed")
        shutil.rmtree(environment.folder)
        environment.log.unlink(missing_ok=True)
        tell("removed")


@contextmanager
def _alone(environment: Environment, tell: Tell) -> Iterator[int]:
    """Nobody else changes the environment meanwhile; a descriptor for programs to inherit."""
    try:
        with environment.locked(wait=False) as lock:
            if lock is not None:
                yield lock
                return
        tell("waiting, as another process installs or removes it ...")
        with environment.locked(wait=True) as lock:
            assert lock is not None
            yield lock
    except OSError as error:
        if error.errno in _FULL:
            raise _disk_full(environment) from error
        raise InputError(
            f"cannot change the environment of `{environment.name}`: {error.strerror or error}",
            file=error.filename or environment.root,
            remedy=f"set {PLACE} to a folder that can be written",
        ) from error


def _make(environment: Environment, lock: int, tell: Tell) -> None:
    engine = environment.required()[0]
    with environment.log.open("wb") as log:

        def run(*command: str) -> int:
            # The lock is inherited: if this process is killed, what it started may still work.
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[lock],
                check=False,
            ).returncode

        tell("making an environment ...")
        # That of a virtual environment would depend on it.
        python: str = getattr(sys, "_base_executable", sys.executable)
        status = run(python, "-I", "-m", "venv", "--without-pip", str(environment.folder))
        module = (*environment.command(), "-I", "-m")
        # Done by itself, as otherwise nothing is told when it fails.
        status = status or run(*module, "ensurepip", "--default-pip")
        if status == 0:
            tell(f"installing {engine.package} {engine.version} (log: {environment.log}) ...")
            options = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off")
            requirements = ("--requirement", str(environment.requirements))
            status = run(*module, "pip", "install", *options, *requirements)
    if status != 0:
        raise _failure(environment, status)
    partial = environment.folder / f".{MARKER}"
    shutil.copyfile(environment.requirements, partial)
    os.replace(partial, environment.folder / MARKER)


def _failure(environment: Environment, status: int) -> InputError:
    """What went wrong, from what pip has printed."""
    text = environment.log.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if any(f"[Errno {number}]" in text for number in _FULL):
        return _disk_full(environment)
    tail = "".join(f"\n    {line}" for line in lines[-_TAIL:])
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    what, remedy = f"pip ended with {how}", "the reason stands above"
    if any(words in text for words in _NO_NETWORK):
        what = "the package index cannot be reached"
        remedy = "see to the network, or to pip's settings (`pip config list`), and try again"
    elif "No matching distribution found" in text:
        what = "the package index does not answer, or has no such version for this Python"
        remedy = "see to pip's settings (`pip config list`), and what the engine supports"
    return InputError(
        f"could not install the engine `{environment.name}`: {what}{tail}",
        file=environment.log,
        remedy=remedy,
    )


def _disk_full(environment: Environment) -> InputError:
    return InputError(
        f"could not install the engine `{environment.name}`: the disk is full",
        file=_existing(environment.root),
        remedy=f"make room there, or set {PLACE} to a folder on another disk",
    )


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.exists())
