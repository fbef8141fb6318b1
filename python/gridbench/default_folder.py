"""Where results go that the user has named no folder for."""

from __future__ import annotations

import time
from pathlib import Path


def default_folder(name: str = "") -> Path:
    """A folder below `runs` with the name and the local time, that does not exist yet."""
    stem = "-".join(filter(None, [name, time.strftime("%Y-%m-%dT%H-%M-%S")]))
    folder, number = Path("runs", stem), 1
    while folder.exists():
        number += 1
        folder = Path("runs", f"{stem}-{number}")
    return folder
