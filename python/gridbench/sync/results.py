"""Reading a folder of results."""

from __future__ import annotations

from pathlib import Path

from gridbench.errors import InputError
from gridbench.record_file import Header, load_records
from gridbench.sync.record import FILE, FORM, Round


def holds_results(source: Path) -> bool:
    """Whether there are results: a folder with them, or the file itself."""
    return (source / FILE).is_file() or (source.name == FILE and source.is_file())


def folder_of(source: Path) -> Path:
    """The folder of the results that `source` stands for."""
    return source.parent if source.is_file() else source


def read_results(source: Path) -> tuple[Header, list[Round]]:
    """What all rounds have in common, and the last attempt at each round, as one that failed is
    made again. It can be read while more are made.

    Raises InputError if there are none, or if the file is damaged.
    """
    if not holds_results(source):
        raise InputError(
            f"holds no synchronised rounds: there is no {FILE}",
            file=source,
            remedy="give the folder that `gridbench sync` has written",
        )
    header, rounds = load_records(folder_of(source) / FILE, FORM)
    return header, list({one.identity: one for one in rounds}.values())
