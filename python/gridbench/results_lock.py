"""One process at a time uses a folder of results, or a file of them; another one is told which.

The lock is one of the operating system, on a file that is there for nothing else. It goes with the
process, however that ends, so a lock file that a killed process has left behind locks nothing.
Processes that this one forks do not have it (lockf, and not flock): they may live on.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gridbench.errors import InputError
from gridbench.results_folder import unusable, unwritable
from gridbench.terminal import say

if TYPE_CHECKING:
    from rich.console import Console

LOCK = ".gridbench-lock"
"""In a folder that is in use. It holds the process and its host, for the message alone."""


@contextlib.contextmanager
def sole_use(folder: Path, console: Console) -> Iterator[None]:
    """Have a folder of results for this process alone. It is made if it is not there, and removed
    in the end if it was, and nothing is in it.

    InputError if it cannot be written, or if another process uses it. Where the file system has no
    locks, the user is told, and it goes on.
    """
    made = _made(folder)
    try:
        with _locked(folder / LOCK, folder, unusable, console):
            yield
    finally:
        with contextlib.suppress(OSError):
            for place in made:
                place.rmdir()


@contextlib.contextmanager
def sole_use_of_file(file: Path | None, console: Console) -> Iterator[None]:
    """The same of a file of results, which need not be there yet; None: there is none."""
    if file is None:
        yield
        return
    with _locked(file.with_name(f".{file.name}.lock"), file, unwritable, console):
        yield


def _made(folder: Path) -> list[Path]:
    """Make a folder; what had to be made for that, innermost first."""
    try:
        missing = [place for place in (folder, *folder.parents) if not place.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(folder, error) from None
    return missing


@contextlib.contextmanager
def _locked(
    lock: Path,
    used: Path,
    refused: Callable[[Path, OSError], InputError],
    console: Console,
) -> Iterator[None]:
    """`refused`: what is said of `used` if no lock file can be written there."""
    descriptor = _taken(lock, used, refused, console)
    with contextlib.suppress(OSError):  # a full disk is told by what is written next
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {platform.node()}\n".encode(), 0)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()
        os.close(descriptor)


def _taken(
    lock: Path,
    used: Path,
    refused: Callable[[Path, OSError], InputError],
    console: Console,
) -> int:
    """The lock file, open and locked."""
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise refused(used, error) from None
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                holder = _holder(descriptor)
                os.close(descriptor)
                raise InputError(
                    f"is in use by {holder}",
                    file=used,
                    remedy="wait until that has ended, or choose another --out",
                ) from None
            say(
                console,
                f"{used}: its file system has no locks ({error.strerror}): see to it that no other"
                " gridbench uses it meanwhile",
            )
            return descriptor
        if _is(lock, descriptor):
            return descriptor
        os.close(descriptor)  # who had it before has removed the file meanwhile


def _holder(descriptor: int) -> str:
    """Who has locked the file, as far as it says that already."""
    pid, _, host = os.pread(descriptor, 300, 0).decode(errors="replace").strip().partition(" ")
    if not pid:
        return "another gridbench"
    elsewhere = f" on {host}" if host != platform.node() else ""
    return f"another gridbench, process {pid}{elsewhere}"


def _is(lock: Path, descriptor: int) -> bool:
    """Whether the open file is the one of this name."""
    try:
        return os.path.samestat(os.stat(lock), os.fstat(descriptor))
    except FileNotFoundError:
        return False
