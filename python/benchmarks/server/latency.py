"""Calls of one client, beside a grid of its own and the same bytes over bare TLS (C, OpenSSL)."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Literal

from benchmarks.figures import Area, AreaCase, Extent, Row, Target, Values, noise_row, shuffled
from benchmarks.programs import Wire, built_for_server
from gridbench.bench.points import Points
from gridbench.bench.programs import numbers
from gridbench.errors import InputError
from gridbench.formats import round_amount
from gridbench_testbed.services.gridrpc_server import GridrpcServer

MB = 1_000_000
_CALLS = {Extent.TRIAL: 200, Extent.USUAL: 5_000, Extent.FULL: 20_000}
_SIZES = {
    Extent.TRIAL: (MB,),
    Extent.USUAL: (MB, 10 * MB, 100 * MB),
    Extent.FULL: (MB, 10 * MB, 100 * MB),
}
_AMOUNT = 300 * MB  # bytes that are sent for one value, at most, but for at least three calls
_CONNECTIONS = {Extent.TRIAL: 3, Extent.USUAL: 20, Extent.FULL: 100}
_NULL, _FIRST = "null call", "first call of a new client"
_FIRST_CALL = 0.010  # seconds

Way = Literal["there", "there and back"]
_WAYS: dict[Way, str] = {"there": "arrive", "there and back": "change"}


@functools.cache
def programs() -> tuple[str, str]:
    """The folder with the programs and the modules, and why there is none."""
    try:
        return str(built_for_server()), ""
    except InputError as error:
        return "", str(error)


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
    count = min(max(_AMOUNT // size, 3), 50)
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
    case = AreaCase(_NULL, null_calls, arguments, missing=missing)
    title = "Null call from C to a warm worker of a server on this machine"
    return Area("server/null", title, (case,), _null_rows, part="null")


def _null_rows(samples: Points) -> list[Row]:
    value = functools.partial(samples.of, _NULL)
    return [
        noise_row("bare round trip over TLS by itself", value("bare"), value("bare again")),
        noise_row("null call over TLS by itself", value("tls"), value("tls again")),
        Row(
            "null call by the Unix socket; limit: a grid of the client's own",
            "us",
            value("socket"),
            limit=value("embedded"),
            target=Target(1.5, of_limit=True),
            digits=1,
        ),
        Row(
            "bare round trip through a third process (C, spinning); limit: between two",
            "us",
            value("relay"),
            limit=value("pair"),
            digits=1,
        ),
        Row(
            "null call over TLS; limit: bare round trip over TLS (C, OpenSSL)",
            "us",
            value("tls"),
            limit=value("bare"),
            target=Target(1.3, of_limit=True),
            digits=1,
        ),
    ]


def argument_area(extent: Extent) -> Area:
    """All sizes, there alone, and there and back."""
    folder, missing = programs()
    sizes = _SIZES[extent]
    cases = [
        AreaCase(
            _argument(size, way),
            arrays,
            {"folder": folder, "size": size, "way": way},
            missing=missing,
            timeout=300,
        )
        for way in _WAYS
        for size in sizes
    ]
    title = "Argument of a call from C over TLS; limit: the same bytes over bare TLS (C, OpenSSL)"
    return Area(
        "server/argument", title, cases, lambda s: _argument_rows(s, sizes), part="argument"
    )


def _argument(size: int, way: Way) -> str:
    return f"{round_amount(size, 'bytes')} {way}"


def _argument_rows(samples: Points, sizes: tuple[int, ...]) -> list[Row]:
    rows = []
    for way in _WAYS:
        for size in sizes:
            name = _argument(size, way)
            bare = samples.of(name, "bare")
            rows += [
                noise_row(f"{name}, bare, by itself", bare, samples.of(name, "again")),
                Row(
                    name,
                    "s",
                    samples.of(name, "ours"),
                    limit=bare,
                    target=Target(1 / 0.8, of_limit=True),
                    digits=5,
                ),
            ]
    return rows


def first_area(extent: Extent) -> Area:
    """From connecting to the first result."""
    folder, missing = programs()
    arguments = {"folder": folder, "count": _CONNECTIONS[extent]}
    case = AreaCase(_FIRST, first_calls, arguments, missing=missing)
    title = "First call of a new client in C, from connecting to the result; the module is warm"
    return Area("server/first", title, (case,), _first_rows, part="first")


def _first_rows(samples: Points) -> list[Row]:
    tls = samples.of(_FIRST, "tls")
    return [
        noise_row("first call over TLS by itself", tls, samples.of(_FIRST, "tls again")),
        Row("first call by the Unix socket", "s", samples.of(_FIRST, "socket"), digits=5),
        Row("first call over TLS", "s", tls, target=Target(_FIRST_CALL), digits=5),
    ]  # fmt: skip
