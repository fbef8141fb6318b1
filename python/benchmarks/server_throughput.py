"""Null calls per second beside gRPC, Pyro5 and Ray Serve, and how fairly clients share workers."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import (
    Area,
    AreaCase,
    Extent,
    PlannedRow,
    Target,
    Values,
    in_random_order,
    noise_row,
)
from benchmarks.programs import (
    FOLDER,
    NATIVE,
    built_echo,
    find_program,
    missing_engine,
    missing_program,
    programs,
)
from benchmarks.server_clients import LOAD, Clients, calls
from gridbench.engines.environments import launch_of
from gridbench.process.children import PYTHON
from gridbench_testbed.daemons import free_ports
from gridbench_testbed.services.gridrpc_server import GridrpcServer

_MANY = {Extent.TRIAL: 3, Extent.USUAL: 16, Extent.FULL: 16}
_RATE_SECONDS = {Extent.TRIAL: 0.2, Extent.USUAL: 2.0, Extent.FULL: 5.0}
_GRPC, _PYRO, _RAY = "gRPC (C++ echo)", "Pyro5", "Ray Serve"
PEERS = (_GRPC, _PYRO, _RAY)
_SERVERS = str(FOLDER / "server_peers.py")


def ours(folder: str, many: int, seconds: float, workers: int) -> Iterator[Values]:
    """Calls per second of one client and of many, in C and Python; in random order."""
    with GridrpcServer([Path(folder, "gridbench_server.so")], workers, tls=True) as server:

        def in_c(url: str, count: int) -> float:
            with calls(folder, url, count, "null", seconds) as clients:
                return clients.together().rate

        def in_python(count: int) -> float:
            command = [*PYTHON, LOAD, "gridrpc", server.socket, str(seconds)]
            return _rate([command] * count)

        yield from in_random_order(
            {
                "socket 1": lambda: in_c(server.socket, 1),
                "socket 1 again": lambda: in_c(server.socket, 1),
                "socket many": lambda: in_c(server.socket, many),
                "tls 1": lambda: in_c(server.tls, 1),
                "tls many": lambda: in_c(server.tls, many),
                "python 1": lambda: in_python(1),
                "python many": lambda: in_python(many),
            }
        )


def grpc(folder: str, many: int, seconds: float) -> Iterator[Values]:
    """The same of gRPC's clients, by a Unix socket and with TLS; the function runs in it."""
    echo = str(built_echo(Path(folder)))
    # It brings certificates along.
    with GridrpcServer([Path(folder, "gridbench_server.so")], 1, tls=True) as server:
        (port,) = free_ports(1)
        unix, tls = f"unix:{server.folder / 'echo'}", f"127.0.0.1:{port}"
        own, user = str(server.credentials), str(server.user)

        def rate(address: str, serving: str, calling: str, count: int) -> float:
            with Clients([[echo, "serve", address, serving]]):
                return _rate([[echo, "calls", address, str(seconds), calling]] * count)

        yield from in_random_order(
            {
                "socket 1": lambda: rate(unix, "none", "none", 1),
                "socket many": lambda: rate(unix, "none", "none", many),
                "tls 1": lambda: rate(tls, own, user, 1),
                "tls many": lambda: rate(tls, own, user, many),
            }
        )


def pyro(many: int, seconds: float) -> Iterator[Values]:
    """The same of Pyro5's clients, by a Unix socket; the function runs in the server."""
    launch = launch_of("pyro5")
    with tempfile.TemporaryDirectory(prefix="gb-") as folder:
        socket = f"{folder}/socket"
        script = [_SERVERS, "pyro", socket]
        command = [LOAD, "pyro", f"PYRO:null@./u:{socket}", str(seconds)]
        load = [*launch.command, *command]
        with Clients([[*launch.command, *script]], launch.variables):
            yield from in_random_order(
                {
                    "python 1": lambda: _rate([load], launch.variables),
                    "python many": lambda: _rate([load] * many, launch.variables),
                }
            )


def ray_serve(many: int, seconds: float, processors: int) -> Iterator[Values]:
    """The same of connections of wrk to Ray Serve's HTTP; the function runs in a replica."""
    launch = launch_of("ray-serve")
    (port,) = free_ports(1)
    script = [_SERVERS, "ray", str(port), str(processors)]
    with Clients([[*launch.command, *script]], launch.variables):
        url = f"http://127.0.0.1:{port}/"
        yield from in_random_order(
            {
                "python 1": lambda: wrk(url, 1, seconds),
                "python many": lambda: wrk(url, many, seconds),
            }
        )


def wrk(url: str, connections: int, seconds: float, request: str = "") -> float:
    """Answers per second that wrk gets; with the file `request` as the body of each POST."""
    threads = min(connections, os.cpu_count() or 1)
    numbers = [f"-t{threads}", f"-c{connections}", f"-d{max(1, round(seconds))}s"]
    ran = subprocess.run(
        [find_program("wrk"), *numbers, "-s", NATIVE / "wrk.lua", url],
        env={**os.environ, "REQUEST": request},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ran.returncode != 0:
        raise RuntimeError(f"wrk ended with {ran.returncode}: {ran.stderr.strip()}")
    found = json.loads(ran.stdout.splitlines()[-1])
    if found["failed"] or not found["calls"]:
        raise RuntimeError(f"{found['failed']} of {found['calls']} requests of wrk failed")
    return float(found["calls"] / found["seconds"])


def _rate(commands: list[list[str]], variables: Mapping[str, str] | None = None) -> float:
    with Clients(commands, variables) as clients:
        found = clients.together()
    if found.failed:
        raise RuntimeError(f"{found.failed} calls failed")
    return found.rate


def rate_area(extent: Extent, peers: Sequence[str] = PEERS) -> Area:
    """Ours, and these peers."""
    folder, missing = programs()
    many, processors = _MANY[extent], os.cpu_count() or 1
    load: dict[str, Any] = {"many": many, "seconds": _RATE_SECONDS[extent]}
    inside = {"folder": folder, **load}
    each: dict[str, tuple[Callable[..., Iterator[Values]], dict[str, Any], str]] = {
        _GRPC: (grpc, inside, missing or missing_program("grpc_cpp_plugin", "protoc")),
        _PYRO: (pyro, load, missing_engine("pyro5")),
        _RAY: (ray_serve, load | {"processors": processors}, missing_engine("ray-serve") or
               missing_program("wrk")),
    }  # fmt: skip
    workers = {"workers": processors}
    case = AreaCase("null calls", ours, inside | workers, missing=missing, timeout=300)
    others = []
    for peer in peers:
        function, arguments, why = each[peer]
        others.append(AreaCase(peer, function, arguments, missing=why, timeout=300))
    rows = [noise_row("one client by itself", case["socket 1"], case["socket 1 again"])]
    scaling = Target(0.7, at_least=True, of_limit=True)
    for way, what in (
        ("socket", "in C, Unix socket"), ("tls", "in C, TLS"), ("python", "in Python, Unix socket"),
    ):  # fmt: skip
        one, every = case[f"{way} 1"], case[f"{way} many"]
        rows.append(PlannedRow(f"1 client {what}", "/s", one, digits=0))
        name = f"{many} clients {what}; limit: one alone"
        rows.append(PlannedRow(name, "/s", every, limit=one, target=scaling, digits=0))
    as_many = Target(1.0, at_least=True, of_peer=True)
    shown = {"socket": "Unix socket", "tls": "TLS", "python": "Python"}
    for other in others:
        for way in ("socket", "tls") if other.name == _GRPC else ("python",):
            for count, number in (("1", "1 client"), ("many", f"{many} clients")):
                name = f"{number}, {shown[way]}; peer: {other.name}"
                mine, theirs = case[f"{way} {count}"], other[f"{way} {count}"]
                rows.append(PlannedRow(name, "/s", mine, peer=theirs, target=as_many, digits=0))
    title = f"Null calls per second of 1 client and of {many} at once, {processors} native workers"
    return Area("server/rate", title, [case, *others], rows)


# Part `tasks`: calls of 10 ms of many clients at once, as a share of the ideal, and how fair they
# are.

_CLIENTS = {Extent.TRIAL: 3, Extent.USUAL: 16, Extent.FULL: 16}
_TASKS_SECONDS = {Extent.TRIAL: 0.3, Extent.USUAL: 5.0, Extent.FULL: 20.0}
_CALL = 0.010  # seconds
_FAIR = 1.05
_KINDS = {"rest": ("sleeping", "inside", 0.98), "spin": ("computing", "calls", 0.97)}
"""What a function does, which share has a target, and the target. A sleep takes longer than it
should without a server, too, so what counts there is the share of time inside the function."""


def tasks(
    folder: str, clients: int, seconds: float, function: str, workers: int
) -> Iterator[Values]:
    """Calls by those that fit, the share of time inside the function, and the most calls of a
    client by the fewest; twice."""
    with GridrpcServer([Path(folder, "gridbench_server.so")], workers, tls=True) as server:

        def once(name: str) -> Values:
            with calls(folder, server.tls, clients, function, seconds, _CALL) as group:
                found = group.together()
            share = found.rate * _CALL / min(workers, clients)
            return {
                name: share, f"{name} inside": found.inside, f"{name} fairness": found.fairness,
                f"{name} failed": found.failed,
            }  # fmt: skip

        for name in ("once", "again"):
            yield once(name)


def tasks_area(extent: Extent) -> Area:
    """Sleeping with a worker for each client, computing with one for each processor."""
    folder, missing = programs()
    clients, processors = _CLIENTS[extent], os.cpu_count() or 1
    cases, rows = [], []
    for function, (what, share, bound) in _KINDS.items():
        arguments = {
            "folder": folder, "clients": clients, "seconds": _TASKS_SECONDS[extent],
            "function": function, "workers": processors if function == "spin" else clients,
        }  # fmt: skip
        case = AreaCase(f"calls of 10 ms, {what}", tasks, arguments, missing=missing)
        cases.append(case)
        calls, inside, again = case["once"], case["once inside"], case["again"]
        target = Target(bound, at_least=True)
        rows.append(noise_row(f"{what}, by itself", calls, again, digits=3))
        if share == "inside":
            name = f"{what}: share of the clients' time inside the function"
            rows.append(PlannedRow(name, "x", inside, target=target))
        name, of_ideal = f"{what}: calls by the ideal number", target if share == "calls" else None
        rows.append(PlannedRow(name, "x", calls, target=of_ideal))
        name, fairness = f"{what}: most calls of a client by the fewest", case["once fairness"]
        rows.append(PlannedRow(name, "x", fairness, target=Target(_FAIR)))
        name, lost = f"{what}: calls lost", case["once failed"]
        rows.append(PlannedRow(name, "", lost, target=Target(0), digits=0))
    title = f"Calls of 10 ms of {clients} clients at once, over TLS"
    return Area("server/tasks", title, cases, rows)
