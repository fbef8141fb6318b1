"""Reading a folder of results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gridbench.datagrid.record import FILE, FORM, Case
from gridbench.errors import InputError
from gridbench.record_file import Header, load_records


def holds_results(source: Path) -> bool:
    """Whether there are results: a folder with them, or the file itself."""
    return (source / FILE).is_file() or (source.name == FILE and source.is_file())


def folder_of(source: Path) -> Path:
    """The folder of the results that `source` stands for."""
    return source.parent if source.is_file() else source


def read_results(source: Path) -> tuple[Header, list[Case]]:
    """What all cases have in common, and the last attempt at each, as one that failed is made
    again. It can be read while more are made.

    Raises InputError if there are none, or if the file is damaged.
    """
    if not holds_results(source):
        raise InputError(
            f"holds no cases of a data grid: there is no {FILE}",
            file=source,
            remedy="give the folder that `gridbench data` has written",
        )
    header, cases = load_records(folder_of(source) / FILE, FORM)
    return header, last_attempts(cases)


def last_attempts(cases: Iterable[Case]) -> list[Case]:
    """The last attempt at each case, which is the one that counts."""
    return list({case.identity: case for case in cases}.values())
