"""The folder that a command keeps its results in: its name, and what is said of it in the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from gridbench.errors import InputError
from gridbench.formats import counted

REPORT = "report.html"


def default_folder(name: str = "") -> Path:
    """A folder below `runs` with the name and the local time, that does not exist yet."""
    stem = "-".join(filter(None, [name, time.strftime("%Y-%m-%dT%H-%M-%S")]))
    folder, number = Path("runs", stem), 1
    while folder.exists():
        number += 1
        folder = Path("runs", f"{stem}-{number}")
    return folder


def say_what_is_there(console: Console, there: int, of: int, noun: str) -> None:
    """How many of the measurements an earlier call has left, if it has."""
    if there:
        are = "is" if there == 1 else "are"
        console.print(f"{there} of {counted(of, noun)} {are} there")


def say_stopped(console: Console, folder: Path) -> None:
    """That the user, or a batch system, has ended it."""
    console.print(
        f"stopped: what was measured is kept; --out {folder} goes on with the rest",
        soft_wrap=True,
        markup=False,
    )


def report_in(folder: Path, write: Callable[[Path, Path], object]) -> int:
    """Have the report of a folder written into it: of the folder and the file. 1 if that cannot be,
    which is told; else 0."""
    try:
        write(folder, folder / REPORT)
    except InputError as error:
        print(f"gridbench: {error}", file=sys.stderr)
        return 1
    return 0
