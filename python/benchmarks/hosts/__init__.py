"""Area `hosts`: grids of many machines, beside what the network carries and beside other engines.

Hosts are agents on this machine, network namespaces behind links of known rate, or namespaces with
an sshd each. A run measures ours and what it is compared with in random order,
and one of them twice: how far it differs from itself is the noise that all ratios have.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.extent import Extent
from benchmarks.figures import Area
from benchmarks.hosts import argument, distance, many, null, peers, rate, shared, start

PARTS = {
    "null": null.area,
    "argument": argument.area,
    "map": rate.area,
    "shared": shared.area,
    "peers": peers.area,
    "start": start.area,
    "many": many.area,
    "distance": distance.area,
}


def areas(extent: Extent) -> Iterator[Area]:
    """One for each figure."""
    for make in PARTS.values():
        yield make(extent)
