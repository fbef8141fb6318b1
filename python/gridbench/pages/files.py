"""The files that pages are made of, and writing a page."""

from __future__ import annotations

import os
import tempfile
from importlib import resources
from pathlib import Path

from gridbench.errors import InputError


def asset(name: str) -> str:
    """The text of a file that pages are made of: `report/report.js` is assets/report.js of the
    package gridbench.report."""
    package, _, file = name.rpartition("/")
    folder = resources.files("gridbench." + package.replace("/", "."))
    return folder.joinpath("assets", file).read_text(encoding="utf-8")


def write_page(out: Path, page: str) -> None:
    """Write `page` to `out`; it appears under its name when it is complete, or not at all.

    Raises InputError if `out` cannot be written.
    """
    try:
        _write_atomically(out, page)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}",
            file=out,
            remedy="give a file in a folder that exists and can be written to",
        ) from None


def _write_atomically(out: Path, page: str) -> None:
    handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.", suffix=".part")
    part = Path(name)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(page)
        # mkstemp makes files for the owner alone; a report is for showing around.
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)
        part.replace(out)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
