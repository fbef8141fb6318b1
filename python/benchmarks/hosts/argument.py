"""A large argument of a call from C, beside the same bytes over TCP or TLS from C.

The bytes are such that no compressor makes them shorter. At the other end they are received into
memory that exists, and each page is read. The bare TLS is OpenSSL's, with the cipher of ours.
"""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from benchmarks.hosts.places import (
    ENCRYPTION,
    LOOPBACK,
    Kind,
    Wire,
    behind,
    lacks_links,
    local,
    places,
    programs,
    shuffled,
)
from gridbench.bench.programs import numbers
from gridbench.bench.series import Points
from gridbench.formats import bit_rate, round_amount
from gridbench_testbed.links.network import Network

MB = 1_000_000
_SIZES = {
    Extent.TRIAL: (MB,),
    Extent.USUAL: (MB, 10 * MB, 100 * MB),
    Extent.FULL: (MB, 10 * MB, 100 * MB, 1000 * MB),
}
_RATES = (0.0, 1e9)  # bits per second; 0: the loopback interface
_TARGETS: dict[Kind, float] = {"tcp": 1 / 0.9, "tls": 1 / 0.8}
_AMOUNT = 300 * MB  # bytes that are sent for one value, at most, but for at least three calls


def sent(folder: str, size: int, kind: Kind, rate: float) -> Values:
    """Median s for an argument, and for the same bytes bare, twice; in random order."""
    count = min(max(_AMOUNT // size, 3), 50)
    with ExitStack() as stack:
        if rate:
            network = stack.enter_context(Network(1, rate))
            (address,), (namespace,) = network.node_addresses, network.namespaces
            wire = stack.enter_context(Wire(folder, address, namespace.name))
            servers = behind(network, 1, kind)
        else:
            wire = stack.enter_context(Wire(folder, LOOPBACK))
            servers = [local(1, 1, kind)]
        return shuffled({
            "ours": lambda: numbers(
                folder, "far", "arrive", size, count, places=places(servers)
            )[0],
            "bare": lambda: wire.send(kind, size, count),
            "again": lambda: wire.send(kind, size, count),
        })  # fmt: skip


def area(extent: Extent) -> Area:
    """All sizes, by both kinds of connection, without and with a link."""
    folder, missing = programs()
    no_links = missing or lacks_links()
    sizes = _SIZES[extent]
    cases = [
        AreaCase(
            name=_name(size, kind, rate),
            function=sent,
            arguments={"folder": folder, "size": size, "kind": kind, "rate": rate},
            missing=no_links if rate else missing,
            # What the link limits scatters little.
            most_runs=3 if rate and size >= 100 * MB else None,
            timeout=600,
        )
        for rate in _RATES
        for kind in ENCRYPTION
        for size in sizes
    ]
    title = "Argument of a call from C; limit: the same bytes over bare TCP or TLS (C, OpenSSL)"
    return Area("hosts/argument", title, tuple(cases), lambda s: _rows(s, sizes), part="argument")


def _name(size: int, kind: Kind, rate: float) -> str:
    where = bit_rate(rate) if rate else "loopback"
    return f"{round_amount(size, 'bytes')} over {kind.upper()}, {where}"


def _rows(samples: Points, sizes: tuple[int, ...]) -> list[Row]:
    rows = []
    for rate in _RATES:
        for kind in ENCRYPTION:
            for size in sizes:
                name = _name(size, kind, rate)
                bare = samples.of(name, "bare")
                rows.append(
                    Row(
                        name,
                        "s",
                        samples.of(name, "ours"),
                        limit=bare,
                        target=Target(_TARGETS[kind], of_limit=True),
                        digits=5,
                    )
                )
                rows.append(noise_row(f"{name}, bare, by itself", bare, samples.of(name, "again")))
    return rows
