"""Start-up of workers through Slurm, beside a bare `srun`, and over the number of workers."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from benchmarks.cluster_tasks import BUDGET, cases_of, peers_on_slurm, sizes_of
from benchmarks.curves import SvgLine, curves
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
from gridbench.bench.points import Points
from gridbench.engines.gridrpc_batch import divided
from gridbench.formats import counted
from gridbench.native import module
from gridbench_testbed.batch import slurm
from gridbench_testbed.batch.slurm import Slurm
from gridbench_testbed.services.mounts import NetworkFolder, why_no_network_folder
from gridrpc import Grid

NODES = 4
PATIENCE = 300.0  # seconds for workers to come
_TASK = 0.02  # seconds


@contextmanager
def slurm_for(workers: int) -> Iterator[Slurm]:
    """A Slurm with so many processors, which commands of this process use."""
    nodes, each = divided(workers, NODES)
    with Slurm(nodes=nodes, processors=each) as rig:
        os.environ.update(rig.variables)
        yield rig


def one_request(workers: int, request: str, staging: str | Path = "") -> list[str]:
    """All workers from one request, spread over the nodes."""
    nodes, each = divided(workers, NODES)
    return [_server("cluster", nodes, each, request, staging)]


def one_each(workers: int, staging: str | Path = "") -> list[str]:
    """A request for each worker."""
    return [_server(f"w{number}", 1, 1, "array", staging) for number in range(workers)]


def _server(name: str, nodes: int, workers: int, request: str, staging: str | Path) -> str:
    keys = {"nodes": nodes, "workers": workers, "request": request, "start_timeout": PATIENCE}
    if staging:
        keys["staging"] = os.fspath(staging)
    return f"slurm://{name}?{urlencode(keys, quote_via=quote)}"


def until_all_worked(rig: Slurm, servers: Sequence[str], workers: int) -> float:
    """Seconds from nothing until each worker has done a task of 20 ms. No job is left then.

    Shorter ones would be done by the first workers before the last have one. Where that happens
    nevertheless, as the machine is busy, tasks twice as long follow until each worker has had one.
    """
    begin = time.perf_counter()
    with Grid(servers=servers, worker="native", modules=[module()]) as grid:
        if grid.workers != workers:
            raise RuntimeError(f"the servers have {grid.workers} workers, not {workers}")
        grid.wait_until_ready(PATIENCE)
        sleep = grid.function("gridbench_tasks/sleep")
        seen: set[int] = set()
        length = _TASK
        while len(seen) < workers:
            calls = [sleep.submit(length) for _ in range(workers)]
            for call in calls:
                call.result()
            # All nodes are this machine.
            seen |= {call.profile.pid for call in calls}
            length *= 2
        seconds = time.perf_counter() - begin
    rig.cancel_all()
    return seconds


# Part `start-workers`: from nothing until each worker has done a task, beside a bare `srun`.

_WORKERS = {Extent.TRIAL: 4, Extent.USUAL: 100, Extent.FULL: 100}
_ALLOWANCE = 0.3  # seconds above the bare `srun`
_ENGINE = "emulated-slurm"


def start_started(workers: int, ways: Sequence[str]) -> Iterator[Values]:
    """Seconds for each of these ways, or for the bare `srun`."""
    with slurm_for(workers) as rig:

        def ours(servers: list[str], count: int = workers) -> float:
            return until_all_worked(rig, servers, count)

        def bare() -> float:
            begin = time.perf_counter()
            rig.run("srun", f"--ntasks={workers}", "true")
            seconds = time.perf_counter() - begin
            rig.cancel_all()
            return seconds

        # The program is copied once for all grids of a user.
        ours(one_request(1, "direct"), 1)
        steps = {
            "direct": lambda: ours(one_request(workers, "direct")),
            "array": lambda: ours(one_request(workers, "array")),
            "each": lambda: ours(one_each(workers)),
            "srun": bare,
            "again": bare,
        }
        yield from in_random_order({way: steps[way] for way in ways})


def start_area(extent: Extent) -> Area:
    """Ours in one case; engines in one each, with fewer workers than ours beside as many."""
    workers, through = _WORKERS[extent], "workers through Slurm"
    # A request for each worker takes long: further rounds may have room for the others alone.
    ours, each = (
        AreaCase(
            name, start_started, {"workers": workers, "ways": ways},
            missing=slurm.why_not(), timeout=120,
        )
        for name, ways in (
            (through, ("direct", "array", "srun", "again")),
            (f"{through}, a request for each", ("each",)),
        )
    )  # fmt: skip
    srun, target = ours["srun"], Target(1.0, of_limit=True)
    rows = [
        noise_row("the `srun` by itself", srun, ours["again"]),
        PlannedRow(
            f"until all have done a task of 20 ms; limit: `srun` + {_ALLOWANCE} s", "s",
            ours["direct"], limit=srun + _ALLOWANCE, target=target,
        ),
        *(
            PlannedRow(what, "s", value, limit=srun)
            for what, value in (
                ("one request, which Slurm begins with at once (`direct`)", ours["direct"]),
                ("one request, which waits for Slurm's next look (`array`)", ours["array"]),
                ("a request for each worker", each["each"]),
            )
        ),
    ]  # fmt: skip
    cases, peers = [ours, each], peers_on_slurm()
    for size in sizes_of(peers, workers, extent):
        prefix, target = f"start of {size:,}, ", Target(1.0, of_peer=True)
        found = cases_of((_ENGINE, *peers), size, tasks=size, seconds=0.0, prefix=prefix)
        cases += found.values()
        for peer in peers:
            what, theirs = f"{size:,} Python workers, {_ENGINE}; peer: {peer}", found[peer]["start"]
            mine = found[_ENGINE]["start"]
            rows.append(PlannedRow(what, "s", mine, peer=theirs, target=target))
    title = f"{workers:,} native workers through Slurm; limit: `srun -n {workers} true`"
    return Area("cluster/start-workers", title, cases, rows, budget=BUDGET[extent])


# Part `numbers`: start-up over the number of workers, by one request or one for each, as in figure
# 3 of the paper on Ninf-G2. The program is on the local disk, or in a folder over the network: SFTP
# from a server on this machine, as kernels of virtual machines often have no NFS. Each start reads
# the program again, as that of a node would which has not run it before.

_NUMBERS = {
    Extent.TRIAL: (1, 2),
    Extent.USUAL: (1, 10, 50, 100, 200),
    Extent.FULL: (1, 10, 25, 50, 100, 150, 200),
}
_AGAIN = "again"


def numbers_started(workers: int) -> Iterator[Values]:
    """Seconds for each way and place of the program; for the first of them, twice."""
    with ExitStack() as stack:
        rig = stack.enter_context(slurm_for(workers))
        local = stack.enter_context(tempfile.TemporaryDirectory(prefix="gb-local-"))
        network = stack.enter_context(NetworkFolder())
        folders = {"local": Path(local), "network": network.path}

        def ours(servers: list[str], count: int = workers) -> float:
            return until_all_worked(rig, servers, count)

        for folder in folders.values():  # the program is copied there once
            ours(one_request(1, "array", folder), 1)
        steps = {}
        for disk, folder in folders.items():
            steps[f"{disk} one"] = lambda folder=folder: ours(one_request(workers, "array", folder))
            steps[f"{disk} each"] = lambda folder=folder: ours(one_each(workers, folder))
        steps[_AGAIN] = steps["local one"]
        yield from in_random_order(steps)


def numbers_area(extent: Extent) -> Area:
    """One case for each number of workers."""
    disks = {"local": "local disk", "network": "network"}
    missing = slurm.why_not() or why_no_network_folder()
    cases = {
        workers: AreaCase(
            f"start-up, {counted(workers, 'worker')}", numbers_started, {"workers": workers},
            missing=missing, timeout=180,
        )
        for workers in _NUMBERS[extent]
    }  # fmt: skip
    rows = []
    for case in cases.values():
        rows.append(noise_row(f"{case.name}, by itself", case["local one"], case[_AGAIN]))
        for disk, place in disks.items():
            what, each = f"{case.name}, program on {place}", case[f"{disk} each"]
            rows.append(PlannedRow(what, "s", case[f"{disk} one"], peer=each))

    def picture(points: Points) -> str:
        lines = []
        for colour, (way, what) in enumerate((("one", "one request"), ("each", "a request each"))):
            for disk, place in disks.items():
                seconds = [case[f"{disk} {way}"].of(points).median for case in cases.values()]
                name = f"{what}, program on {place}"
                lines.append(SvgLine(name, list(cases), seconds, colour, disk == "network"))
        return curves("Start-up over the number of workers", "workers", "seconds", lines)

    title = "Start-up of native workers through Slurm, one request; peer: a request for each"
    return Area(
        "cluster/numbers", title, list(cases.values()), rows, picture=picture, budget=BUDGET[extent]
    )
