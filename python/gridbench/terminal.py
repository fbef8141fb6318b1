"""What all commands print alike in a terminal: sentences, and tables without frames, which would be
in the way of whoever reads them through a pipe.

What draws is imported when it is wanted: sentences are also said where engines' environments hold
little else than the standard library.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def new_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Where text is shown as it stands: `[x]` is no markup, `:x:` no picture, and figures have no
    colours."""
    from rich.console import Console

    return Console(stderr=stderr, quiet=quiet, highlight=False, markup=False, emoji=False)


def say(console: Console, line: str) -> None:
    """A sentence, which may hold names from outside. It is not broken into lines, so that who
    searches through a pipe finds it."""
    console.print(printable(line), soft_wrap=True, markup=False, emoji=False, highlight=False)


def new_table(
    title: str = "",
    *,
    words: Iterable[str] = (),
    numbers: Iterable[str] = (),
    header: bool = True,
) -> Table:
    """A table without rows. `words`: heads of its first columns, `numbers`: of those after them,
    whose cells stand at the right. Where there is no room, cells are folded and lose nothing."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_header=header,
    )
    for head in words:
        table.add_column(head, overflow="fold")
    for head in numbers:
        table.add_column(head, justify="right", overflow="fold")
    return table


def printable(text: str) -> str:
    """Text from outside, such as names of tasks and hosts, that steers no terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
