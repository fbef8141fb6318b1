"""Start-up of workers through Slurm, beside a bare `srun`, and over the number of workers."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from benchmarks.batch.engines import BUDGET, cases_of, few_of, peers_on_slurm
from benchmarks.curves import SvgLine, curves
from benchmarks.figures import (
    Area,
    AreaCase,
    Extent,
    Row,
    Target,
    Values,
    in_random_order,
    noise_row,
)
from gridbench.bench.points import Points
from gridbench.engines.gridrpc_batch import divided
from gridbench.native import module
from gridbench.statistics.series import Series
from gridbench_testbed.batch import slurm
from gridbench_testbed.batch.network_folder import NetworkFolder
from gridbench_testbed.batch.network_folder import why_not as no_network_folder
from gridbench_testbed.batch.slurm import Slurm
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
_CASE = "workers through Slurm"
_EACH = f"{_CASE}, a request for each"
_ALLOWANCE = 0.3  # seconds above the bare `srun`
_ENGINE = "emulated-slurm"
_START_WAYS = {
    "direct": "one request, which Slurm begins with at once (`direct`)",
    "array": "one request, which waits for Slurm's next look (`array`)",
    "each": "a request for each worker",
}


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
    workers, few = _WORKERS[extent], few_of(_WORKERS[extent])
    # A request for each worker takes long: further rounds may have room for the others alone.
    cases = [
        AreaCase(
            name,
            start_started,
            {"workers": workers, "ways": ways},
            missing=slurm.why_not(),
            timeout=120,
        )
        for name, ways in ((_CASE, ("direct", "array", "srun", "again")), (_EACH, ("each",)))
    ]
    peers = peers_on_slurm()
    sizes = sorted({few, workers} if extent is Extent.FULL else {few}) if peers else []
    others = [
        case
        for size in sizes
        for case in cases_of(
            (_ENGINE, *peers), size, tasks=size, seconds=0.0, prefix=_start_of(size)
        )
    ]
    title = f"{workers:,} native workers through Slurm; limit: `srun -n {workers} true`"

    def rows(samples: Points) -> list[Row]:
        direct, srun = samples.of(_CASE, "direct"), samples.of(_CASE, "srun")
        allowed = {number: value + _ALLOWANCE for number, value in srun.by_round.items()}
        made = [
            noise_row("the `srun` by itself", srun, samples.of(_CASE, "again")),
            Row(
                f"until all have done a task of 20 ms; limit: `srun` + {_ALLOWANCE} s",
                "s",
                direct,
                limit=Series(allowed, srun.problem),
                target=Target(1.0, of_limit=True),
            ),
        ]
        made += [
            Row(what, "s", samples.of(_EACH if way == "each" else _CASE, way), limit=srun)
            for way, what in _START_WAYS.items()
        ]
        made += [
            Row(
                f"{size:,} Python workers, {_ENGINE}; peer: {peer}",
                "s",
                samples.of(_start_of(size) + _ENGINE, "start"),
                peer=samples.of(_start_of(size) + peer, "start"),
                target=Target(1.0, of_peer=True),
            )
            for size in sizes
            for peer in peers
        ]
        return made

    return Area(
        "cluster/start-workers",
        title,
        (*cases, *others),
        rows,
        part="start-workers",
        budget=BUDGET[extent],
    )


def _start_of(workers: int) -> str:
    return f"start of {workers:,}, "


# Part `numbers`: start-up over the number of workers, by one request or one for each, as in figure
# 3 of the paper on Ninf-G2. The program is on the local disk, or in a folder over the network: SFTP
# from a server on this machine, as kernels of virtual machines often have no NFS. Each start reads
# the program anew, as that of a node would which has not run it before.

_NUMBERS = {
    Extent.TRIAL: (1, 2),
    Extent.USUAL: (1, 10, 50, 100, 200),
    Extent.FULL: (1, 10, 25, 50, 100, 150, 200),
}
_DISKS = {"local": "local disk", "network": "network"}
_NUMBERS_WAYS = {"one": "one request", "each": "a request each"}
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
    numbers = _NUMBERS[extent]
    missing = slurm.why_not() or no_network_folder()
    cases = [
        AreaCase(
            _name(workers), numbers_started, {"workers": workers}, missing=missing, timeout=180
        )
        for workers in numbers
    ]
    return Area(
        "cluster/numbers",
        "Start-up of native workers through Slurm, one request; peer: a request for each",
        cases,
        lambda samples: _rows(samples, numbers),
        part="numbers",
        budget=BUDGET[extent],
        picture=lambda samples: _picture(samples, numbers),
    )


def _name(workers: int) -> str:
    return f"start-up, {workers:,} worker{'s' if workers > 1 else ''}"


def _rows(samples: Points, numbers: tuple[int, ...]) -> list[Row]:
    rows = []
    for workers in numbers:
        case = _name(workers)
        rows.append(
            noise_row(f"{case}, by itself", samples.of(case, "local one"), samples.of(case, _AGAIN))
        )
        rows += [
            Row(
                f"{case}, program on {place}",
                "s",
                samples.of(case, f"{disk} one"),
                peer=samples.of(case, f"{disk} each"),
            )
            for disk, place in _DISKS.items()
        ]
    return rows


def _picture(samples: Points, numbers: tuple[int, ...]) -> str:
    lines = []
    for colour, (way, told) in enumerate(_NUMBERS_WAYS.items()):
        for disk, place in _DISKS.items():
            seconds = [samples.of(_name(n), f"{disk} {way}").median for n in numbers]
            name = f"{told}, program on {place}"
            lines.append(SvgLine(name, list(numbers), seconds, colour, disk == "network"))
    return curves("Start-up over the number of workers", "workers", "seconds", lines)
