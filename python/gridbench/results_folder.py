"""The folder that a command keeps its results in: its name, and what is said of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.rules import named
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


def unusable(folder: Path, error: OSError) -> InputError:
    """What is said of a folder that cannot be made, read or written."""
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
