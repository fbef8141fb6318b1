"""Calls from C and by `map` to hosts, beside the bare network."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.curves import SvgLine, curves
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
from benchmarks.programs import (
    ENCRYPTION,
    LOOPBACK,
    Kind,
    Wire,
    behind,
    local,
    missing_links,
    places,
    programs,
)
from gridbench.bench.points import Points
from gridbench.bench.programs import numbers
from gridbench.formats import bit_rate, round_amount
from gridbench.process.memory import tree
from gridbench_testbed.links.network import Network
from gridrpc import Grid

# Part `null`: a blocking call without arguments, beside a bare round trip over the loopback
# interface. A round trip wakes one process at each end; voluntary context switches show which of
# ours wake up.

_NULL_CALLS = {Extent.TRIAL: 200, Extent.USUAL: 5_000, Extent.FULL: 20_000}
_ROLES = ("client", "agent", "spawner", "worker")


def trips(folder: str, count: int) -> Values:
    """Median us of a call and of a round trip, each over TCP and TLS, in random order."""

    def call(kind: Kind) -> float:
        return numbers(folder, "far", "null", count, places=places([local(1, 1, kind)]))[0]

    with Wire(folder) as wire:
        return shuffled(
            {
                "ours tcp": lambda: call("tcp"),
                "ours tcp again": lambda: call("tcp"),
                "ours tls": lambda: call("tls"),
                "tcp": lambda: wire.ping("tcp", count),
                "tcp again": lambda: wire.ping("tcp", count),
                "tls": lambda: wire.ping("tls", count),
            }
        )


def wake_ups(folder: str, count: int, kind: Kind) -> Values:
    """How often a process of each role goes to sleep for each call; and us per call meanwhile."""
    environment = {**os.environ, "GRIDRPC_MODULE_PATH": folder, **places([local(1, 1, kind)])}
    with subprocess.Popen(
        [f"{folder}/far", "null", str(count)], env=environment, stdout=subprocess.PIPE, text=True
    ) as client:
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        began = ended = 0.0
        while client.poll() is None:
            found = _sleeps(client.pid)
            if len(found) == len(_ROLES):
                if not first:
                    first, began = found, time.monotonic()
                last, ended = found, time.monotonic()
            time.sleep(0.02)
        took = float(client.stdout.read()) if client.stdout else 0.0
    if ended == began:
        raise RuntimeError("the calls ended before anything was seen of them")
    calls = (ended - began) / (took * 1e-6)
    return {"us": took} | {role: (last[role] - first[role]) / calls for role in _ROLES}


def _sleeps(pid: int) -> dict[str, int]:
    """Voluntary context switches so far, of all threads of the processes of each role."""
    found: dict[str, int] = {}
    for process in tree(pid):
        try:
            role = "client" if process == pid else _role(process)
            files = list(Path(f"/proc/{process}/task").glob("*/status"))
            texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
        except OSError:  # it has just ended
            continue
        lines = [line for text in texts for line in text.splitlines()]
        counts = [line.split()[1] for line in lines if line.startswith("voluntary_ctxt_switches")]
        found[role] = found.get(role, 0) + sum(map(int, counts))
    return found


def _role(pid: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace")
    if name.startswith("gridrpc-w"):
        return "worker"
    return words[1] if len(words) > 1 and words[1] in _ROLES else "other"


def null_area(extent: Extent) -> Area:
    """Both kinds of connection."""
    folder, missing = programs()
    count = _NULL_CALLS[extent]
    arguments = {"folder": folder, "count": count}
    both = AreaCase("null calls and round trips", trips, arguments, missing=missing)
    waking = {
        kind: AreaCase(
            f"processes that wake up, {kind}", wake_ups,
            {"folder": folder, "count": max(count, 5_000), "kind": kind},
            missing=missing, most_runs=3,
        )
        for kind in ENCRYPTION
    }  # fmt: skip
    rows = [
        noise_row(f"{what} by itself", both[name], both[f"{name} again"])
        for what, name in (("bare round trip over TCP", "tcp"), ("null call over TCP", "ours tcp"))
    ]
    for kind in waking:
        target, what = Target(1.3, of_limit=True), f"null call over {kind.upper()}"
        ours = both[f"ours {kind}"]
        rows.append(PlannedRow(what, "us", ours, limit=both[kind], target=target, digits=1))
    for kind, case in waking.items():
        for role in _ROLES:
            what = f"times that the {role} goes to sleep for a call over {kind.upper()}"
            rows.append(PlannedRow(what, "", case[role], digits=2))
    title = "Null call from C to a host, blocking; limit: a bare round trip (C, sleeping reads)"
    return Area("hosts/null", title, [both, *waking.values()], rows)


# Part `map`: null calls per second by `map`, to four hosts over TLS.

_MAP_CALLS = {Extent.TRIAL: 20_000, Extent.USUAL: 2_000_000, Extent.FULL: 5_000_000}
_HOSTS, _WORKERS = 4, 1


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


def map_area(extent: Extent) -> Area:
    """Over TLS, and over TCP beside it."""
    folder, missing = programs()
    arguments = {"folder": folder, "count": _MAP_CALLS[extent]}
    tls, tcp = (
        AreaCase(
            f"calls per second by map over {kind.upper()}", mapped, arguments | {"kind": kind},
            missing=missing,
        )
        for kind in ("tls", "tcp")
    )  # fmt: skip
    rows = [
        noise_row("over TLS by itself", tls["rate"], tls["again"]),
        PlannedRow(tls.name, "/s", tls["rate"], target=Target(1e6, at_least=True), digits=0),
        PlannedRow(tcp.name, "/s", tcp["rate"], digits=0),
    ]
    title = f"Null calls by map to {_HOSTS} hosts on this machine, {_WORKERS} native worker each"
    return Area("hosts/map", title, [tls, tcp], rows)


MB = 1_000_000
# Part `argument`: a large argument, beside the same incompressible bytes over TCP or TLS from C.
# The receiver has the memory already, and reads each page. The bare TLS is OpenSSL's with our
# cipher.

_ARGUMENT_SIZES = {
    Extent.TRIAL: (MB,),
    Extent.USUAL: (MB, 10 * MB, 100 * MB),
    Extent.FULL: (MB, 10 * MB, 100 * MB, 1000 * MB),
}
_RATES = (0.0, 1e9)  # bits per second; 0: the loopback interface
_TARGETS: dict[Kind, float] = {"tcp": 1 / 0.9, "tls": 1 / 0.8}


def calls_of(size: int) -> int:
    """How many calls of that size find one value: 300 MB of them, but at least three."""
    return min(max(300 * MB // size, 3), 50)


def sent(folder: str, size: int, kind: Kind, rate: float) -> Values:
    """Median s for an argument, and for the same bytes bare, twice; in random order."""
    count = calls_of(size)
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


def argument_area(extent: Extent) -> Area:
    """All sizes, by both kinds of connection, without and with a link."""
    folder, missing = programs()
    no_links = missing or missing_links()
    cases, rows = [], []
    for rate in _RATES:
        for kind in ENCRYPTION:
            for size in _ARGUMENT_SIZES[extent]:
                where = bit_rate(rate) if rate else "loopback"
                case = AreaCase(
                    f"{round_amount(size, 'bytes')} over {kind.upper()}, {where}",
                    sent,
                    {"folder": folder, "size": size, "kind": kind, "rate": rate},
                    missing=no_links if rate else missing,
                    # What the link limits scatters little.
                    most_runs=3 if rate and size >= 100 * MB else None,
                    timeout=600,
                )
                cases.append(case)
                rows += argument_rows(case, _TARGETS[kind])
    title = "Argument of a call from C; limit: the same bytes over bare TCP or TLS (C, OpenSSL)"
    return Area("hosts/argument", title, cases, rows)


def argument_rows(case: AreaCase, bound: float) -> list[PlannedRow]:
    """Those of a case that finds seconds for an argument, and for the bare bytes, twice."""
    bare, target = case["bare"], Target(bound, of_limit=True)
    return [
        PlannedRow(case.name, "s", case["ours"], limit=bare, target=target, digits=5),
        noise_row(f"{case.name}, bare, by itself", bare, case["again"]),
    ]


# Part `distance`: MB/s over the size of the argument, on three links. The first link is fast and
# near.

_LONGEST = {Extent.TRIAL: 0.1, Extent.USUAL: 2.0, Extent.FULL: 10.0}
"""Seconds that the largest size of a link takes at its rate."""
_TIME = {Extent.TRIAL: 0.2, Extent.USUAL: 2.0, Extent.FULL: 5.0}
"""Seconds for the calls of one size, about."""


@dataclass(frozen=True, slots=True)
class _Link:
    rate: float
    """Bits per second."""
    delay: float
    """Seconds, each way."""

    @property
    def name(self) -> str:
        delay = f", {round_amount(self.delay, 's')} each way" if self.delay else ""
        return f"{bit_rate(self.rate)}{delay}"

    def seconds(self, size: int) -> float:
        """For a call with so many bytes, about."""
        return 2 * self.delay + 8 * size / self.rate


_LINKS = (_Link(1e9, 0.0), _Link(100e6, 10e-3), _Link(1e6, 80e-3))
_ALL = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
_DISTANCE_SIZES = {Extent.TRIAL: (1_000, 100_000), Extent.USUAL: _ALL, Extent.FULL: _ALL}


PATIENT = {"start_timeout": 120, "heartbeat": 60}
"""Keys of servers behind a slow link: seconds until agents are there, and between signs of life."""


def moved(folder: str, rate: float, delay: float, sizes: list[int], budget: float) -> Values:
    """Median s for an argument of each size, over TCP and TLS; and bare, twice; in random order."""
    link = _Link(rate, delay)
    with ExitStack() as stack:
        network = stack.enter_context(Network(1, rate, delay))
        (node,), (namespace,) = network.node_addresses, network.namespaces
        wire = stack.enter_context(Wire(folder, node, namespace.name))
        values: Values = {}
        for size in sizes:
            count = max(1, min(500, round(budget / link.seconds(size))))

            def ours(kind: Kind, size: int = size, count: int = count) -> float:
                servers = places(behind(network, 1, kind, **PATIENT))
                return numbers(folder, "far", "arrive", size, count, places=servers)[0]

            def bare(size: int = size, count: int = count) -> float:
                return wire.send("tcp", size, count)

            found = shuffled(
                {
                    "tcp": lambda: ours("tcp"),
                    "tls": lambda: ours("tls"),
                    "bare": bare,
                    "again": bare,
                }
            )
            values |= {f"{name} {size}": seconds for name, seconds in found.items()}
        return values


def distance_area(extent: Extent) -> Area:
    """One case for each link."""
    folder, missing = programs()
    missing = missing or missing_links()
    longest = _LONGEST[extent]
    sizes = {
        link: [n for n in _DISTANCE_SIZES[extent] if n <= 1000 or link.seconds(n) <= longest]
        for link in _LINKS
    }
    cases = {
        link: AreaCase(link.name, moved, {
                "folder": folder, "rate": link.rate, "delay": link.delay, "sizes": sizes[link],
                "budget": _TIME[extent],
            }, missing=missing, most_runs=3, timeout=1800)
        for link in _LINKS
    }  # fmt: skip
    rows = []
    for link, case in cases.items():
        for size in sizes[link]:
            bare = case[f"bare {size}"]
            for kind in ENCRYPTION:
                what = f"{size:,} bytes over {kind.upper()}, {link.name}"
                rows.append(PlannedRow(what, "s", case[f"{kind} {size}"], limit=bare, digits=5))
            what = f"{size:,} bytes bare, {link.name}, by itself"
            rows.append(noise_row(what, bare, case[f"again {size}"]))

    def picture(points: Points) -> str:
        lines = []
        for number, (link, case) in enumerate(cases.items()):
            for name, what, dashed in (("bare", "TCP", True), ("tcp", "gridrpc", False)):
                used = sizes[link]
                rates = [size / 1e6 / case[f"{name} {size}"].of(points).median for size in used]
                lines.append(SvgLine(f"{what}, {link.name}", used, rates, number, dashed))
        return curves("Bytes per second over message size", "message, bytes", "MB/s", lines)

    title = "Argument over message size; limit: bare TCP through the same link"
    return Area("hosts/distance", title, list(cases.values()), rows, picture=picture)
