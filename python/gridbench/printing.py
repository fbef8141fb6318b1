"""What a command prints, and for whom: its options `--json` and `--quiet`, which all commands
share."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gridbench.terminal import new_console

if TYPE_CHECKING:
    from rich.console import Console

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print all values as JSON, and no tables."
)
quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Print results and errors, and no progress."
)


@dataclass(frozen=True, slots=True)
class Printing:
    """What the command line asks to be printed."""

    as_json: bool = False
    """The results as one JSON document, and nothing else, on standard output."""
    quiet: bool = False
    """Nothing about what happens."""

    def progress(self) -> Console:
        """Where a command says what happens: standard error, unless that is not wanted."""
        return new_console(stderr=True, quiet=self.quiet)

    def tables(self) -> Console:
        """Where a command shows results to people: standard output, unless that is for JSON."""
        return new_console(quiet=self.as_json)

    def document(self, record: Callable[[], object]) -> None:
        """Print what `record` returns as JSON, if that is wanted."""
        if self.as_json:
            print_json(record())

    def say(self, line: str) -> None:
        """A line on standard error that only people want, such as where the results are."""
        if not self.quiet:
            click.echo(line, err=True)


def print_json(record: object) -> None:
    """Print a JSON document on standard output. ValueError for numbers that JSON does not have."""
    click.echo(json.dumps(record, indent=2, allow_nan=False, default=os.fspath))


def printing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command both options, as its argument `printing`."""

    @functools.wraps(command)
    def with_printing(*, as_json: bool, quiet: bool, **others: Any) -> None:
        command(printing=Printing(as_json=as_json, quiet=quiet), **others)

    return json_option(quiet_option(with_printing))
