"""Ray, Dask and MPI beside ours: calls, data and tasks on the same hosts behind the same links.

The hosts are network namespaces with an sshd each, and the client is behind a link as well.
Each engine has as many workers on each host, and is used as its driver has it (gridbench/engines).
MPI's broadcast has no workers that ask for the data; so it has the least to do of all.
"""

from __future__ import annotations

import ipaddress
import json
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.clusters.task import Job, Node
from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Unit, Values, noise_row
from benchmarks.hosts.places import lacks_sshd
from benchmarks.launch import launch_with_benchmarks
from gridbench.bench.series import Points
from gridbench.engines.environments import environment
from gridbench.errors import InputError
from gridbench.formats import as_given, round_amount
from gridbench.process.leftovers import Leftovers
from gridbench_testbed.links.network import uninterrupted
from gridbench_testbed.links.sshd import Rig

RATE = 1e9  # bits per second of all links
OURS, OURS_AGAIN = "gridrpc-python", "gridrpc-python, again"
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
_HOSTS = 60.0  # seconds more for the hosts to come and go


def on_hosts(
    engine: str, nodes: int, job: Mapping[str, float], rate: float, limit: float
) -> Values:
    """What the engine's client finds within `limit` seconds, with hosts of its own."""
    # A short name, as Ray has sockets far below it.
    files = tempfile.TemporaryDirectory(prefix="gb-", ignore_cleanup_errors=True)
    with Rig(nodes, rate) as rig, files as folder:
        told = Job(
            client=rig.client_address,
            ssh=["ssh", "-F", str(rig.config)],
            nodes=[
                Node(f"node{n}", rig.address(n), rig.inside(n), str(rig.home(n))) for n in rig.nodes
            ],
            **job,  # type: ignore[arg-type] # numbers of the fields' types
        )
        file = Path(folder, "job.json")
        told.save(file)
        launch = launch_with_benchmarks(engine.partition(",")[0])
        command = launch.command
        if engine == "mpi":
            command = _mpiexec(told, Path(folder)) + command
            module = ["-m", "benchmarks.clusters.mpi_world", str(file)]
        else:
            name = engine.partition(",")[0]
            module = ["-m", "benchmarks.clusters.child", name, str(file)]
        # So that nothing stays of an engine that is ended.
        variables = launch.variables | {"TMPDIR": folder}
        found: Values = json.loads(
            output_of([*command, *module], variables, limit).splitlines()[-1]
        )
        return found


def output_of(command: list[str], variables: dict[str, str], limit: float) -> str:
    """What a peer prints within `limit` seconds; RuntimeError if it fails. Nothing that it starts
    outlives it."""
    with Leftovers() as leftovers, tempfile.TemporaryFile("w+") as errors:
        started = subprocess.Popen(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
        try:
            output, _ = started.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"did not end in {as_given(limit)}") from None
        finally:
            # Who has not ended by itself is given no time, nor are those that it started.
            with uninterrupted():
                leftovers.end(started, patience=5.0 if started.poll() is not None else 0.0)
        errors.seek(0)
        if started.returncode != 0:
            lines = [line.strip() for line in errors.read().splitlines() if line.strip()]
            raise RuntimeError(f"ended with {started.returncode}: {' / '.join(lines[-4:])}")
    return output.decode("utf-8", "replace")


def _mpiexec(job: Job, folder: Path) -> list[str]:
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


def lacks(engine: str) -> str:
    """What there is not that the engine needs here, and how to get it; empty if all is there."""
    found = environment(engine.partition(",")[0])
    try:
        if found is not None:
            found.require()
    except InputError as error:
        return str(error)
    return lacks_sshd()


def cases_of(
    engines: Sequence[str], nodes: int, job: Mapping[str, float], limit: float, prefix: str = ""
) -> list[AreaCase]:
    """One for each engine."""
    return [
        AreaCase(prefix + engine, on_hosts, {
                "engine": engine, "nodes": nodes, "job": job, "rate": RATE, "limit": limit,
            }, missing=lacks(engine), most_runs=5, timeout=limit + _HOSTS)
        for engine in engines
    ]  # fmt: skip


def area(extent: Extent) -> Area:
    """All engines, ours twice."""
    nodes, job = _JOBS[extent]
    whats: list[tuple[str, str, Unit, float]] = [
        ("null", "null call", "us", 1e6),
        ("argument", f"{round_amount(job['size'], 'bytes')} argument", "s", 1),
        ("to all", f"{round_amount(job['size'], 'bytes')} to all {nodes} hosts", "s", 1),
        ("tasks", f"{job['tasks']:,} tasks of {as_given(job['seconds'])}", "s", 1),
    ]

    def rows(samples: Points) -> list[Row]:
        made = []
        for quantity, what, unit, factor in whats:
            ours = samples.of(OURS, quantity).scaled(factor)
            again = samples.of(OURS_AGAIN, quantity).scaled(factor)
            made.append(noise_row(f"{what}, ours by itself", ours, again))
            for peer in PEERS:
                made.append(
                    Row(
                        f"{what}; peer: {peer}",
                        unit,
                        ours,
                        peer=samples.of(peer, quantity).scaled(factor),
                        target=Target(1.0, of_peer=True),
                    )
                )
        return made

    title = (
        f"{nodes} hosts with {job['workers']} Python workers each, all links 1 Gbit/s, "
        "the client's too; ours encrypted"
    )
    cases = cases_of((OURS, OURS_AGAIN, *PEERS), nodes, job, LIMITS[extent])
    return Area("hosts/peers", title, tuple(cases), rows, part="peers")
