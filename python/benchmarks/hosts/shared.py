"""Shared data to all of several hosts behind links, the client behind one too, beside one host.

A star is what the client's link allows if it sends to each host by itself: bare TCP to all at once.
"""

from __future__ import annotations

import random
import threading
from contextlib import ExitStack

import numpy as np

from benchmarks.clusters.measures import to_all
from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from benchmarks.hosts.peers import LIMITS, RATE, cases_of
from benchmarks.hosts.places import Wire, lacks_links, programs, shuffled
from gridbench.bench.series import Points
from gridbench.engines.gridrpc_engines import PythonEngine
from gridbench.formats import round_amount
from gridbench_testbed.links.network import Network

_SIZES = {Extent.TRIAL: 2_000_000, Extent.USUAL: 100_000_000, Extent.FULL: 100_000_000}
_HOSTS = {Extent.TRIAL: 3, Extent.USUAL: 8, Extent.FULL: 8}
_OURS = "shared data"


def spread(folder: str, hosts: int, size: int, rate: float) -> Values:
    """Seconds until one host, or all, have read the data; and for a star; in random order."""
    data = np.random.default_rng(random.randrange(1 << 30)).integers(0, 256, size, np.uint8)
    with ExitStack() as stack:
        network = stack.enter_context(Network(hosts, rate))
        wires = [
            stack.enter_context(Wire(folder, address, namespace.name))
            for address, namespace in zip(network.node_addresses, network.namespaces, strict=True)
        ]
        places = [str(namespace) for namespace in network.namespaces]

        def ours(count: int) -> float:
            engine = PythonEngine()
            engine.use_namespaces(places[:count])
            try:
                engine.start(count)
                engine.wait_ready()
                return to_all(engine, count, data)
            finally:
                engine.close()

        return shuffled(
            {
                "one": lambda: ours(1),
                "one again": lambda: ours(1),
                "all": lambda: ours(hosts),
                "bare one": lambda: wires[0].send("tcp", size, 1),
                "star": lambda: _star(wires, size),
            }
        )


def _star(wires: list[Wire], size: int) -> float:
    """Seconds until plain TCP has sent the bytes to all, at once."""
    taken: list[float] = []
    threads = [
        threading.Thread(target=lambda wire=wire: taken.append(wire.send("tcp", size, 1)))
        for wire in wires
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(taken) != len(wires):
        raise RuntimeError("not all transfers ended")
    return float(max(taken))


def area(extent: Extent) -> Area:
    """Ours and a star, and Ray."""
    folder, missing = programs()
    hosts, size = _HOSTS[extent], _SIZES[extent]
    arguments = {"folder": folder, "hosts": hosts, "size": size, "rate": RATE}
    case = AreaCase(_OURS, spread, arguments, missing=missing or lacks_links(), timeout=300)
    job = {"workers": 1, "size": size, "calls": 0, "tasks": 0, "seconds": 0, "only_shared": True}
    ray = cases_of(("ray",), hosts, job, LIMITS[extent], prefix="shared data, ")
    title = (
        f"{round_amount(size, 'bytes')} shared data to {hosts} hosts with one Python worker each, "
        "all links 1 Gbit/s, the client's too"
    )
    return Area(
        "hosts/shared", title, (case, *ray), lambda samples: _rows(samples, hosts), part="shared"
    )


def _rows(samples: Points, hosts: int) -> list[Row]:
    one, every = samples.of(_OURS, "one"), samples.of(_OURS, "all")
    return [
        noise_row("to one host by itself", one, samples.of(_OURS, "one again")),
        Row("to one host; limit: bare TCP", "s", one, limit=samples.of(_OURS, "bare one")),
        Row(
            f"to {hosts} hosts; limit: to one host",
            "s",
            every,
            limit=one,
            target=Target(1.15, of_limit=True),
        ),
        Row(
            "the same; peer: a star of plain TCP",
            "s",
            every,
            peer=samples.of(_OURS, "star"),
            target=Target(1.0, of_peer=True),
        ),
        Row(
            "the same; peer: ray",
            "s",
            every,
            peer=samples.of("shared data, ray", "to all"),
            target=Target(1.0, of_peer=True),
        ),
    ]
