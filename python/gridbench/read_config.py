"""Files that people write: whole in memory, if they are of a sane size."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from gridbench.errors import InputError

LARGEST = 1 << 20
"""Bytes; such a file has some hundred."""


def read_bytes(path: Path, what: str, remedy: str) -> bytes:
    """Its content. InputError if it is no file, cannot be read, or is too large. `what`: the
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


def parse_toml(path: Path, text: str, remedy: str = "") -> dict[str, Any]:
    """The tables of a TOML file with this text. InputError names the line."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line = line_of_error(error)
        raise InputError(f"is not TOML: {error}", file=path, line=line, remedy=remedy) from None


def line_of_error(error: Exception) -> int | None:
    """The line that an error of tomllib names."""
    where = re.search(r" \(at line ([0-9]+)", str(error))
    return int(where[1]) if where else None


def line_of_key(text: str, key: str) -> int | None:
    """The line of a key of a table, or of the table of that name."""
    named = rf"^[ \t]*\[*[ \t]*[\"']?{re.escape(key)}[\"']?[ \t]*[=.\]]"
    found = re.search(named, text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else None
