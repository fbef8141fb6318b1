"""The option --link."""

from __future__ import annotations

import click

DEFAULT_LINK = "1gbit"
link_option = click.option(
    "--link",
    metavar="RATE",
    help=f"Rate of the links, such as 100mbit, in each direction. [default: {DEFAULT_LINK}]",
)
