"""Writes the report of one or several runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.pages.files import write_page
from gridbench.report.page import render
from gridbench.report.rounds import studies_of


def write_report(sources: Sequence[Path], out: Path) -> None:
    """Write one self-contained HTML page about `sources` (run folders or task logs) to `out`.

    The page appears under its name when it is complete, or not at all. Raises InputError for a
    source that cannot be read, and if `out` cannot be written.
    """
    write_page(out, render(studies_of(sources)))
