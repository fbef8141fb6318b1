"""Options that say what tasks do, and the command `gridbench list-times`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.printing import json_option, print_json
from gridbench.process.children import PYTHON
from gridbench.quantities import SIZE, Count, Duration, Quantity
from gridbench.schema import declarations, option
from gridbench.workload.body import PROGRAM, SLEEP, SPIN, is_library
from gridbench.workload.numbers import LONGEST_TIME, MOST_TASKS, shown

if TYPE_CHECKING:
    from gridbench.workload.workload import Workload

TASKS_PER_CORE = 100
TASK_TIME = 0.01
_FUNCTION = re.compile(r"(?:.*/)?[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")

_TRY = "import sys; from gridbench.workload.body import body; body(sys.argv[1])"


class TaskBody(Quantity[str]):
    """What tasks do, named such that every process of this machine finds it."""

    name = "task"

    def read(self, value: Any, folder: Path | None = None) -> str:
        """The body. InputError if it cannot be used here."""
        del folder
        text = str(value)
        if text in (SLEEP, SPIN):
            return text
        if is_library(text.rpartition(":")[0]):
            return _library(text)
        words = _words(text)
        if ":" not in words[0] and os.sep in words[0]:
            return _program(words)
        if not _FUNCTION.match(text):
            raise InputError(
                f"`{shown(text)}` names nothing that a task can do",
                remedy=f"give {SLEEP}, {SPIN}, MODULE:FUNCTION of Python, LIBRARY.so:FUNCTION of C,"
                " or ./PROGRAM",
            )
        place, _, function = text.rpartition(":")
        path, _, module = place.rpartition("/")
        name = f"{os.path.abspath(path)}/{module}:{function}"
        _try(
            name,
            f"{module}:{function}",
            "a function of a module that Python finds here, or in this folder",
        )
        return name


TASK_BODY = TaskBody()


def task_option(default: str | None = SLEEP, default_text: str = "", record: str = "") -> Any:
    """The parameter `--task`."""
    return option(
        "--task",
        TASK_BODY,
        metavar="TASK",
        help="What tasks do: sleep; spin, which keeps a processor busy; MODULE:FUNCTION of Python;"
        " LIBRARY.so:FUNCTION of C; or a program, './PROGRAM ARGUMENTS'.",
        default=default,
        default_text=default_text,
        record=record,
    )


def parse_body(text: str) -> str:
    """The body that `--task` names. InputError if it is none, or cannot be used here."""
    return TASK_BODY.parse("--task", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksOptions:
    """Tasks that are all alike."""

    tasks: int | None = option(
        "--tasks", Count(1, MOST_TASKS), metavar="N", help="Number of tasks."
    )
    task_time: float | None = option(
        "--task-time",
        Duration(0.0, LONGEST_TIME),
        metavar="TIME",
        help="Mean time of a task.",
        default_text="10 ms",
    )
    input_per_task: int = option(
        "--input-per-task",
        SIZE,
        metavar="SIZE",
        help="Input of each task, such as 10KB. 1 MB is 1,024 KB.",
        default=0,
    )
    shared: int = option(
        "--shared",
        SIZE,
        metavar="SIZE",
        help="Data that is the same for all tasks.",
        default=0,
    )
    output_per_task: int = option(
        "--output-per-task", SIZE, metavar="SIZE", help="What each task returns.", default=0
    )

    def given(self) -> list[str]:
        """The options whose values differ from the default."""
        return [
            one.flag
            for name, one, default in declarations(TasksOptions)
            if getattr(self, name) != default
        ]

    def workload(self, cores: int, time_scale: float, body: str = SLEEP) -> Workload:
        """Such tasks on so many workers; by default so many that runs are short, but not all
        overhead. InputError if there would be too many."""
        import numpy as np

        from gridbench.workload.workload import BYTES_PER_KB, Setup, Workload

        count = self.tasks or TASKS_PER_CORE * cores
        if count > MOST_TASKS:
            raise InputError(
                f"{counted(count, 'task')} for {counted(cores, 'core')} are too many",
                remedy=f"give --tasks N, up to {MOST_TASKS:,}",
            )
        setup = Setup(
            path=None,
            ntasks=count,
            nnodes=cores,
            input_file="",
            task_kb=self.input_per_task / BYTES_PER_KB,
            shared_kb=self.shared / BYTES_PER_KB,
            write_kb=self.output_per_task / BYTES_PER_KB,
        )
        seconds = TASK_TIME if self.task_time is None else self.task_time
        return Workload(setup, np.full(count, seconds * time_scale), time_scale, body)


stddev_option = click.option(
    "--stddev",
    metavar="SHARE|TIME",
    help="Standard deviation of the times of tasks: a share of their mean, such as 50%, or a time,"
    " such as 5s. [default: 0]",
)
seed_option = click.option(
    "--seed",
    type=Count(0, 2**31 - 1),
    default=1,
    show_default=True,
    metavar="K",
    help="Random seed: the same seed gives the same order and times.",
)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text) or [""]
    except ValueError as error:
        raise InputError(
            f"`{shown(text)}` is not a command: {error}", remedy="close the quotes"
        ) from None


def _library(text: str) -> str:
    path, _, function = text.rpartition(":")
    if not os.path.isfile(path):
        raise InputError(
            f"there is no shared library `{shown(path)}`",
            remedy="build it with `cc -O2 -shared -fPIC -o NAME.so NAME.c`",
        )
    name = f"{os.path.abspath(path)}:{function}"
    _try(
        name,
        f"{os.path.basename(path)}:{function}",
        "a function that the library exports, which `nm -D --defined-only` lists; modules of"
        " `gridrpc compile` export none: build their C file as a shared library of its own",
    )
    return name


def _program(words: list[str]) -> str:
    path = os.path.abspath(os.path.expanduser(words[0]))
    if not (os.path.isfile(path) and os.access(path, os.X_OK)):
        what = "is not executable" if os.path.isfile(path) else "does not exist"
        raise InputError(
            f"the program `{shown(words[0])}` {what}",
            remedy="give the path of a program, and its arguments in the same quotes, such as"
            " --task './model {seconds}'",
        )
    return PROGRAM + shlex.join([path, *words[1:]])


def _try(name: str, reported: str, remedy: str) -> None:
    """InputError if the body of that name cannot be used."""
    # In a process of its own, so that engines which fork from this one do not bring along what the
    # user's module loads.
    tried = subprocess.run([*PYTHON, "-c", _TRY, name], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        lines = tried.stderr.split("\n")
        why = next(filter(str.strip, reversed(lines)), f"status {tried.returncode}")
        raise InputError(f"{reported} cannot be used: {why.strip()[:300]}", remedy=f"give {remedy}")


@click.command(
    "list-times",
    cls=CommandWithExamples,
    examples=(
        "gridbench list-times --tasks 200 --mean 1 --stddev 0.1 --out input.200.1.0.1",
        "gridbench list-times --tasks 1200 --mean 30 --stddev 0 --seed 7 --out input.30",
    ),
)
@click.option(
    "--tasks", type=Count(1, MOST_TASKS), required=True, metavar="N", help="Number of tasks."
)
@click.option("--mean", type=float, required=True, metavar="M", help="Mean, in seconds.")
@stddev_option
@seed_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The list to write.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@json_option
def list_times(
    *, tasks: int, mean: float, stddev: str | None, seed: int, out: Path, force: bool, as_json: bool
) -> None:
    """Write a list of task times, for the InputFile of a set-up file.

    Times are drawn from a normal distribution that is truncated at 0.
    """
    from gridbench.formats import counted, duration, spread
    from gridbench.quantities import parse_stddev
    from gridbench.workload.workload import write_task_times

    seconds, share = parse_stddev("--stddev", stddev or "0")
    deviation = seconds + share * mean
    times = write_task_times(out, tasks, mean, deviation, seed, replace=force)
    least, most, average = (float(one) for one in (times.min(), times.max(), times.mean()))
    if as_json:
        print_json({"file": out, "tasks": tasks, "min": least, "max": most, "mean": average})
        return
    click.echo(
        f"{out}: {counted(tasks, 'time')}, {spread([least, most])}, mean {duration(average)}"
    )
