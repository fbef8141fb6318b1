"""Installing an engine into a folder of its own, by one process at a time.

The folders are in `$GRIDBENCH_ENGINES`, by default in `share/gridbench/engines` of this Python. An
installation is complete, or absent.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, TypeVar

from gridbench.errors import InputError
from gridbench.formats import about

PLACE = "GRIDBENCH_ENGINES"
"""Environment variable for the place of the folders."""


@dataclass(frozen=True, slots=True)
class InstallationState:
    """State of an installation."""

    kind: Literal["installed", "missing", "half installed", "other version"]
    version: str = ""
    """Version of the engine's package, if any."""
    what: str = ""
    """The problem, unless it is installed."""
    remedy: str = ""


class Installable(ABC):
    """An engine that can be installed."""

    commands: str
    """The command whose subcommands install and remove it."""
    kind: str
    """The kind of installation, for messages."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.root = root
        self.folder = root / name
        self.log = root / f"{name}.log"
        """Output of the installation."""
        self._lock = root / f".{name}.lock"

    @abstractmethod
    def state_unlocked(self) -> InstallationState:
        """The state, while the caller holds the lock."""

    @abstractmethod
    def require_tools(self) -> None:
        """Raise InputError if the machine lacks a program that it needs."""

    def state(self) -> InstallationState:
        """The state, without running anything."""
        if self._is_locked():
            what = "is being installed or removed by another process"
            return InstallationState(
                "half installed", what=what, remedy="wait until that process has ended"
            )
        return self.state_unlocked()

    def require(self) -> None:
        """Raise InputError unless it is installed."""
        state = self.state()
        if state.kind != "installed":
            raise InputError(f"the engine `{self.name}` {state.what}", remedy=state.remedy)

    @property
    def remedy(self) -> str:
        """Remedy if it is not installed."""
        return f"run `{self.commands} install {self.name}`"

    @contextlib.contextmanager
    def locked(self, *, wait: bool) -> Iterator[int | None]:
        """Hold its lock; a descriptor that child processes can inherit.

        None if another process holds it and `wait` is False. OSError if the lock file cannot be
        created.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with self._lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield None
            else:
                yield file.fileno()

    def _is_locked(self) -> bool:
        try:
            with self._lock.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # no file: never installed
            return False
        return False


def environments_folder() -> Path:
    """The folder of all installations."""
    default = Path(sys.prefix, "share", "gridbench", "engines")
    return Path(os.environ.get(PLACE) or default).absolute()


Tell = Callable[[str], object]
InstallableT = TypeVar("InstallableT", bound=Installable)

_TAIL = 12  # lines of the log that are shown when something fails
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_TEXTS = tuple(os.strerror(number) for number in _FULL)


def install(
    one: InstallableT, make: Callable[[InstallableT, int, Tell], None], notify: Tell
) -> None:
    """Install or repair an engine; `tell` gets lines about the progress.

    Does nothing if it is installed. Of several processes, one works and the others wait. InputError
    if it fails; then only the log remains.

    `make` fills the folder, and gets a descriptor for its processes to inherit.
    """
    one.require_tools()
    with _alone(one, notify) as lock:
        if one.state_unlocked().kind == "installed":
            notify("is installed already")
            return
        started = time.monotonic()
        try:
            if one.folder.exists():
                notify("removing what is left of an earlier installation ...")
                shutil.rmtree(one.folder)
            make(one, lock, notify)
        except (InputError, OSError):
            shutil.rmtree(one.folder, ignore_errors=True)
            raise
        notify(f"installed in {about(time.monotonic() - started)}")


def remove(one: Installable, notify: Tell) -> None:
    """Remove it. InputError if it is not installed or cannot be removed."""
    with _alone(one, notify):
        if not one.folder.exists():
            raise InputError(f"the engine `{one.name}` is not installed")
        shutil.rmtree(one.folder)
        one.log.unlink(missing_ok=True)
        notify("removed")


def run_logged(
    command: Sequence[str],
    log: IO[bytes],
    lock: int,
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> int:
    """Run an installer with its output in the log; its exit status."""
    # Inherited: after this process is killed, the installer may still run.
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        pass_fds=[lock],
        cwd=folder,
        env=variables,
        check=False,
    ).returncode


def failure(
    one: Installable, status: int, program: str, causes: Sequence[tuple[Sequence[str], str, str]]
) -> InputError:
    """The error that explains a failed installer by its log.

    `causes`, the first that matches: texts to find in the log, problem, remedy.
    """
    text = one.log.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if any(words in text for words in (*(f"[Errno {number}]" for number in _FULL), *_FULL_TEXTS)):
        return _disk_full(one)
    tail = "".join(f"\n    {line}" for line in lines[-_TAIL:])
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    what, remedy = f"{program} ended with {how}", "the reason stands above"
    for words, cause, cure in causes:
        if any(word in text for word in words):
            what, remedy = cause, cure
            break
    return InputError(
        f"could not install the engine `{one.name}`: {what}{tail}", file=one.log, remedy=remedy
    )


@contextmanager
def _alone(one: Installable, notify: Tell) -> Iterator[int]:
    """Hold its lock, waiting if needed; a descriptor for child processes."""
    try:
        with one.locked(wait=False) as lock:
            if lock is not None:
                yield lock
                return
        notify("waiting, as another process installs or removes it ...")
        with one.locked(wait=True) as lock:
            assert lock is not None
            yield lock
    except OSError as error:
        if error.errno in _FULL:
            raise _disk_full(one) from error
        raise InputError(
            f"cannot change the {one.kind} of `{one.name}`: {error.strerror or error}",
            file=error.filename or one.root,
            remedy=f"set {PLACE} to a folder that can be written",
        ) from error


def _disk_full(one: Installable) -> InputError:
    return InputError(
        f"could not install the engine `{one.name}`: the disk is full",
        file=_existing(one.root),
        remedy=f"make room there, or set {PLACE} to a folder on another disk",
    )


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.exists())
