"""Results that go from host to host, for a client behind a slow link."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from typing import Any

import gridrpc
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
from benchmarks.hosts_calls import PATIENT
from benchmarks.programs import Wire, behind, missing_links, programs
from gridbench.formats import bit_rate, round_amount
from gridbench_testbed.links.network import Network
from gridrpc import Grid

_CLIENT_RATE = 10e6  # bits per second
_RATES = (1e9, 100e6)  # bits per second of the hosts' links
_SIZES = {Extent.TRIAL: 2_000_000, Extent.USUAL: 20_000_000, Extent.FULL: 100_000_000}


def _random_bytes(size: int) -> Any:
    import numpy as np

    return np.random.default_rng().integers(0, 256, size, np.uint8)


def _length(data: Any) -> int:
    return len(data)


def exchange(folder: str, rate: float, size: int) -> Values:
    """Seconds until a host has read a result of another one, and for a bare stream between them."""
    with ExitStack() as stack:
        network = stack.enter_context(Network(2, rate))
        source, target = network.namespaces
        wire = stack.enter_context(Wire(folder, network.node_addresses[1], target.name))
        servers = behind(network, 2, "tls")
        grid = stack.enter_context(Grid(servers=servers))
        grid.wait_until_ready()
        # Now, since agents load much at their start.
        network.set_client_rate(_CLIENT_RATE)

        def ours() -> float:
            made = grid.submit(_random_bytes, size, server="node1")
            if grid.submit(_length, made, server="node1").result() != size:
                raise RuntimeError("the result is incomplete")
            began = time.monotonic()
            grid.submit(_length, made, server="node2").result()
            return time.monotonic() - began

        ours()
        found = shuffled(
            {
                "ours": ours,
                "ours again": ours,
                "tls": lambda: wire.send("tls", size, 1, source=source),
                "tcp": lambda: wire.send("tcp", size, 1, source=source),
            }
        )
        stats = grid.stats()
        if stats.results_not_moved or stats.results_moved < len(found) // 2:
            raise RuntimeError("results went through the client")
        return found


def exchange_area(extent: Extent) -> Area:
    """One case for each rate of the hosts' links."""
    folder, missing = programs()
    size = _SIZES[extent]
    rows, cases = [], []
    for rate in _RATES:
        link = f"{bit_rate(rate)} links"
        case = AreaCase(
            f"result from host to host, {link}", exchange,
            {"folder": folder, "rate": rate, "size": size},
            missing=missing or missing_links(), timeout=300,
        )  # fmt: skip
        ours, bound = case["ours"], Target(1.15, of_limit=True)
        rows += [
            noise_row(f"{link}, by itself", ours, case["ours again"]),
            PlannedRow(link, "s", ours, limit=case["tls"], target=bound),
            PlannedRow(f"{link}; limit: bare TCP", "s", ours, limit=case["tcp"]),
        ]
        cases.append(case)
    title = (
        f"Result of {round_amount(size, 'bytes')} from host to host, client behind "
        f"{bit_rate(_CLIENT_RATE)}; limit: a bare TLS stream between the hosts"
    )
    return Area("hosts/exchange", title, cases, rows)


# ---- An ensemble on distant hosts

# Part `cascade`: the time of an ensemble whose samples sleep and return so many bytes. Direct: one
# call for each sample. Cascade: one call for each host, whose function calls the samples on its own
# host and returns their sum; or all their bytes.

_HOSTS, _WORKERS = 2, 2
_LINKS = ((1e9, 0.5e-3, 1), (1e9, 10e-3, 1), (10e6, 10e-3, 10))
"""Bits per second; seconds each way; how many times fewer samples there are."""
_SAMPLES = {Extent.TRIAL: 40, Extent.USUAL: 400, Extent.FULL: 2_000}
_KINDS = ((0.0, 100), (10e-3, 100), (0.0, 138_000))
"""Seconds of a sample, and bytes of its result."""


def sample(seconds: float, size: int) -> bytes:
    """A sample of the ensemble that computes nothing. Its result cannot be compressed."""
    time.sleep(seconds)
    return os.urandom(size)


def part(count: int, seconds: float, size: int, reduce: bool) -> int | list[bytes]:
    """The samples of one host: the number of their bytes, or all of them."""
    grid = gridrpc.current_grid()
    results = grid.map(sample, [seconds] * count, [size] * count, server="localhost")
    return sum(map(len, results)) if reduce else list(results)


def ensembles(rate: float, delay: float, samples: int, seconds: float, size: int) -> Values:
    """Seconds for all samples, direct twice, and by cascade."""
    with ExitStack() as stack:
        network = stack.enter_context(Network(_HOSTS, rate, delay))
        servers = behind(network, _WORKERS, "tls", **PATIENT)
        grid = stack.enter_context(Grid(servers=servers))
        grid.wait_until_ready()
        names = [host.host for host in grid.hosts()]

        def direct() -> float:
            begin = time.perf_counter()
            results = grid.map(sample, [seconds] * samples, [size] * samples)
            _check(sum(map(len, results)), samples * size)
            return time.perf_counter() - begin

        def cascade(reduce: bool) -> float:
            begin = time.perf_counter()
            each = samples // len(names)
            parts = [grid.submit(part, each, seconds, size, reduce, server=name) for name in names]
            results = [call.result() for call in parts]
            counts = [
                result if isinstance(result, int) else sum(map(len, result)) for result in results
            ]
            _check(sum(counts), samples * size)
            return time.perf_counter() - begin

        direct()
        cascade(reduce=True)
        return shuffled({
            "direct": direct,
            "again": direct,
            "sum": lambda: cascade(reduce=True),
            "all": lambda: cascade(reduce=False),
        })  # fmt: skip


def _check(found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"the samples have {found} bytes, not {wanted}")


def cascade_area(extent: Extent) -> Area:
    """All lengths and sizes, near and far."""
    missing = missing_links()
    cases = [
        AreaCase(
            f"{samples} of {round_amount(seconds, 's')} with {round_amount(size, 'bytes')}, "
            f"{bit_rate(rate)}, round trip {round_amount(2 * delay, 's')}",
            ensembles,
            {"rate": rate, "delay": delay, "samples": samples, "seconds": seconds, "size": size},
            missing=missing, timeout=300,
        )
        for rate, delay, fewer in _LINKS
        for seconds, size in _KINDS
        if (samples := _SAMPLES[extent] // fewer)
    ]  # fmt: skip
    rows = []
    for case in cases:
        direct = case["direct"]
        rows.append(noise_row(f"{case.name}, direct by itself", direct, case["again"]))
        rows.append(PlannedRow(f"{case.name}, sums return", "s", case["sum"], peer=direct))
        rows.append(PlannedRow(f"{case.name}, all returns", "s", case["all"], peer=direct))
    title = (
        f"Samples on {_HOSTS} hosts with {_WORKERS} Python workers each, called by a function on "
        "each host; peer: called by the client"
    )
    return Area("hosts/cascade", title, cases, rows)
