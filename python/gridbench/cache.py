"""What is kept for later calls, in the user's cache directory, which can be emptied at any time."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gridbench.errors import InputError


def kept_file(kind: str, *parts: str) -> Path:
    """Where something of this kind lies that is known by these parts, if there is such."""
    name = "@".join(re.sub(r"[^\w.+-]+", "_", part) for part in parts)
    return cache_folder() / kind / f"{name}.json"


def cache_folder() -> Path:
    """gridbench's folder in the user's cache directory. Raises InputError if the user has none."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The standard says that a path which is not absolute is to be ignored.
    home = Path(cache) if os.path.isabs(cache) else _home() / ".cache"
    return home / "gridbench"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise InputError(
            "this user has no home directory, so there is no place to keep results for later: set "
            "HOME or XDG_CACHE_HOME"
        ) from None
