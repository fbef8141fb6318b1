"""Remote Linpack: its targets on this machine, and gRPC and Ray Serve on the same calls."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Literal

import numpy as np

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
from benchmarks.programs import missing_engine, missing_links
from gridbench.errors import InputError
from gridbench.formats import as_given, plain
from gridbench.linpack.experiment import SolveOrder, run_client
from gridbench.linpack.model_kind import LinpackAnswer, series_of
from gridbench.linpack.record import (
    BIG_ENDIAN,
    CLIENTS_FORM,
    FORM,
    LOCAL,
    SERVERS,
    ClientLanguage,
    ClientsCase,
    ClientsCell,
    LinpackCase,
    LinpackServer,
    PlannedLinpackCase,
    growth_of,
    wrong_solution,
)
from gridbench.linpack.servers import (
    SOCKET,
    TLS,
    LinpackServers,
    build_programs,
    require_peer,
)
from gridbench.machine.processors import available_count
from gridbench.model.cost_model import TOTAL
from gridbench.model.held_out import EACH
from gridbench.process.children import PYTHON

_NEAR = 1.05
"""Remote by local time."""
_LIMIT = 600.0
"""Seconds for the systems of a client."""


def measured_blocks(
    client: ClientLanguage, n: int, paths: Sequence[str], blocks: int, seconds: float
) -> Iterator[Values]:
    """Median seconds of a call over each path, and once more over the first one. Clients solve in
    short blocks, in random order."""
    servers = LinpackServers(build_programs(), {}, available_count(), threads=1)
    names = {f"{number} {path}": path for number, path in enumerate((*paths, paths[0]))}
    wanted = SolveOrder(calls=3, seconds=seconds, limit=_LIMIT)
    times: dict[str, list[float]] = {name: [] for name in names}

    def solve(name: str) -> float:
        path = names[name]
        case = PlannedLinpackCase(client=client, path=path, n=n, speed=1.0, repeat=0)
        solves, _ = run_client(case, servers, servers.variables(path), wanted)
        if why := wrong_solution(solves):
            raise RuntimeError(why)
        found = [one.seconds for one in solves]
        times[name] += found
        return statistics.median(found)

    steps = {name: partial(solve, name) for name in names}
    try:
        for _ in range(blocks):
            shuffled(steps)
    finally:
        servers.close()
    medians = {name: statistics.median(own) for name, own in times.items()}
    yield {path: medians[f"{number} {path}"] for number, path in enumerate(paths)}
    yield {"again": medians[f"{len(paths)} {paths[0]}"]}


@cache
def _needs_openblas() -> str:
    """Missing requirements of the programs; empty if there are none."""
    try:
        build_programs()
    except InputError as error:
        return str(error)
    return ""


# ---- Remote by local time

_BLOCKS = {Extent.TRIAL: 1, Extent.USUAL: 4, Extent.FULL: 8}
_BLOCK_SECONDS = {Extent.TRIAL: 0.05, Extent.USUAL: 0.5, Extent.FULL: 1.0}


def loopback_area(extent: Extent) -> Area:
    """A call for n = 1000 over the local socket and TLS, beside the client itself."""
    paths = (LOCAL, SOCKET, TLS)
    arguments = {
        "client": "C", "n": 200 if extent is Extent.TRIAL else 1000, "paths": paths,
        "blocks": _BLOCKS[extent], "seconds": _BLOCK_SECONDS[extent],
    }  # fmt: skip
    case = AreaCase(
        "dgesv, loopback", measured_blocks, arguments, timeout=300.0, missing=_needs_openblas()
    )
    target = Target(_NEAR, of_limit=True)
    rows = [
        noise_row("the client itself", case[LOCAL], case["again"], digits=3),
        *(
            PlannedRow(f"over {path}; limit: the client itself", "s", case[path],
                       limit=case[LOCAL], target=target)
            for path in paths[1:]
        ),
    ]  # fmt: skip
    title = f"dgesv of order {arguments['n']:,}, by a client in C"
    return Area("linpack/loopback", title, [case], rows)


def byte_order_area(extent: Extent) -> Area:
    """A matrix in the byte order that the server does not have."""
    sizes = {Extent.TRIAL: (100,), Extent.USUAL: (200, 1000), Extent.FULL: (200, 600, 1000, 2000)}
    paths = (SOCKET, SOCKET + BIG_ENDIAN, TLS, TLS + BIG_ENDIAN)
    cases, rows = [], []
    for n in sizes[extent]:
        arguments = {
            "client": "Python", "n": n, "paths": paths, "blocks": _BLOCKS[extent],
            "seconds": _BLOCK_SECONDS[extent],
        }  # fmt: skip
        name = f"dgesv, byte order, n = {n}"
        case = AreaCase(name, measured_blocks, arguments, timeout=300.0, missing=_needs_openblas())
        cases.append(case)
        rows.append(noise_row(f"n = {n:,}, socket", case[SOCKET], case["again"], digits=3))
        rows += [
            PlannedRow(f"n = {n:,}, {path}, big-endian; limit: this byte order", "s",
                       case[path + BIG_ENDIAN], limit=case[path])
            for path in (SOCKET, TLS)
        ]  # fmt: skip
    title = "dgesv of a matrix in big-endian order, which the server converts"
    return Area("linpack/byte-order", title, cases, rows)


# ---- The model

_SIZES = {Extent.TRIAL: "60,80,120,160,200", Extent.USUAL: "100,200,400,600,800,1000",
          Extent.FULL: "100-1600:100"}  # fmt: skip
_CROSSING = {Extent.TRIAL: "40,60,80,120,160", Extent.USUAL: "40-240:40", Extent.FULL: "40-320:20"}
_ROUNDS = {Extent.TRIAL: 1, Extent.USUAL: 3, Extent.FULL: 5}
_LINK = "1gbit"


def _linpack(*words: str) -> list[LinpackCase]:
    """The cases of `gridbench linpack` with these options. RuntimeError if it fails."""
    with tempfile.TemporaryDirectory(prefix="gb-") as folder:
        _gridbench("linpack", *words, "--out", folder)
        return FORM.read(Path(folder))[1]


def _gridbench(*words: str) -> None:
    command = [*PYTHON, "-m", "gridbench", *words, "--accept-load"]
    ran = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    # 3: other programs disturbed it, which the runner of this benchmark sees itself.
    if ran.returncode not in (0, 3):
        raise RuntimeError("\n".join((ran.stderr or ran.stdout).splitlines()[-3:]))


def model_errors(sizes: str, rounds: int) -> Values:
    """Errors of each size predicted by a model of all others, as a share of the time: the median
    and the 90th percentile over all sizes and paths."""
    words = ("--sizes", sizes, "--rounds", str(rounds), "--languages", "C")
    cases = _linpack(*words, "--client-speed", "50%")
    answer = LinpackAnswer(series_of(one for one in cases if one.speed == 1))
    errors = [
        abs(error)
        for model in answer.models.values()
        for way in model.held_out[TOTAL]
        if way.what == EACH
        for error in way.errors
    ]
    if not errors:
        raise RuntimeError("there are too few sizes for a model")
    return {"median": float(np.median(errors)), "90th": float(np.percentile(errors, 90))}


def crossover(sizes: str, rounds: int) -> Values:
    """The order from which on a server over a link is faster than a client of a tenth of the
    speed, as measured and as the models of both predict, and how far these are apart."""
    cases = _linpack(
        "--sizes", sizes, "--rounds", str(rounds), "--languages", "C", "--paths", _LINK,
        "--client-speed", "10%",
    )  # fmt: skip
    answer = LinpackAnswer(series_of(cases))
    (slowed,) = [client for client in answer.clients if "10%" in client]
    found = answer.overtaking(slowed, _LINK)
    if found is None or found.predicted is None:
        raise RuntimeError("there are too few sizes for a model")
    measured, predicted = found.measured, found.predicted
    if measured.kind != "from" or predicted.kind != "from":
        raise RuntimeError(
            f"the server does not overtake the client within {sizes}: measured {measured.kind},"
            f" predicted {predicted.kind}"
        )
    apart = abs(predicted.at / measured.at - 1)
    return {"measured": measured.at, "predicted": predicted.at, "apart": apart}


def model_area(extent: Extent) -> Area:
    """The model over all sizes, and where a server overtakes a slowed client."""
    missing = _needs_openblas()
    errors = AreaCase(
        "dgesv, model", model_errors, {"sizes": _SIZES[extent], "rounds": _ROUNDS[extent]},
        timeout=1800.0, missing=missing, most_runs=3,
    )  # fmt: skip
    slowed = AreaCase(
        "dgesv, crossover", crossover, {"sizes": _CROSSING[extent], "rounds": _ROUNDS[extent]},
        timeout=1800.0, missing=missing or missing_links(), most_runs=3,
    )  # fmt: skip
    rows = [
        PlannedRow("error of the model, median", "x", errors["median"], target=Target(0.03)),
        PlannedRow("error of the model, 90th percentile", "x", errors["90th"],
                   target=Target(0.10)),
        PlannedRow("n from which on the server is faster", "", slowed["measured"], digits=0),
        PlannedRow("the same, predicted", "", slowed["predicted"], digits=0),
        PlannedRow("predicted and measured n are apart by", "x", slowed["apart"],
                   target=Target(0.10)),
    ]  # fmt: skip
    title = (
        f"The model for held-out n ({_SIZES[extent]}), and a client with 10 % of a processor beside"
        " a server over 1 Gbit/s"
    )
    return Area("linpack/model", title, [errors, slowed], rows)


# ---- Many clients

_MANY = {Extent.TRIAL: 3, Extent.USUAL: 16, Extent.FULL: 16}
_SOAK_CLIENTS = {Extent.TRIAL: 4, Extent.USUAL: 64, Extent.FULL: 64}
_SECONDS = {Extent.TRIAL: 2.0, Extent.USUAL: 20.0, Extent.FULL: 60.0}
_SOAK_SECONDS = {Extent.TRIAL: 5.0, Extent.USUAL: 30.0, Extent.FULL: 600.0}
_BETWEEN = 1e-3
"""Seconds between steps: each client has a call in progress nearly all the time."""
_BUSY, _FAIR, _FLAT = 0.97, 0.05, 0.05
_ORDER = 600


def _clients(*words: str, clients: int, seconds: float) -> list[ClientsCase]:
    with tempfile.TemporaryDirectory(prefix="gb-") as folder:
        _gridbench(
            "linpack", "clients", "--clients", str(clients), "--duration", str(seconds),
            "--step", str(_BETWEEN), "--probability", "1", "--rounds", "1", *words,
            "--out", folder,
        )  # fmt: skip
        return CLIENTS_FORM.read(Path(folder))[1]


def many_clients(n: int, clients: int, seconds: float) -> Values:
    """Busy processors, calls lost and deviation from the fair share, with each policy."""
    found: Values = {}
    for one in _clients("-n", str(n), clients=clients, seconds=seconds):
        cell = ClientsCell([one])
        found |= {
            f"{one.policy} busy": cell.utilisation,
            f"{one.policy} lost": len(one.calls) - cell.ended("ok"),
            f"{one.policy} deviation": cell.deviation,
        }
    return found


def soak(n: int, clients: int, seconds: float) -> Values:
    """Calls, calls lost, and growth of the server's memory as a share, if it ran for long."""
    words = ("-n", str(n), "--policies", "one")
    (one,) = _clients(*words, clients=clients, seconds=seconds)
    growth = growth_of(one)
    usual = statistics.median(sample.memory for sample in one.samples)
    found = {"calls": float(len(one.calls))}
    found["lost"] = len(one.calls) - ClientsCell([one]).ended("ok")
    return found if growth is None else found | {"growth": max(0.0, growth.low) / usual}


def clients_area(extent: Extent) -> Area:
    """16 clients that call all the time, and a soak of 64."""
    missing, clients = _needs_openblas(), _MANY[extent]
    n = 200 if extent is Extent.TRIAL else _ORDER
    case = AreaCase(
        "dgesv, many clients", many_clients,
        {"n": n, "clients": clients, "seconds": _SECONDS[extent]}, timeout=600.0, missing=missing,
    )  # fmt: skip
    soaked = AreaCase(
        "dgesv, soak", soak,
        {"n": n, "clients": _SOAK_CLIENTS[extent], "seconds": _SOAK_SECONDS[extent]},
        timeout=1200.0, missing=missing, most_runs=1,
    )  # fmt: skip
    rows = []
    for policy, name in (("all", "all cores for a call"), ("one", "one core for a call")):
        rows += [
            PlannedRow(f"{name}: busy processors", "x", case[f"{policy} busy"],
                       target=Target(_BUSY, at_least=True)),
            PlannedRow(f"{name}: calls lost", "", case[f"{policy} lost"], target=Target(0),
                       digits=0),
            PlannedRow(f"{name}: a client's performance from its fair share", "x",
                       case[f"{policy} deviation"], target=Target(_FAIR)),
        ]  # fmt: skip
    rows += [
        PlannedRow("soak: calls", "", soaked["calls"], digits=0),
        PlannedRow("soak: calls lost", "", soaked["lost"], target=Target(0), digits=0),
    ]
    if extent is Extent.FULL:
        rows.append(
            PlannedRow("soak: growth of memory, lower end of its 95 % interval", "x",
                       soaked["growth"], target=Target(_FLAT))
        )  # fmt: skip
    title = (
        f"dgesv of order {n:,} by {clients} clients that call all the time, and a soak of"
        f" {_SOAK_CLIENTS[extent]} clients for {as_given(_SOAK_SECONDS[extent])}"
    )
    return Area("linpack/clients", title, [case, soaked], rows)


def one_server(server: LinpackServer, n: int, counts: Sequence[int], seconds: float) -> Values:
    """Mean seconds of a call and calls per second of a server, for each number of clients, with a
    core for each call."""
    found: Values = {}
    for clients in counts:
        words = ("-n", str(n), "--policies", "one", "--servers", server)
        (one,) = _clients(*words, clients=clients, seconds=seconds)
        right = [call for call in one.calls if call.ending == "ok"]
        if len(right) < len(one.calls) or not right:
            raise RuntimeError(f"{len(right)} of {len(one.calls)} calls were answered: {one.why}")
        end = max(call.complete or 0.0 for call in right)
        found[f"{clients} time"] = statistics.fmean(call.seconds for call in right)
        found[f"{clients} rate"] = len(right) / end
    return found


def servers_area(extent: Extent) -> Area:
    """The same calls to gridrpc, gRPC and Ray Serve."""
    n = 200 if extent is Extent.TRIAL else _ORDER
    counts = (1, _MANY[extent])
    cases: dict[LinpackServer, AreaCase] = {}
    for server in SERVERS:
        arguments = {
            "server": server, "n": n, "counts": counts, "seconds": _SECONDS[extent] / 2,
        }  # fmt: skip
        missing = _needs_openblas() or _missing_server(server)
        name = f"dgesv, {server}"
        cases[server] = AreaCase(name, one_server, arguments, timeout=600.0, missing=missing)
    ours = cases["gridrpc"]
    rows = [
        PlannedRow(f"{_counted(clients)}, {what}; peer: {SERVERS[server]}", unit,
                   ours[f"{clients} {quantity}"], peer=case[f"{clients} {quantity}"])
        for server, case in cases.items()
        if server != "gridrpc"
        for clients in counts
        for what, quantity, unit in _QUANTITIES
    ]  # fmt: skip
    title = f"dgesv of order {n:,} on other servers, {plain(8e-6 * n * n, 2)} MB for each call"
    return Area("linpack/servers", title, list(cases.values()), rows)


_QUANTITIES: tuple[tuple[str, str, Literal["s", "/s"]], ...] = (
    ("a call", "time", "s"),
    ("calls", "rate", "/s"),
)


def _counted(clients: int) -> str:
    return f"{clients} client{'s' if clients > 1 else ''}"


def _missing_server(server: LinpackServer) -> str:
    if server == "gridrpc":
        return ""
    if server == "ray-serve":
        return missing_engine(server)
    try:
        require_peer(server)
    except InputError as error:
        return str(error)
    return ""
