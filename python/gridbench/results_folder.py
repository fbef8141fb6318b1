"""The folder that a command keeps its results in: its name, its lock, and errors about it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gridbench.errors import InputError
from gridbench.formats import counted, named
from gridbench.terminal import say

if TYPE_CHECKING:
    from rich.console import Console

REPORT = "report.html"


def default_folder(name: str = "") -> Path:
    """A folder below `runs` with the name and the local time, that does not exist yet."""
    stem = "-".join(filter(None, [name, time.strftime("%Y-%m-%dT%H-%M-%S")]))
    folder, number = Path("runs", stem), 1
    while folder.exists():
        number += 1
        folder = Path("runs", f"{stem}-{number}")
    return folder


def refuse_to_replace(folder: Path, files: Sequence[str], noun: str, *, replace: bool) -> None:
    """InputError for a folder with any of these files, if they are not to be replaced."""
    if not replace and any((folder / name).exists() for name in files):
        raise InputError(
            f"the output folder holds {noun} already",
            file=folder,
            remedy="choose another --out, or add --force to replace it",
        )


def unusable(folder: Path, error: OSError) -> InputError:
    """Error for a folder that cannot be made, read or written."""
    if isinstance(error, FileExistsError):
        return InputError("the output folder is a file", file=folder, remedy="choose another --out")
    return InputError(
        f"cannot use the output folder: {error.strerror}",
        file=folder,
        remedy="choose another --out, one that can be written",
    )


def unwritable(file: Path, error: OSError) -> InputError:
    """The same of a file."""
    return InputError(
        f"cannot write the results: {error.strerror or error}",
        file=file,
        remedy="choose another --out, in a folder that exists and can be written",
    )


def say_what_is_there(console: Console, there: int, of: int, noun: str) -> None:
    """How many of the measurements an earlier call has left, if it has."""
    if there:
        are = "is" if there == 1 else "are"
        console.print(f"{there} of {counted(of, noun)} {are} there")


def say_failed_before(console: Console, failed: Sequence[str], noun: str) -> None:
    """Which measurements an earlier call has left that failed and are not tried again, if any."""
    if failed:
        are, them = ("is", "it") if len(failed) == 1 else ("are", "them")
        say(
            console,
            f"{counted(len(failed), noun)} failed before and {are} not tried again:"
            f" {named(list(dict.fromkeys(failed)))}; --retry-failed tries {them}",
        )


def say_stopped(console: Console, folder: Path) -> None:
    """That the user, or a batch system, has ended it."""
    say(console, f"stopped: results are saved; --out {folder} resumes")


# ---- Exclusive lock

LOCK = ".gridbench-lock"
"""In a folder that is in use. It holds the process and its host, for the message alone."""


@contextlib.contextmanager
def exclusive_lock(folder: Path, console: Console) -> Iterator[None]:
    """Have a folder of results for this process alone. It is made if it is not there, and removed
    in the end if it was, and nothing is in it.

    InputError if it cannot be written, or if another process uses it. Where the file system has no
    locks, it warns and continues.
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
def exclusive_file_lock(file: Path | None, console: Console) -> Iterator[None]:
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
    """`refused`: the message for `used` if no lock file can be written there."""
    descriptor = _taken(lock, used, refused, console)
    with contextlib.suppress(OSError):  # the next write reports a full disk
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
