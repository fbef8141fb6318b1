"""Calls of 10 ms of many clients at once: how much of what is possible they get, and how fairly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from benchmarks.server.clients import calls
from benchmarks.server.latency import programs
from gridbench.bench.series import Points
from gridbench_testbed.services.gridrpc_server import GridrpcServer

_CLIENTS = {Extent.TRIAL: 3, Extent.USUAL: 16, Extent.FULL: 16}
_SECONDS = {Extent.TRIAL: 0.3, Extent.USUAL: 5.0, Extent.FULL: 20.0}
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


def area(extent: Extent) -> Area:
    """Sleeping with a worker for each client, computing with one for each processor."""
    folder, missing = programs()
    clients, processors = _CLIENTS[extent], os.cpu_count() or 1
    cases = [
        AreaCase(
            _name(function),
            tasks,
            {
                "folder": folder,
                "clients": clients,
                "seconds": _SECONDS[extent],
                "function": function,
                "workers": processors if function == "spin" else clients,
            },
            missing=missing,
        )
        for function in _KINDS
    ]
    title = f"Calls of 10 ms of {clients} clients at once, over TLS"
    return Area("server/tasks", title, cases, _rows, part="tasks")


def _name(function: str) -> str:
    return f"calls of 10 ms, {_KINDS[function][0]}"


def _rows(samples: Points) -> list[Row]:
    rows = []
    for function, (what, share, bound) in _KINDS.items():
        name = _name(function)
        calls, inside = samples.of(name, "once"), samples.of(name, "once inside")
        again = samples.of(name, "again")
        target = Target(bound, at_least=True)
        rows.append(noise_row(f"{what}, by itself", calls, again, digits=3))
        if share == "inside":
            rows.append(
                Row(f"{what}: share of the clients' time inside the function", "x", inside, target=target, digits=3)
            )  # fmt: skip
        rows += [
            Row(
                f"{what}: calls by the ideal number",
                "x",
                calls,
                target=target if share == "calls" else None,
                digits=3,
            ),
            Row(
                f"{what}: most calls of a client by the fewest",
                "x",
                samples.of(name, "once fairness"),
                target=Target(_FAIR),
                digits=3,
            ),
            Row(
                f"{what}: calls lost",
                "",
                samples.of(name, "once failed"),
                target=Target(0),
                digits=0,
            ),
        ]
    return rows
