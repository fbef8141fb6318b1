"""What the tasks of a synchronised round run: a built-in task or a program, and its arguments.

Arguments may have placeholders for what differs from worker to worker, such as
`-o {host}.{rank} -s {parameter}`. `{{` and `}}` are braces.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.printing import Printing
from gridbench.quantities import Quantity, text_or_texts
from gridbench.sync.record import PROGRAM
from gridbench.workload.numbers import shown

USAGE = 2
"""Exit status of `gridbench-task` for wrong options; it has done nothing then."""
PLACEHOLDERS = ("parameter", "worker", "rank", "host", "round", "total")
"""The parameter of the round; the number of the worker, and its number among the workers of its
host; that host; the number of the repeat; the number of workers. Numbers start at 0."""

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """A task of gridbench's own."""

    name: str
    help: str
    """One line."""
    command: tuple[str, ...]
    """Program and arguments, before the user's arguments."""
    phases: tuple[str, ...] = ()
    """Phases that it can report."""
    examples: tuple[str, ...] = ()
    """Arguments that a user may give."""


_PLACE = ("--worker", "{worker}", "--of", "{total}")
_FILE = "--directory /scratch --size {parameter}"

BUILT_INS = {
    task.name: task
    for task in (
        BuiltIn(name="null", help="end at once", command=(PROGRAM, "null")),
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


def command_of(task: str, words: Sequence[str]) -> tuple[str, ...]:
    """Program and arguments of a task; they may have placeholders and PROGRAM in them.

    `task`: the name of a built-in task, the path of a program, or the name of a program on the PATH
    of each host. A relative path starts at the current folder. `words`: the arguments; those of the
    task `shell` are one command. InputError if there is no such task.
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


def list_tasks(printing: Printing) -> None:
    """Print the built-in tasks."""
    from gridbench.terminal import new_table

    table = new_table()
    table.add_column("task", no_wrap=True)
    table.add_column("what it does, and with which arguments, such as")
    for one in BUILT_INS.values():
        phases = f"; reports {', '.join(one.phases)}" if one.phases else ""
        table.add_row(
            one.name, "\n".join([f"{one.help}{phases}", *map("  {}".format, one.examples)])
        )
    printing.tables().print(table)
    printing.document(
        lambda: {
            one.name: {"help": one.help, "phases": one.phases, "examples": one.examples}
            for one in BUILT_INS.values()
        }
    )


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


# ---- Arguments


class Arguments(Quantity[tuple[str, ...]]):
    """The arguments of a task: a text, or a list."""

    name = "arguments"

    def read(self, value: Any, folder: Path | None = None) -> tuple[str, ...]:
        """The single arguments."""
        del folder
        return split_arguments(text_or_texts(value))


def split_arguments(arguments: str | Sequence[str]) -> tuple[str, ...]:
    """Split a text as a shell does; a list is split already. The value of a placeholder is never
    split. InputError for an open quote or an unknown placeholder."""
    if isinstance(arguments, str):
        try:
            words = shlex.split(arguments)
        except ValueError as error:
            raise InputError(
                f"the arguments `{shown(arguments)}` cannot be divided: {str(error).lower()}",
                remedy="close the quotes, or give the arguments as a list",
            ) from None
    else:
        words = list(arguments)
    for word in words:
        if "\0" in word:
            raise InputError(
                f"the argument `{shown(word)}` holds a zero byte, which no program can be given"
            )
        list(_pieces(word))
    return tuple(words)


def placeholders_in(arguments: Iterable[str]) -> frozenset[str]:
    """Names of the placeholders in these arguments."""
    return frozenset(name for word in arguments for _, name in _pieces(word) if name)


def expand(arguments: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """The arguments of one worker; `values` has all PLACEHOLDERS. InputError for an unknown one."""
    return [
        "".join(values[name] if name else text for text, name in _pieces(word))
        for word in arguments
    ]


def _pieces(argument: str) -> Iterator[tuple[str, str]]:
    """Pairs of a text and the name of a placeholder; one of the two is empty."""
    end = 0
    for piece in _PIECE.finditer(argument):
        yield argument[end : piece.start()], ""
        end = piece.end()
        if piece[0] in ("{{", "}}"):
            yield piece[0][0], ""
        elif piece[1] in PLACEHOLDERS:
            yield "", piece[1]
        else:
            raise _unknown(argument, piece[0])
    yield argument[end:], ""


def _unknown(argument: str, piece: str) -> InputError:
    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    what = "is a single brace" if len(piece) == 1 else "is not known"
    return InputError(
        f"`{shown(piece)}` in the argument `{shown(argument)}` {what}",
        remedy=f"known are {known}; a brace is written twice, as {{{{ or }}}}",
    )
