"""`gridbench links`: makes a network, and shows what its links do beside what they are to do."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

import click
from rich.console import Console

from gridbench.errors import InputError
from gridbench.formats import as_given, bit_rate, duration, percent
from gridbench.links.measure import Figures, Rates, measure
from gridbench.links.rates import parse_rate
from gridbench.printing import Printing
from gridbench.terminal import new_table
from gridbench_testbed.links import iproute
from gridbench_testbed.links.network import MTU, Network
from gridbench_testbed.links.owners import remove_leftovers

_ETHERNET, _HEADERS = 14, 52  # bytes: what the rate counts beside a packet; IP and TCP within it
_SHORT = 0.85  # of the nominal rate: with less, the machine and not the link is the limit


@dataclass(frozen=True, kw_only=True, slots=True)
class LinksRequest:
    """What the user asked for."""

    nodes: int = 1
    link: str = "1gbit"
    seconds: float = 1.0
    """For each rate."""
    only_clean: bool = False
    """Only remove what killed runs have left."""
    printing: Printing = field(default_factory=Printing)


def show_links(request: LinksRequest) -> int:
    """Measure and print. Returns the exit status."""
    if request.only_clean:
        iproute.require()
        left = remove_leftovers()
        for tag in left:
            click.echo(f"removed the network {tag}, whose process is gone")
        if not left:
            click.echo("nothing has been left")
        return 0
    if not math.isfinite(request.seconds) or not 0.01 <= request.seconds <= 3600:
        raise InputError(
            f"--seconds: {as_given(request.seconds, '')} is not from 0.01 to 3,600",
            remedy="leave it out",
        )
    rate = parse_rate("--link", request.link)
    waiting = request.printing.progress()
    with Network(request.nodes, rate) as network, waiting.status("") as status:
        figures = measure(network, request.seconds, status.update)
    _print(request.printing.tables(), network, figures)
    request.printing.document(lambda: _record(network, figures))
    return 0


def payload_rate(rate: float) -> float:
    """What of a link's rate is left for data in full packets: headers take the rest."""
    return rate * (MTU - _HEADERS) / (MTU + _ETHERNET)


def _record(network: Network, figures: Figures) -> dict[str, object]:
    return {
        "nodes": network.nodes,
        "rate": network.rate,
        "payload_rate": payload_rate(network.rate),
        "burst_bytes": network.burst,
        "queue_bytes": network.queue,
        "mtu": MTU,
        "measured": asdict(figures),
    }


def _print(console: Console, network: Network, figures: Figures) -> None:
    nominal = bit_rate(network.rate)
    nodes = "1 node" if network.nodes == 1 else f"{network.nodes} nodes"
    table = new_table(
        f"{nodes} behind links of {nominal}",
        words=("with",),
        numbers=("round trip", "to node", "of nominal", "from node", "of nominal"),
    )
    for node in figures.nodes:
        trip = duration(node.round_trip)
        table.add_row(f"node {node.number}", trip, *_cells(node.rates, network.rate))
    if network.nodes > 1:
        table.add_row("all at once", "", *_cells(figures.together, network.rate))
    console.print(table)
    console.print(
        f"Of {nominal}, {bit_rate(payload_rate(network.rate))} can carry data: Ethernet, IP and"
        " TCP headers take the rest. All nodes share the client's link."
    )
    least = min(min(rates.out, rates.back) for rates in _all(figures))
    if least < _SHORT * network.rate:
        console.print(
            f"The least of these rates is {percent(least / network.rate, 0)} of the nominal one:"
            " this machine does not keep up with such links, or is busy with something else."
        )


def _all(figures: Figures) -> list[Rates]:
    return [*(node.rates for node in figures.nodes), figures.together]


def _cells(rates: Rates, nominal: float) -> list[str]:
    cells = []
    for rate in (rates.out, rates.back):
        cells += [bit_rate(rate), percent(rate / nominal)]
    return cells
