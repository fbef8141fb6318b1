"""Calls of one client, beside a grid of its own and the same bytes over bare TLS (C, OpenSSL)."""

from __future__ import annotations

import json
import random
import ssl
import statistics
import time
import urllib.request
from collections.abc import Callable
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
from gridbench_testbed.services.gridrpc_server import GridrpcDirectory, GridrpcServer
from gridrpc import _native
from gridrpc._directory import Directory

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
                "spinning": lambda: wire.spin("tls", count),
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
                 "bare round trip over TLS (C, OpenSSL, sleeping)", "bare", 1.3),
                ("null call over TLS", "tls",
                 "bare round trip over TLS (C, OpenSSL, spinning)", "spinning", None),
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


# ---- Lookups in a directory

_LOOKUP = 1e-3  # seconds
_CACHED = 1.0  # us
_MODULES, _FUNCTIONS = 100, 100
"""10,000 functions."""
_OFFERED_BY = 10
"""Servers that have the same module."""
_SERVERS = {Extent.TRIAL: 10, Extent.USUAL: 100, Extent.FULL: 100}
_LOOKUPS = {Extent.TRIAL: 50, Extent.USUAL: 500, Extent.FULL: 2_000}
_INTERVAL = 3600.0
"""Seconds between announcements: servers stay known without announcing themselves again."""
_CACHED_AT_ONCE = 10_000


def lookup_interface(module: int) -> tuple[str, str]:
    """The hash and the text of a module's lookup_interface."""
    functions = (
        f"Define solve{index}(IN int n, INOUT double a[n][n], INOUT double b[n])"
        f' "Solves equations, variant {index} of module {module}." CalcOrder 2*n^3/3;'
        for index in range(_FUNCTIONS)
    )
    return _native.announced_interface(f"Module m{module}; {' '.join(functions)}")


def announce(directory: GridrpcDirectory, servers: int) -> None:
    """Announce servers as they do, with the modules that each of them has."""
    user = directory.authority.user
    context = ssl.create_default_context(cafile=user / "authority.pem")
    context.load_cert_chain(user / "certificate.pem", user / "key.pem")
    interfaces = [lookup_interface(module) for module in range(_MODULES)]
    for server in range(servers):
        first = server * _MODULES // servers
        modules = [(first + step) % _MODULES for step in range(_OFFERED_BY * _MODULES // servers)]
        announcement = {
            "name": f"server{server}", "address": f"server{server}.example.org:7711",
            "version": "1", "interval": _INTERVAL, "cores": 8, "load": random.random(),
            "queued": 0, "speed": 1e9, "accepts": True,
            "modules": [{"name": f"m{one}", "hash": interfaces[one][0]} for one in modules],
            "interfaces": dict(interfaces[one] for one in modules),
        }  # fmt: skip
        body = json.dumps(announcement).encode()
        request = urllib.request.Request(f"{directory.url()}/announce", body)
        urllib.request.urlopen(request, context=context, timeout=60).close()


def lookups(servers: int, count: int) -> Values:
    """Median s of a lookup, and us of one that is cached; in random order."""
    with GridrpcDirectory() as place:
        announce(place, servers)
        directory = Directory((place.client_url,), "least-time")
        names = [
            f"m{module}/solve{index}" for module in range(_MODULES) for index in range(_FUNCTIONS)
        ]
        offers = directory._fetch(names[0]).offers
        assert len(offers) == min(_OFFERED_BY, servers)

        def fetched() -> float:
            return median(directory._fetch, count)

        def median(ask: Callable[[str], object], count: int) -> float:
            times = []
            for name in random.choices(names, k=count):
                begin = time.perf_counter()
                ask(name)
                times.append(time.perf_counter() - begin)
            return statistics.median(times)

        def cached() -> float:
            directory._fetch(names[0])
            answer, name = directory.answer, names[0]
            begin = time.perf_counter()
            for _ in range(_CACHED_AT_ONCE):
                answer(name)
            return 1e6 * (time.perf_counter() - begin) / _CACHED_AT_ONCE

        values = shuffled(
            {"lookup": fetched, "again": fetched, "cached": cached, "cached again": cached}
        )
        directory.close()
        return values


def lookup_area(extent: Extent) -> Area:
    """Lookups over TLS on this machine."""
    arguments = {"servers": _SERVERS[extent], "count": _LOOKUPS[extent]}
    case = AreaCase("directory lookup", lookups, arguments, timeout=300)
    what = f"{_MODULES * _FUNCTIONS:,} functions, {_SERVERS[extent]} servers"
    rows = [
        noise_row("lookup by itself", case["lookup"], case["again"]),
        PlannedRow(
            f"lookup at the client, {what}", "s", case["lookup"], target=Target(_LOOKUP), digits=6
        ),
        noise_row("cached lookup by itself", case["cached"], case["cached again"]),
        PlannedRow("cached lookup", "us", case["cached"], target=Target(_CACHED), digits=3),
    ]
    title = "Lookups of a Python client in a directory on this machine, over TLS"
    return Area("server/lookup", title, [case], rows)
