"""What a task of a synchronised round runs: a built-in task, or a program of the user's."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gridbench.errors import InputError
from gridbench.workload.numbers import shown

PROGRAM = "<gridbench-task>"
"""In a command: the program of `gridbench.native.task_program`, which each host has in another
place."""
USAGE = 2
"""The exit status of that program if it was not told properly what to do, and has done nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """A task that nobody has to write."""

    name: str
    help: str
    """A line."""
    command: tuple[str, ...]
    """Program and arguments, which the user's arguments follow."""
    phases: tuple[str, ...] = ()
    """Those that it can report."""
    examples: tuple[str, ...] = ()
    """Arguments of the user's."""


_PLACE = ("--worker", "{worker}", "--of", "{total}")
_FILE = "--directory /scratch --size {parameter}"

BUILT_INS = {
    task.name: task
    for task in (
        BuiltIn(
            name="null",
            help="end at once",
            command=(PROGRAM, "null"),
        ),
        BuiltIn(
            name="sleep",
            help="sleep for some seconds",
            command=(PROGRAM, "sleep"),
            examples=("{parameter}", "1.5"),
        ),
        BuiltIn(
            name="write",
            help="write a file of its own",
            command=(PROGRAM, "write", *_PLACE),
            phases=("write",),
            examples=(_FILE, f"{_FILE} --block 64K --fsync", f"{_FILE} --direct"),
        ),
        BuiltIn(
            name="read",
            help="read and check the file that `write` has written",
            command=(PROGRAM, "read", *_PLACE),
            phases=("read",),
            examples=(_FILE, f"{_FILE} --drop"),
        ),
        BuiltIn(
            name="write-read",
            help="write a file of its own, read it, and remove it",
            command=(PROGRAM, "write-read", *_PLACE),
            phases=("write", "read"),
            examples=(_FILE, f"{_FILE} --drop"),
        ),
        BuiltIn(
            name="metadata",
            help="make, look at and remove directories and files",
            command=(PROGRAM, "metadata", *_PLACE),
            phases=("mkdir", "create", "stat", "readdir", "unlink"),
            examples=(
                "--directory /scratch --count 100",
                "--directory /scratch --total 2000 --operations mkdir,stat,unlink",
                "--directory /scratch --total 2000 --shared",
            ),
        ),
        BuiltIn(
            name="cpu",
            help="compute with whole numbers",
            command=(PROGRAM, "cpu"),
            phases=("cpu",),
            examples=("--operations 100000000", "--seconds 0.5"),
        ),
        BuiltIn(
            name="memory",
            help="read and write memory, as STREAM's triad does",
            command=(PROGRAM, "memory"),
            phases=("memory",),
            examples=("--size {parameter} --seconds 0.5", "--size 64M --passes 5"),
        ),
        BuiltIn(
            name="shell",
            help="a command for /bin/sh",
            command=("/bin/sh", "-c"),
            examples=("echo {worker} of {total} >/scratch/{host}-{rank}", "sleep {parameter}"),
        ),
        BuiltIn(
            name="fio",
            help="fio, with options of its own for a job",
            command=("fio", "--output-format=json", "--name=worker-{worker}"),
            phases=("read", "write", "trim"),
            examples=("--directory=/scratch --size={parameter} --rw=randrw --bs=4k --unlink=1",),
        ),
    )
}
"""By name."""


def command(task: str, words: Sequence[str]) -> tuple[str, ...]:
    """Program and arguments of a task, which may have placeholders and PROGRAM in them.

    `task`: the name of a built-in task, the path of a program, or the name of one that is found on
    the PATH, of each host. `words`: its arguments; those of the task `shell` are a command. A path
    that begins with no slash is one from the current folder. Raises InputError.
    """
    built_in = BUILT_INS.get(task)
    if built_in is None:
        return (_program(task), *words)
    if task == "shell":
        text = " ".join(words)
        if not text.strip():
            raise InputError(
                "the task `shell` has no command", remedy="write `gridbench sync shell 'COMMAND'`"
            )
        return (*built_in.command, text)
    return (*built_in.command, *words)


def _program(task: str) -> str:
    path = Path(os.path.expanduser(task))
    if not task or not path.exists():
        # Hosts may have a program in a place of theirs.
        if path.is_absolute() or (task and "/" not in task and shutil.which(task)):
            return str(path)
        raise InputError(
            f"there is no program `{shown(task)}` here, and no built-in task of this name",
            remedy=_instead(task),
        )
    if not path.is_file():
        raise InputError("the task is a folder, and no program", file=path, remedy=_instead(task))
    if not os.access(path, os.X_OK):
        raise InputError(
            "the task is a file that cannot be executed",
            file=path,
            remedy=f"chmod +x {shlex.quote(task)}",
        )
    return os.path.abspath(path)


def _instead(task: str) -> str:
    like = difflib.get_close_matches(task, BUILT_INS, 1)
    perhaps = f"did you mean `{like[0]}`? " if like else ""
    return f"{perhaps}built-in tasks are {', '.join(BUILT_INS)}"
