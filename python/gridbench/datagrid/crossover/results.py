"""Reading a folder of results."""

from __future__ import annotations

from pathlib import Path

from gridbench.datagrid.crossover.record import FILE, FORM, Sharing
from gridbench.errors import InputError
from gridbench.record_file import Header, load_records


def holds_results(source: Path) -> bool:
    """Whether there are results: a folder with them, or the file itself."""
    return (source / FILE).is_file() or (source.name == FILE and source.is_file())


def folder_of(source: Path) -> Path:
    """The folder of the results that `source` stands for."""
    return source.parent if source.is_file() else source


def read_results(source: Path) -> tuple[Header, list[Sharing]]:
    """What all measurements have in common, and the last attempt at each.

    Raises InputError if there are none, or if the file is damaged.
    """
    if not holds_results(source):
        raise InputError(
            f"holds no crossover of shared data: there is no {FILE}",
            file=source,
            remedy="give the folder that `gridbench data crossover` has written",
        )
    header, found = load_records(folder_of(source) / FILE, FORM)
    return header, list({one.identity: one for one in found}.values())
