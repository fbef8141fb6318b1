"""The command `gridbench links`, rates of links, and the option --link."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError
from gridbench.formats import bit_rate
from gridbench.printing import Printing, printing_options
from gridbench.quantities import Count, Quantity
from gridbench.workload.numbers import shown

_SMALLEST, _LARGEST = 10e3, 1e12  # bits per second
_UNITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_RATE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *([A-Za-z]*)(?:/s)?", re.ASCII)
_REMEDY = "give a rate such as 1gbit, 100mbit or 500kbit"


class LinkRate(Quantity[float]):
    """Bits per second, such as `1gbit`, `100mbit` or `2.5 Gbit/s`. Prefixes are powers of 1,000."""

    name = "rate"

    def read(self, value: Any, folder: Path | None = None) -> float:
        """The rate. InputError says what was probably meant."""
        del folder
        text = str(value)
        match = _RATE.fullmatch(text.strip())
        if match is None:
            raise InputError(f"`{shown(text)}` is not a rate", remedy=_REMEDY)
        number, unit = match[1], match[2]
        if unit.lower() not in _UNITS:
            # People write 1g, 1gb, 1Gb and 1Gbps for 1gbit; some of them mean bytes.
            near = f"{unit[0].lower()}bit" if unit else ""
            meant = f"did you mean `{number}{near}`? " if near in _UNITS else ""
            wrong = f"`{shown(unit)}` is not a unit of rates" if unit else "the unit is missing"
            raise InputError(f"`{shown(text)}` is not a rate: {wrong}", remedy=meant + _REMEDY)
        rate = float(number) * _UNITS[unit.lower()]
        if not _SMALLEST <= rate <= _LARGEST:
            raise InputError(
                f"{shown(text)} is not between {bit_rate(_SMALLEST)} and {bit_rate(_LARGEST)}",
                remedy=_REMEDY,
            )
        return rate


LINK_RATE = LinkRate()
parse_rate = LINK_RATE.parse


DEFAULT_LINK = "1gbit"
link_option = click.option(
    "--link",
    metavar="RATE",
    help=f"Rate of the links, such as 100mbit, in each direction. [default: {DEFAULT_LINK}]",
)


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench links --nodes 3 --link 1gbit",
        "gridbench links --link 100mbit --json",
        "gridbench links --clean               # remove what killed runs have left",
    ),
)
@click.option(
    "--nodes",
    type=Count(1, 250),
    metavar="K",
    help="Nodes that gridbench emulates on this machine; needs root. [default: 1]",
)
@link_option
@click.option(
    "--seconds",
    type=float,
    default=1.0,
    show_default=True,
    metavar="S",
    help="How long each rate is measured.",
)
@printing_options
@click.option("--clean", is_flag=True, help="Only remove networks that killed runs have left.")
def links(
    *, nodes: int | None, link: str | None, seconds: float, clean: bool, printing: Printing
) -> None:
    """Put K nodes behind links of a given rate, and measure what these links do.

    Nodes are network namespaces, and links are pairs of virtual devices with a token bucket for
    each direction, the same as workers behind links get. They are removed at the end. The command
    needs root and iproute2.
    """
    from gridbench.links.command import LinksRequest, show_links

    sys.exit(
        show_links(
            LinksRequest(
                nodes=nodes or 1,
                link=link or DEFAULT_LINK,
                seconds=seconds,
                only_clean=clean,
                printing=printing,
            )
        )
    )
