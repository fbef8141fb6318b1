"""What runs in sessions: functions that leave a trace in a folder."""

from __future__ import annotations

import os
import time
from pathlib import Path


def noted(folder: str, item: int) -> int:
    """Leaves a trace that it has run."""
    with open(f"{folder}/ran", "a") as file:
        file.write(f"{item}\n")
    return 10 * item


def slowly(folder: str, item: int) -> int:
    time.sleep(0.01)
    return noted(folder, item)


def waits(folder: str, item: int) -> int:
    """Returns when somebody makes a file, unless it is an early item."""
    noted(folder, item)
    while item >= 10 and not os.path.exists(f"{folder}/gate"):
        time.sleep(0.005)
    return item


def not_today(folder: str, item: int) -> int:
    """Raises an error for item 5, unless it did before."""
    noted(folder, item)
    if item == 5 and not os.path.exists(f"{folder}/failed"):
        Path(folder, "failed").touch()
        raise ValueError("not today")
    return item
