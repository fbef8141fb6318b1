"""Arguments and results in files, for engines whose tasks are processes of their own.

    python -m gridbench.engines.job_files PLACE NUMBER

is the process of a task that is a batch job, by the place of its files and its number.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class StoredArgument:
    """Stands for an argument that the task has to read from a file."""

    place: Path


def store_argument(value: Any, place: Path) -> StoredArgument:
    """Write a value to a file."""
    place.write_bytes(pickle.dumps(value, protocol=5))
    return StoredArgument(place)


def write_result(place: Path, function: Callable[..., Any], args: Sequence[Any]) -> None:
    """In the task's process: call the function, and leave its result or its error in a file."""
    try:
        values = [
            pickle.loads(arg.place.read_bytes()) if isinstance(arg, StoredArgument) else arg
            for arg in args
        ]
        left = pickle.dumps((None, function(*values)), protocol=5)
    except (Exception, SystemExit) as error:
        left = pickle.dumps((error, None))
    # Whoever sees it sees all of it.
    whole = place.with_suffix(".part")
    whole.write_bytes(left)
    whole.rename(place)


def read_result(place: Path) -> tuple[BaseException | None, Any]:
    """What `keep_result` has left: the error, or the result. Raises FileNotFoundError."""
    try:
        error, value = pickle.loads(place.read_bytes())
    except FileNotFoundError:
        raise
    except Exception as unreadable:  # pickle raises whatever a class raises
        return unreadable, None
    return error, value


def run_job(folder: str, number: int) -> None:
    """In the process of a batch job: do the task of this number; an array adds its own to it."""
    number += int(os.environ.get("SLURM_ARRAY_TASK_ID", "0"))
    place = Path(folder, str(number))
    function, args = pickle.loads(place.with_suffix(".in").read_bytes())
    write_result(place.with_suffix(".out"), function, args)


if __name__ == "__main__":
    # Arguments are of the class of the module, and not of the main module's.
    from gridbench.engines import job_files  # noqa: PLW0406

    job_files.run_job(sys.argv[1], int(sys.argv[2]))
