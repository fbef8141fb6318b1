"""Start-up over the number of workers: one request or one for each, and where the program lies.

As in figure 3 of the paper on Ninf-G2. The program is in a folder of the local disk, or in one that
comes over the network: SFTP (`sshfs`) from a server on this machine, as kernels of virtual machines
often have no NFS. It keeps no pages between two openings of a file, so that each start reads the
program anew, as that of a node would which has not run it before.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.batch.budget import BUDGET
from benchmarks.batch.workers import one_each, one_request, slurm_for, until_all_worked
from benchmarks.curves import Line, curves
from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Values, noise_row
from benchmarks.hosts.places import in_random_order
from gridbench.bench.series import Points
from gridbench_testbed.batch import slurm
from gridbench_testbed.batch.network_folder import NetworkFolder
from gridbench_testbed.batch.network_folder import why_not as no_network_folder

_NUMBERS = {
    Extent.TRIAL: (1, 2),
    Extent.USUAL: (1, 10, 50, 100, 200),
    Extent.FULL: (1, 10, 25, 50, 100, 150, 200),
}
_DISKS = {"local": "local disk", "network": "network"}
_WAYS = {"one": "one request", "each": "a request each"}
_AGAIN = "again"


def started(workers: int) -> Iterator[Values]:
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


def area(extent: Extent) -> Area:
    """One case for each number of workers."""
    numbers = _NUMBERS[extent]
    missing = slurm.why_not() or no_network_folder()
    cases = [
        AreaCase(_name(workers), started, {"workers": workers}, missing=missing, timeout=180)
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
    for colour, (way, told) in enumerate(_WAYS.items()):
        for disk, place in _DISKS.items():
            seconds = [samples.of(_name(n), f"{disk} {way}").median for n in numbers]
            name = f"{told}, program on {place}"
            lines.append(Line(name, list(numbers), seconds, colour, disk == "network"))
    return curves("Start-up over the number of workers", "workers", "seconds", lines)
