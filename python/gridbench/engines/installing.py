"""Installing and removing, whatever is installed: one process at a time, whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

from gridbench.engines.installable import PLACE, Installable
from gridbench.errors import InputError
from gridbench.formats import about

Tell = Callable[[str], object]
One = TypeVar("One", bound=Installable)

_TAIL = 12  # lines of the log that are shown when something fails
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_TEXTS = tuple(os.strerror(number) for number in _FULL)


def install(one: One, make: Callable[[One, int, Tell], None], tell: Tell) -> None:
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
