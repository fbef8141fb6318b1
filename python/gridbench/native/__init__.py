"""Built-in tasks as compiled code, for workers without Python: a module and a program."""

from __future__ import annotations

from pathlib import Path

from gridbench.errors import InputError

FOLDER = Path(__file__).parent


def module() -> Path:
    """The module `gridbench_tasks`, compiled from tasks.idl when gridbench was installed.

    Raises InputError if it is not there.
    """
    return _compiled("gridbench_tasks.so")


def task_program() -> Path:
    """The program `gridbench-task` with the built-in tasks of synchronised rounds, compiled from
    crates/task when gridbench was installed.

    Raises InputError if it is not there.
    """
    return _compiled("gridbench-task")


def _compiled(name: str) -> Path:
    path = FOLDER / name
    if not path.is_file():
        raise InputError(f"there is no {path}", remedy="`make install` compiles it")
    return path
