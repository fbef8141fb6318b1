"""Calls, tasks and shared data on hosts behind links, beside Ray, Dask and MPI."""

from __future__ import annotations

import ipaddress
import json
import random
import shlex
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.clusters.client import ClusterJob, ClusterNode, to_all
from benchmarks.figures import (
    Area,
    AreaCase,
    Extent,
    PlannedRow,
    Target,
    Unit,
    Values,
    noise_row,
    shuffled,
)
from benchmarks.programs import (
    Wire,
    launch_with_benchmarks,
    missing_engine,
    missing_links,
    missing_sshd,
    output_of,
    programs,
)
from gridbench.engines.gridrpc_engines import PythonEngine
from gridbench.formats import as_given, round_amount
from gridbench_testbed.links.network import Network
from gridbench_testbed.links.sshd import Rig

RATE = 1e9  # bits per second of all links
OURS = "gridrpc-python"
PEERS = ("ray", "dask", "mpi")
_JOBS = {
    Extent.TRIAL: (2, {"workers": 1, "size": 1_000_000, "calls": 50, "tasks": 20, "seconds": 0.01}),
    Extent.USUAL: (
        4, {"workers": 4, "size": 100_000_000, "calls": 500, "tasks": 1000, "seconds": 0.1},
    ),
    Extent.FULL: (
        4, {"workers": 4, "size": 100_000_000, "calls": 2000, "tasks": 1000, "seconds": 0.1},
    ),
}  # fmt: skip
LIMITS = {Extent.TRIAL: 60.0, Extent.USUAL: 180.0, Extent.FULL: 180.0}
"""Seconds that an engine may take, with its start, which is most of it on few processors."""
_PEERS_HOSTS = 60.0  # seconds more for the hosts to come and go


def on_hosts(
    engine: str, nodes: int, job: Mapping[str, float], rate: float, limit: float
) -> Values:
    """What the engine's client finds within `limit` seconds, with hosts of its own."""
    # A short name, as Ray has sockets far below it.
    files = tempfile.TemporaryDirectory(prefix="gb-", ignore_cleanup_errors=True)
    with Rig(nodes, rate) as rig, files as folder:
        reported = ClusterJob(
            client=rig.client_address,
            ssh=["ssh", "-F", str(rig.config)],
            nodes=[
                ClusterNode(f"node{n}", rig.address(n), rig.inside(n), str(rig.home(n)))
                for n in rig.nodes
            ],
            **job,  # type: ignore[arg-type] # numbers of the fields' types
        )
        file = Path(folder, "job.json")
        reported.save(file)
        launch = launch_with_benchmarks(engine.partition(",")[0])
        command = launch.command
        if engine == "mpi":
            command = _mpiexec(reported, Path(folder)) + command
            module = ["-m", "benchmarks.clusters.mpi", "world", str(file)]
        else:
            name = engine.partition(",")[0]
            module = ["-m", "benchmarks.clusters.client", "hosts", name, str(file)]
        # So that nothing stays of an engine that is ended.
        variables = launch.variables | {"TMPDIR": folder}
        found: Values = json.loads(
            output_of([*command, *module], variables, limit).splitlines()[-1]
        )
        return found


def _mpiexec(job: ClusterJob, folder: Path) -> list[str]:
    """Open MPI over these hosts, by ssh, and on their network alone."""
    hosts = ["localhost slots=1", *(f"{node.name} slots={job.workers}" for node in job.nodes)]
    file = folder / "hosts"
    file.write_text("\n".join([*hosts, ""]), encoding="ascii")
    network = str(ipaddress.ip_network(f"{job.client}/24", strict=False))
    settings = {
        "plm_rsh_agent": shlex.join([*job.ssh, "-oLogLevel=ERROR"]),
        "btl_tcp_if_include": network,
        "oob_tcp_if_include": network,
        "mpi_yield_when_idle": "1",
    }
    words = [word for name, value in settings.items() for word in ("--mca", name, value)]
    count = str(job.all_workers + 1)
    passed = [word for name in ("PATH", "PYTHONPATH", "OMP_NUM_THREADS") for word in ("-x", name)]
    root = ["--allow-run-as-root", "--oversubscribe"]
    return ["mpiexec", *root, "--hostfile", str(file), "-n", count, *words, *passed]


def missing(engine: str) -> str:
    """Why an engine cannot be measured on hosts here, with a remedy; empty if it can."""
    return missing_engine(engine.partition(",")[0]) or missing_sshd()


def cases_of(
    engines: Sequence[str], nodes: int, job: Mapping[str, float], limit: float, prefix: str = ""
) -> list[AreaCase]:
    """One for each engine."""
    return [
        AreaCase(prefix + engine, on_hosts, {
                "engine": engine, "nodes": nodes, "job": job, "rate": RATE, "limit": limit,
            }, missing=missing(engine), most_runs=5, timeout=limit + _PEERS_HOSTS)
        for engine in engines
    ]  # fmt: skip


def peers_area(extent: Extent) -> Area:
    """All engines, ours twice."""
    nodes, job = _JOBS[extent]
    cases = cases_of((OURS, f"{OURS}, again", *PEERS), nodes, job, LIMITS[extent])
    ours, again, *peers = cases
    large, at_most = round_amount(job["size"], "bytes"), Target(1.0, of_peer=True)
    whats: list[tuple[str, str, Unit, float]] = [
        ("null", "null call", "us", 1e6),
        ("argument", f"{large} argument", "s", 1),
        ("to all", f"{large} to all {nodes} hosts", "s", 1),
        ("tasks", f"{job['tasks']:,} tasks of {as_given(job['seconds'])}", "s", 1),
    ]
    rows = []
    for quantity, what, unit, factor in whats:
        value = ours[quantity] * factor
        rows.append(noise_row(f"{what}, ours by itself", value, again[quantity] * factor))
        for case in peers:
            name, peer = f"{what}; peer: {case.name}", case[quantity] * factor
            rows.append(PlannedRow(name, unit, value, peer=peer, target=at_most))
    title = (
        f"{nodes} hosts with {job['workers']} Python workers each, all links 1 Gbit/s, "
        "the client's too; ours encrypted"
    )
    return Area("hosts/peers", title, cases, rows)


# Part `shared`: shared data to all of several hosts, beside one host, and beside a star: bare TCP
# from the client to all at once, as its link allows.

_SIZES = {Extent.TRIAL: 2_000_000, Extent.USUAL: 100_000_000, Extent.FULL: 100_000_000}
_SHARED_HOSTS = {Extent.TRIAL: 3, Extent.USUAL: 8, Extent.FULL: 8}


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


def shared_area(extent: Extent) -> Area:
    """Ours and a star, and Ray."""
    folder, missing = programs()
    hosts, size = _SHARED_HOSTS[extent], _SIZES[extent]
    arguments = {"folder": folder, "hosts": hosts, "size": size, "rate": RATE}
    missing = missing or missing_links()
    ours = AreaCase("shared data", spread, arguments, missing=missing, timeout=300)
    job = {"workers": 1, "size": size, "calls": 0, "tasks": 0, "seconds": 0, "only_shared": True}
    (ray,) = cases_of(("ray",), hosts, job, LIMITS[extent], prefix="shared data, ")
    one, every, at_most = ours["one"], ours["all"], Target(1.0, of_peer=True)
    to_all, bound = f"to {hosts} hosts; limit: to one host", Target(1.15, of_limit=True)
    rows = [
        noise_row("to one host by itself", one, ours["one again"]),
        PlannedRow("to one host; limit: bare TCP", "s", one, limit=ours["bare one"]),
        PlannedRow(to_all, "s", every, limit=one, target=bound),
        *(
            PlannedRow(f"the same; peer: {what}", "s", every, peer=peer, target=at_most)
            for what, peer in (("a star of plain TCP", ours["star"]), ("ray", ray["to all"]))
        ),
    ]
    title = (
        f"{round_amount(size, 'bytes')} shared data to {hosts} hosts with one Python worker each, "
        "all links 1 Gbit/s, the client's too"
    )
    return Area("hosts/shared", title, [ours, ray], rows)
