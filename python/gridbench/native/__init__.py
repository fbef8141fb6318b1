"""The benchmark's work as functions of a compiled module, for workers that run no Python."""

from __future__ import annotations

from pathlib import Path

from gridbench.errors import InputError

FOLDER = Path(__file__).parent


def module() -> Path:
    """The module `gridbench_tasks`, compiled from tasks.idl when gridbench was installed.

    Raises InputError if it is not there.
    """
    path = FOLDER / "gridbench_tasks.so"
    if not path.is_file():
        raise InputError(f"there is no {path}", remedy="`make install` compiles it")
    return path
