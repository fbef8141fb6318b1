"""A picture as every page shows it: where a script draws it, and its numbers as a table."""

from __future__ import annotations

from dataclasses import dataclass

from gridbench.pages.table import Table


@dataclass(frozen=True, slots=True)
class Chart:
    """The script of the page draws `kind`, with the data that the page has under `name`."""

    kind: str
    label: str
    """What it shows, for those who cannot see it."""
    name: str = ""
    title: str = ""
    """A heading above it."""
    about: str = ""
    run: int | None = None
    """The place of the run that it shows in the page's data."""
    table: Table | None = None
