"""Arguments and results in files, for engines whose tasks are processes of their own."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Stored:
    """Stands for an argument that the task has to read from a file."""

    place: Path


def store(value: Any, place: Path) -> Stored:
    """Write a value to a file."""
    place.write_bytes(pickle.dumps(value, protocol=5))
    return Stored(place)


def keep_result(place: Path, function: Callable[..., Any], args: Sequence[Any]) -> None:
    """In the task's process: call the function, and leave its result or its error in a file."""
    try:
        values = [
            pickle.loads(arg.place.read_bytes()) if isinstance(arg, Stored) else arg for arg in args
        ]
        left = pickle.dumps((None, function(*values)), protocol=5)
    except (Exception, SystemExit) as error:
        left = pickle.dumps((error, None))
    # Whoever sees it sees all of it.
    whole = place.with_suffix(".part")
    whole.write_bytes(left)
    whole.rename(place)


def kept(place: Path) -> tuple[BaseException | None, Any]:
    """What `keep_result` has left: the error, or the result. Raises FileNotFoundError."""
    try:
        error, value = pickle.loads(place.read_bytes())
    except FileNotFoundError:
        raise
    except Exception as unreadable:  # pickle raises whatever a class raises
        return unreadable, None
    return error, value
