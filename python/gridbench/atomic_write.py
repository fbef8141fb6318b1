"""Writing files that appear under their name when they are complete, or not at all."""

from __future__ import annotations

import os
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
