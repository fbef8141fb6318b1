"""Installing an engine into a folder of its own, by one process at a time.

The folders are in `$GRIDBENCH_ENGINES`, by default in `share/gridbench/engines` of this Python. An
installation is whole, or not there.
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
"""The environment variable that says where the folders are."""


@dataclass(frozen=True, slots=True)
class InstallationState:
    """Whether an installation can be used."""

    kind: Literal["installed", "missing", "half installed", "other version"]
    version: str = ""
    """That of the engine's own package, where there is one."""
    what: str = ""
    """What is wrong, unless it is installed."""
    remedy: str = ""


class Installable(ABC):
    """One of them, be it installed or not."""

    commands: str
    """The command below which it is installed and removed."""
    kind: str
    """What is made, in words."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.root = root
        self.folder = root / name
        self.log = root / f"{name}.log"
        """What making it has printed."""
        self._lock = root / f".{name}.lock"

    @abstractmethod
    def state_unlocked(self) -> InstallationState:
        """As `state`, for who keeps others from changing it."""

    @abstractmethod
    def require_tools(self) -> None:
        """Raise InputError if the machine has not what it takes to install and to use it."""

    def state(self) -> InstallationState:
        """Whether it can be used, as far as can be seen without running anything."""
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
        """What to do if it is not installed."""
        return f"run `{self.commands} install {self.name}`"

    @contextlib.contextmanager
    def locked(self, *, wait: bool) -> Iterator[int | None]:
        """Keep others from changing it; a descriptor that processes can inherit to go on with that.

        None if another process has it and `wait` is not wanted. OSError if there can be no file.
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
        except OSError:  # no file: nobody has ever installed it
            return False
        return False


def environments_folder() -> Path:
    """Where all folders are."""
    default = Path(sys.prefix, "share", "gridbench", "engines")
    return Path(os.environ.get(PLACE) or default).absolute()


Tell = Callable[[str], object]
InstallableT = TypeVar("InstallableT", bound=Installable)

_TAIL = 12  # lines of the log that are shown when something fails
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_TEXTS = tuple(os.strerror(number) for number in _FULL)


def install(one: InstallableT, make: Callable[[InstallableT, int, Tell], None], tell: Tell) -> None:
    """Install it, or repair what is there; `tell` gets lines about the progress.

    Does nothing if all is well already. Several processes may do it at the same time: one works,
    and the others wait. InputError if it fails, and then nothing is left of it but the log.

    `make` fills the folder, and gets a descriptor that its processes inherit.
    """
    one.require_tools()
    with _alone(one, tell) as lock:
        if one.state_unlocked().kind == "installed":
            tell("is installed already")
            return
        started = time.monotonic()
        try:
            if one.folder.exists():
                tell("removing what is left of an earlier installation ...")
                shutil.rmtree(one.folder)
            make(one, lock, tell)
        except (InputError, OSError):
            shutil.rmtree(one.folder, ignore_errors=True)
            raise
        tell(f"installed in {about(time.monotonic() - started)}")


def remove(one: Installable, tell: Tell) -> None:
    """Remove it. InputError if there is nothing or it cannot be removed."""
    with _alone(one, tell):
        if not one.folder.exists():
            raise InputError(f"the engine `{one.name}` is not installed")
        shutil.rmtree(one.folder)
        one.log.unlink(missing_ok=True)
        tell("removed")


def run_logged(
    command: Sequence[str],
    log: IO[bytes],
    lock: int,
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> int:
    """Run a program that installs; its status. What it prints goes to the log."""
    # The lock is inherited: if this process is killed, what it started may still work.
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
    """What went wrong, from what the program has printed to the log.

    `causes` are tried in turn: words of which one stands there, what is wrong, what to do.
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
def _alone(one: Installable, tell: Tell) -> Iterator[int]:
    """Nobody else changes it meanwhile; a descriptor for programs to inherit."""
    try:
        with one.locked(wait=False) as lock:
            if lock is not None:
                yield lock
                return
        tell("waiting, as another process installs or removes it ...")
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
