"""Calls of one client, beside a grid of its own and the same bytes over bare TLS (C, OpenSSL)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from benchmarks.figures import (
    Area,
    AreaCase,
    Extent,
    PlannedRow,
    Target,
    Values,
    noise_row,
    shuffled,
)
from benchmarks.hosts_calls import MB, argument_rows, calls_of
from benchmarks.programs import Wire, programs
from gridbench.bench.programs import numbers
from gridbench.formats import round_amount
from gridbench_testbed.services.gridrpc_server import GridrpcServer

_CALLS = {Extent.TRIAL: 200, Extent.USUAL: 5_000, Extent.FULL: 20_000}
_SIZES = {
    Extent.TRIAL: (MB,),
    Extent.USUAL: (MB, 10 * MB, 100 * MB),
    Extent.FULL: (MB, 10 * MB, 100 * MB),
}
_CONNECTIONS = {Extent.TRIAL: 3, Extent.USUAL: 20, Extent.FULL: 100}
_FIRST_CALL = 0.010  # seconds

Way = Literal["there", "there and back"]
_WAYS: dict[Way, str] = {"there": "arrive", "there and back": "change"}


def far(folder: str, server: str, *arguments: object) -> float:
    """What the program `far` measures with calls to a server."""
    # Modules of this machine come before those of the server.
    places = {"GRIDRPC_SERVERS": server, "GRIDRPC_MODULE_PATH": ""}
    return numbers(folder, "far", *arguments, places=places)[0]


def null_calls(folder: str, count: int) -> Values:
    """Median us of a call, and of bare round trips; in random order."""
    embedded = {"GRIDRPC_WORKERS": "1"}
    module = Path(folder, "gridbench_hosts.so")
    with Wire(folder) as wire, GridrpcServer([module], 1, tls=True) as server:
        return shuffled(
            {
                "embedded": lambda: numbers(folder, "far", "null", count, places=embedded)[0],
                "socket": lambda: far(folder, server.socket, "null", count),
                "tls": lambda: far(folder, server.tls, "null", count),
                "tls again": lambda: far(folder, server.tls, "null", count),
                "bare": lambda: wire.ping("tls", count),
                "bare again": lambda: wire.ping("tls", count),
                "pair": lambda: numbers(folder, "wire", "relay", 2, count)[0],
                "relay": lambda: numbers(folder, "wire", "relay", 3, count)[0],
            }
        )


def arrays(folder: str, size: int, way: Way) -> Values:
    """Median s for an argument over TLS, and for the same bytes bare, twice; in random order."""
    count = calls_of(size)
    module = Path(folder, "gridbench_hosts.so")
    with Wire(folder) as wire, GridrpcServer([module], 1, tls=True) as server:

        def bare() -> float:
            if way == "there":
                return wire.send("tls", size, count)
            return 1e-6 * wire.ping("tls", count, size)

        return shuffled(
            {
                "ours": lambda: far(folder, server.tls, _WAYS[way], size, count),
                "bare": bare,
                "again": bare,
            }
        )


def first_calls(folder: str, count: int) -> Values:
    """Median s from connecting to the first result, of new clients one after the other."""
    with GridrpcServer([Path(folder, "gridbench_server.so")], 1, tls=True) as server:

        def first(url: str) -> float:
            words = ("load", "first", "gridbench_server/null", count)
            places = {"GRIDRPC_SERVERS": url, "GRIDRPC_MODULE_PATH": ""}
            return numbers(folder, *words, places=places)[0]

        return shuffled(
            {
                "socket": lambda: first(server.socket),
                "tls": lambda: first(server.tls),
                "tls again": lambda: first(server.tls),
            }
        )


def null_area(extent: Extent) -> Area:
    """Null calls by both kinds of connection."""
    folder, missing = programs()
    arguments = {"folder": folder, "count": _CALLS[extent]}
    case = AreaCase("null call", null_calls, arguments, missing=missing)
    rows = [
        noise_row("bare round trip over TLS by itself", case["bare"], case["bare again"]),
        noise_row("null call over TLS by itself", case["tls"], case["tls again"]),
        *(
            PlannedRow(
                f"{what}; limit: {beside}", "us", case[ours], limit=case[limit],
                target=None if bound is None else Target(bound, of_limit=True), digits=1,
            )
            for what, ours, beside, limit, bound in (
                ("null call by the Unix socket", "socket",
                 "a grid of the client's own", "embedded", 1.5),
                ("bare round trip through a third process (C, spinning)", "relay",
                 "between two", "pair", None),
                ("null call over TLS", "tls",
                 "bare round trip over TLS (C, OpenSSL)", "bare", 1.3),
            )
        ),
    ]  # fmt: skip
    title = "Null call from C to a warm worker of a server on this machine"
    return Area("server/null", title, [case], rows)


def argument_area(extent: Extent) -> Area:
    """All sizes, there alone, and there and back."""
    folder, missing = programs()
    cases = [
        AreaCase(
            f"{round_amount(size, 'bytes')} {way}", arrays,
            {"folder": folder, "size": size, "way": way}, missing=missing, timeout=300,
        )
        for way in _WAYS
        for size in _SIZES[extent]
    ]  # fmt: skip
    rows = []
    for case in cases:
        row, noise = argument_rows(case, 1 / 0.8)
        rows += [noise, row]
    title = "Argument of a call from C over TLS; limit: the same bytes over bare TLS (C, OpenSSL)"
    return Area("server/argument", title, cases, rows)


def first_area(extent: Extent) -> Area:
    """From connecting to the first result."""
    folder, missing = programs()
    arguments = {"folder": folder, "count": _CONNECTIONS[extent]}
    case = AreaCase("first call of a new client", first_calls, arguments, missing=missing)
    tls, target = case["tls"], Target(_FIRST_CALL)
    rows = [
        noise_row("first call over TLS by itself", tls, case["tls again"]),
        PlannedRow("first call by the Unix socket", "s", case["socket"], digits=5),
        PlannedRow("first call over TLS", "s", tls, target=target, digits=5),
    ]
    title = "First call of a new client in C, from connecting to the result; the module is warm"
    return Area("server/first", title, [case], rows)
