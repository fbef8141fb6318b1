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
from gridbench.workload.body import SLEEP, SPIN

_FUNCTION = re.compile(r"(?:.*/)?[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")

_TRY = "import sys; from gridbench.workload.body import body; body(sys.argv[1])"

_NAMES = f"{SLEEP}|{SPIN}|MODULE:FUNCTION"


def _option(default: str, told: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--task", "body_name", metavar=_NAMES, default=default, show_default=True, help=told
    )


_CALL = (
    "call FUNCTION(seconds, data, shared) of a Python module, which may be in the current folder."
)
task_option = _option(
    SLEEP, f"What a task does for its time: wait; keep a processor busy; or {_CALL}"
)
work_option = _option(
    SPIN,
    f"What the tasks of the job do: wait, or keep a processor busy; with --try also {_CALL}",
)
busy_option = _option(
    SPIN, f"What the tasks of `work` do for 10 ms: wait; keep a processor busy; or {_CALL}"
)


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
