"""Tables in a terminal: those of all commands look alike, and have no frames, which are in the way
of whoever reads them through a pipe."""

from __future__ import annotations

from rich import box
from rich.table import Table


def new_table(title: str = "", *, header: bool = True) -> Table:
    """An empty table."""
    return Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_header=header,
    )


def printable(text: str) -> str:
    """Text from outside, such as names of tasks and hosts, that steers no terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
