"""Writes the report of one or several runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gridbench.errors import InputError
from gridbench.report.page import render
from gridbench.report.source import load_runs
from gridbench.report.study import study


def write_report(sources: Sequence[Path], out: Path) -> None:
    """Write one self-contained HTML page about `sources` (run folders or task logs) to `out`.

    The page appears under its name when it is complete, or not at all. Raises InputError for a
    source that cannot be read, and if `out` cannot be written.
    """
    page = render([study(run) for run in load_runs(sources)])
    try:
        _write_atomically(out, page)
    except OSError as error:
        raise InputError(
            f"cannot write the report: {error.strerror or error}",
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
