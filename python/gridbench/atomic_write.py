"""Writing files that appear under their name when they are complete, or not at all."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gridbench.errors import InputError

_DEVICES = (Path("/dev"), Path("/dev/fd"))
"""Folders whose names stand for files that are open."""


def write_file(path: Path, content: str | bytes) -> None:
    """Write or replace it. InputError if that cannot be; an older file is then as it was."""
    try:
        replace_file(path, content)
    except BrokenPipeError:
        # The reader of a pipe has gone, as that of standard output may.
        raise
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}",
            file=path,
            remedy="give a file in a folder that exists and can be written to",
        ) from None


def replace_file(path: Path, content: str | bytes) -> None:
    """The same for one who has more to say than that it cannot be written: OSError.

    What is no regular file, such as a pipe or /dev/stdout, is written to as it is. A symbolic link
    stays, and the file that it leads to is replaced.
    """
    data = content.encode() if isinstance(content, str) else content
    if path.parent in _DEVICES or (path.exists() and not path.is_file()):
        path.write_bytes(data)
        return
    place = Path(os.path.realpath(path))
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


# ---- The user's cache


def cache_file(kind: str, *parts: str) -> Path:
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
