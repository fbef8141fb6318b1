"""Arguments and results in files, for engines with a process per task.

    python -m gridbench.engines.job_files FOLDER NUMBER

runs task NUMBER as a batch job, with files in FOLDER.
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
    """Reference to an argument in a file."""

    place: Path


def store_argument(value: Any, place: Path) -> StoredArgument:
    """Write a value to a file."""
    place.write_bytes(pickle.dumps(value, protocol=5))
    return StoredArgument(place)


def write_result(place: Path, function: Callable[..., Any], args: Sequence[Any]) -> None:
    """Call the function in the task's process, and write its result or error to a file."""
    try:
        values = [
            pickle.loads(arg.place.read_bytes()) if isinstance(arg, StoredArgument) else arg
            for arg in args
        ]
        left = pickle.dumps((None, function(*values)), protocol=5)
    except (Exception, SystemExit) as error:
        left = pickle.dumps((error, None))
    # Readers see the whole file.
    whole = place.with_suffix(".part")
    whole.write_bytes(left)
    whole.rename(place)


def read_result(place: Path) -> tuple[BaseException | None, Any]:
    """Read what `write_result` wrote: error and result. Raises FileNotFoundError."""
    try:
        error, value = pickle.loads(place.read_bytes())
    except FileNotFoundError:
        raise
    except Exception as unreadable:
        return unreadable, None
    return error, value


def run_job(folder: str, number: int) -> None:
    """Run the task of this number, plus the index in a job array, in a batch job."""
    number += int(os.environ.get("SLURM_ARRAY_TASK_ID", "0"))
    place = Path(folder, str(number))
    function, args = pickle.loads(place.with_suffix(".in").read_bytes())
    write_result(place.with_suffix(".out"), function, args)


if __name__ == "__main__":
    # Classes of arguments belong to the module, not to __main__.
    from gridbench.engines import job_files  # noqa: PLW0406

    job_files.run_job(sys.argv[1], int(sys.argv[2]))
