"""What is kept for later calls, in the user's cache directory, which can be emptied at any time."""

from __future__ import annotations

import os
import re
from pathlib import Path


def kept_file(kind: str, *parts: str) -> Path:
    """Where something of this kind lies that is known by these parts, if there is such."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The standard says that a path which is not absolute is to be ignored.
    home = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    name = "@".join(re.sub(r"[^\w.+-]+", "_", part) for part in parts)
    return home / "gridbench" / kind / f"{name}.json"
