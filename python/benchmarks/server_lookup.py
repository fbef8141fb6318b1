"""Lookups in a directory with many functions and servers."""

from __future__ import annotations

import json
import random
import ssl
import statistics
import time
import urllib.request
from collections.abc import Callable

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
from gridbench_testbed.services.gridrpc_server import GridrpcDirectory
from gridrpc import _native
from gridrpc._directory import Directory

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


def interface(module: int) -> tuple[str, str]:
    """The hash and the text of a module's interface."""
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
    interfaces = [interface(module) for module in range(_MODULES)]
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


def area(extent: Extent) -> Area:
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
