"""The options that say what tasks do, and what a work does that is divided into tasks."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from typing import Any

import click

from gridbench.errors import InputError
from gridbench.process.launch import PYTHON
from gridbench.quantities import SECONDS, Count
from gridbench.workload.body import SLEEP, SPIN

_FUNCTION = re.compile(r"(?:.*/)?[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")

_TRY = "import sys; from gridbench.workload.body import body; body(sys.argv[1])"

task_option = click.option(
    "--task",
    "body_name",
    metavar=f"{SLEEP}|{SPIN}|MODULE:FUNCTION",
    default=SLEEP,
    show_default=True,
    help="What tasks do: wait for their time; keep a processor busy for that time; or call"
    " FUNCTION(seconds, data, shared) of a Python module, which may be in the current folder.",
)
input_option = click.option(
    "--input-per-task",
    "bytes_in_each",
    metavar="SIZE",
    default="0",
    show_default=True,
    help="Input of each task, such as 10KB. 1 MB is 1,024 KB.",
)
shared_option = click.option(
    "--shared",
    metavar="SIZE",
    default="0",
    show_default=True,
    help="Data that is the same for all tasks.",
)
output_option = click.option(
    "--output-per-task",
    "bytes_out_each",
    metavar="SIZE",
    default="0",
    show_default=True,
    help="What each task returns.",
)
count_option = click.option(
    "--tasks", type=Count(1, 10_000_000), metavar="N", help="Number of tasks."
)
time_option = click.option(
    "--task-time", type=SECONDS, metavar="TIME", help="Mean time of a task. [default: 10 ms]"
)


def tasks_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of tasks that are all alike."""
    for option in (output_option, shared_option, input_option, time_option, count_option):
        command = option(command)
    return command


def parse_body(text: str) -> str:
    """The body that the option names, such that every process of this machine finds it.

    InputError if it is none, or cannot be imported here.
    """
    if text in (SLEEP, SPIN):
        return text
    if not _FUNCTION.match(text):
        raise InputError(
            f"--task: `{text[:80]}` names nothing that a task can do",
            remedy=f"give {SLEEP}, {SPIN}, or MODULE:FUNCTION",
        )
    place, _, function = text.rpartition(":")
    folder, _, module = place.rpartition("/")
    name = f"{os.path.abspath(folder)}/{module}:{function}"
    # In a process of its own, so that engines which fork from this one do not bring along what the
    # user's module loads.
    tried = subprocess.run([*PYTHON, "-c", _TRY, name], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        lines = tried.stderr.split("\n")
        told = next(filter(str.strip, reversed(lines)), f"status {tried.returncode}")
        raise InputError(
            f"--task: {module}:{function} cannot be used: {told.strip()[:300]}",
            remedy="give a function of a module that Python finds here, or in this folder",
        )
    return name
