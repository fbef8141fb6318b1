"""Null calls per second by `map` of a module's function with one number, to four hosts over TLS."""

from __future__ import annotations

import time

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from benchmarks.hosts.places import Kind, local, programs
from gridbench.bench.series import Points
from gridrpc import Grid

_CALLS = {Extent.TRIAL: 20_000, Extent.USUAL: 2_000_000, Extent.FULL: 5_000_000}
_HOSTS, _WORKERS = 4, 1
_KINDS: tuple[Kind, ...] = ("tls", "tcp")


def mapped(folder: str, count: int, kind: Kind) -> Values:
    """Calls per second of a map over so many numbers, twice, after another one."""
    with Grid(servers=[local(_HOSTS, _WORKERS, kind)], worker="native", modules=[folder]) as grid:
        grid.wait_until_ready()
        take = grid.function("gridbench_hosts/take")

        def rate() -> float:
            begin = time.perf_counter()
            ended = sum(1 for _ in grid.map(take, range(count)))
            taken = time.perf_counter() - begin
            if ended != count:
                raise RuntimeError(f"{ended} of {count} calls came back")
            return count / taken

        rate()
        return {"rate": rate(), "again": rate()}


def area(extent: Extent) -> Area:
    """Over TLS, and over TCP beside it."""
    folder, missing = programs()
    cases = [
        AreaCase(
            _name(kind),
            mapped,
            {"folder": folder, "count": _CALLS[extent], "kind": kind},
            missing=missing,
        )
        for kind in _KINDS
    ]
    title = f"Null calls by map to {_HOSTS} hosts on this machine, {_WORKERS} native worker each"
    return Area("hosts/map", title, tuple(cases), _rows, part="map")


def _name(kind: Kind) -> str:
    return f"calls per second by map over {kind.upper()}"


def _rows(samples: Points) -> list[Row]:
    tls = samples.of(_name("tls"), "rate")
    return [
        noise_row("over TLS by itself", tls, samples.of(_name("tls"), "again")),
        Row(_name("tls"), "/s", tls, target=Target(1e6, at_least=True), digits=0),
        Row(_name("tcp"), "/s", samples.of(_name("tcp"), "rate"), digits=0),
    ]
