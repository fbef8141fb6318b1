"""The options of `gridbench links`."""

from __future__ import annotations

import sys

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.links.link_option import DEFAULT_LINK, link_option
from gridbench.printing import Printing, printing_options
from gridbench.quantities import Count


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
