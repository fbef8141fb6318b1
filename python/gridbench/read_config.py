"""Files that people write: whole in memory, if they are of a sane size."""

from __future__ import annotations

import stat
from pathlib import Path

from gridbench.errors import InputError

LARGEST = 1 << 20
"""Bytes; such a file has some hundred."""


def read_bytes(path: Path, what: str, remedy: str) -> bytes:
    """What is in it. InputError if it is no file, cannot be read, or is too large. `what`: the
    kind of file that it should be."""
    try:
        # A pipe or a device would block or never end; only regular files are opened.
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("is not a regular file", file=path, remedy=remedy)
        with path.open("rb") as file:
            contents = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot read the {what}: {reason}", file=path, remedy=remedy) from None
    if len(contents) > LARGEST:
        raise InputError(
            f"is larger than {LARGEST:,} bytes, too large for a {what}", file=path, remedy=remedy
        )
    return contents


def read_text(path: Path, what: str, remedy: str) -> str:
    """The same as text in UTF-8; a byte order mark is left out."""
    contents = read_bytes(path, what, remedy)
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            "is not text in UTF-8",
            file=path,
            line=contents.count(b"\n", 0, error.start) + 1,
            remedy="save the file as UTF-8",
        ) from None
    if "\0" in text:
        raise InputError(
            "holds a zero byte, and so is no text",
            file=path,
            line=text.count("\n", 0, text.index("\0")) + 1,
            remedy=remedy,
        )
    return text
