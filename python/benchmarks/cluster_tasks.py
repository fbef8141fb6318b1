"""Engines on batch systems: tasks on workers that stay, beside a job for each task."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from benchmarks.figures import Area, AreaCase, Extent, PlannedRow, Target, Values, noise_row
from benchmarks.programs import launch_with_benchmarks, missing_engine
from gridbench.bench.client import LimitReached
from gridbench.engines.environments import environment
from gridbench.engines.registry import find_engine, installed_engines, make_engine
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.process.children import Leftovers
from gridbench.statistics.series import Series
from gridbench_testbed.batch import slurm
from gridbench_testbed.links.network import uninterrupted

BUDGET = {Extent.TRIAL: 300.0, Extent.USUAL: 300.0, Extent.FULL: 600.0}
"""Seconds, for all rounds of all cases."""


ON_SLURM = ("emulated-slurm-dask", "emulated-slurm-hyperqueue")
"""Other engines that Slurm starts the workers of."""
AGAIN = ", again"
LIMIT = 60.0
"""Seconds for a run of one engine, from the start of its batch system on."""
_HOSTS = 60.0  # seconds more for the batch system to go
_GRACE = 20.0  # seconds for an engine to tell how far it came, and to take down what it has made
_EACH_PROCESSOR = 12


def peers_on_slurm() -> tuple[str, ...]:
    """Those of them that this gridbench has drivers for."""
    known = installed_engines()
    return tuple(name for name in ON_SLURM if name in known)


def sizes_of(peers: Sequence[str], workers: int, extent: Extent) -> list[int]:
    """With how many workers other engines are measured: fewer than ours, and in full as many, too.

    Their workers and tasks are Python processes, each of which takes a second of a processor and
    more to start, and some of them a part of one while they wait: a hundred are not available on
    few processors.
    """
    few = min(workers, _EACH_PROCESSOR * (os.cpu_count() or 1))
    return sorted({few, workers} if extent is Extent.FULL else {few}) if peers else []


def on_cluster(engine: str, workers: int, tasks: int, seconds: float, limit: float) -> Values:
    """What the engine's client (clusters/client.py) finds within `limit` seconds.

    Raises LimitReached, with its progress, if it does not end by then.
    """
    name = engine.removesuffix(AGAIN)
    launch = launch_with_benchmarks(name)
    job = {"place": find_engine(name).value, "workers": workers, "tasks": tasks, "seconds": seconds}
    words = [*launch.command, "-m", "benchmarks.clusters.client", "batch", json.dumps(job)]
    with Leftovers() as leftovers, tempfile.TemporaryFile("w+") as errors:
        started = subprocess.Popen(
            words,
            env=launch.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            output, _ = started.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise LimitReached(f"did not end in {as_given(limit)}{_how_far(started)}") from None
        finally:
            with uninterrupted():
                _tell_to_end(started)
                leftovers.end(started, patience=5.0)
        errors.seek(0)
        if started.returncode != 0:
            lines = [line.strip() for line in errors.read().splitlines() if line.strip()]
            raise RuntimeError(f"ended with {started.returncode}: {' / '.join(lines[-4:])}")
    values: Values = _last_line(output)
    return values


def _how_far(client: subprocess.Popen[bytes]) -> str:
    """End the client; what it says of how far it came."""
    client.terminate()
    try:
        output, _ = client.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        return ", and did not say how far it came"
    return f": {_last_line(output)['came']}" if output else ""


def _last_line(output: bytes) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(output.decode().splitlines()[-1])
    return values


def _tell_to_end(client: subprocess.Popen[bytes]) -> None:
    """Have the client cancel its jobs and end its batch system, if it still runs."""
    if client.poll() is None:
        client.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.communicate(timeout=_GRACE)


def missing(engine: str) -> str:
    """Why an engine cannot be measured here, with a remedy; empty if it can."""
    name = engine.removesuffix(AGAIN)
    if environment(name) is not None:
        return missing_engine(name) or (slurm.why_not() if name in ON_SLURM else "")
    try:
        make_engine(find_engine(name))
    except InputError as error:
        return str(error)
    return ""


def cases_of(
    engines: Sequence[str],
    workers: int,
    *,
    tasks: int,
    seconds: float,
    limit: float = LIMIT,
    prefix: str = "",
) -> dict[str, AreaCase]:
    """One for each engine; a name that ends with `AGAIN` is that engine once more."""
    return {
        engine: AreaCase(prefix + engine, on_cluster, {
                "engine": engine, "workers": workers, "tasks": tasks, "seconds": seconds,
                "limit": limit,
            }, missing=missing(engine), most_runs=5, timeout=limit + _HOSTS)
        for engine in engines
    }  # fmt: skip


# Parts `slurm-tasks` and `gridengine-tasks`: many tasks on workers that stay. The ideal is the time
# of the tasks themselves, one after the other on each worker.

_ON_SLURM = {
    Extent.TRIAL: (2, 8, 0.05), Extent.USUAL: (100, 1000, 0.1), Extent.FULL: (100, 1000, 0.1),
}  # fmt: skip
_SECONDS_EACH = {
    Extent.TRIAL: (2, 2, 0.2), Extent.USUAL: (100, 100, 1.0), Extent.FULL: (100, 100, 1.0),
}  # fmt: skip
"""Workers, tasks, and seconds of each."""
_TASKS_LIMIT = 120.0  # seconds for a run of all workers: a job for each task takes long


def on_slurm(extent: Extent) -> Area:
    """Short tasks on workers of Slurm; an array of jobs beside it."""
    return _tasks_area(
        "slurm-tasks",
        "Slurm",
        numbers=_ON_SLURM[extent],
        ours=("emulated-slurm-native", "emulated-slurm"),
        jobs="emulated-slurm-array",
        peers=peers_on_slurm(),
        bound=1.02,
        extent=extent,
    )


def on_grid_engine(extent: Extent) -> Area:
    """Tasks of a second on workers of Grid Engine; a job for each task beside it."""
    return _tasks_area(
        "gridengine-tasks",
        "Grid Engine",
        numbers=_SECONDS_EACH[extent],
        ours=("emulated-gridengine-native", "emulated-gridengine"),
        jobs="emulated-gridengine-jobs",
        peers=(),
        bound=1.03,
        extent=extent,
    )


def _tasks_area(
    part: str,
    system: str,
    *,
    numbers: tuple[int, int, float],
    ours: tuple[str, str],
    jobs: str,
    peers: Sequence[str],
    bound: float,
    extent: Extent,
) -> Area:
    """`ours`: native and Python workers; `jobs`: the engine with a batch job for each task."""
    workers, tasks, seconds = numbers
    each = math.ceil(tasks / workers)
    native, python = ours

    def count(size: int) -> int:
        return tasks if size == workers else size * each

    def made(size: int, engines: Sequence[str], limit: float = LIMIT) -> dict[str, AreaCase]:
        prefix = f"{part}, {size:,} workers, "
        return cases_of(
            engines, size, tasks=count(size), seconds=seconds, limit=limit, prefix=prefix
        )

    def what(size: int) -> str:
        return f"{count(size):,} tasks of {as_given(seconds)} on {size:,} workers"

    every = made(workers, (native, native + AGAIN, python, jobs), _TASKS_LIMIT)
    rows = [
        noise_row(f"{native} by itself", every[native]["tasks"], every[native + AGAIN]["tasks"])
    ]
    ideal, at_most = Series.exactly(each * seconds), Target(bound, of_limit=True)
    for engine in ours:
        name = f"{what(workers)}, {engine}, after start-up; limit: the tasks alone"
        tasks_of, start = every[engine]["tasks"], every[engine]["start"]
        rows.append(PlannedRow(name, "s", tasks_of, limit=ideal, target=at_most))
        rows.append(PlannedRow(f"start-up, {engine}", "s", start))
    # Jobs have no start-up that could be left out.
    compared = [(workers, jobs, every[python]["all"], every[jobs]["all"], "with start-up")]
    cases = list(every.values())
    for size in sizes_of(peers, workers, extent):
        more = made(size, peers if size == workers else (python, *peers))
        cases += more.values()
        mine = more.get(python, every[python])["tasks"]
        compared += [(size, peer, mine, more[peer]["tasks"], "after start-up") for peer in peers]
    for size, name, mine, theirs, how in compared:
        reported, target = f"{what(size)}, {python}, {how}; peer: {name}", Target(1.0, of_peer=True)
        rows.append(PlannedRow(reported, "s", mine, peer=theirs, target=target))
    title = f"{tasks:,} tasks of {as_given(seconds)} on {workers:,} workers of {system}"
    return Area(f"cluster/{part}", title, cases, rows, budget=BUDGET[extent])


# Part `jobs`: a job for each task, beside a grid that asks for its workers first. Start-up counts.

_JOBS_LIMIT = 100.0  # seconds for a run of one engine: a job for each task is slow to submit


def jobs_area(extent: Extent) -> Area:
    """One case for each kind of jobs that this gridbench has a driver for."""
    slots, tasks, seconds = _SECONDS_EACH[extent]
    known = installed_engines()
    ours, again = "emulated-slurm", f"emulated-slurm{AGAIN}"
    jobs = ("slurm-jobs", "slurm-array", "gridengine-jobs", "htcondor-jobs")
    peers = [name for name in (f"emulated-{kind}" for kind in jobs) if name in known]
    cases = cases_of(
        (ours, again, *peers),
        slots, tasks=tasks, seconds=seconds, limit=_JOBS_LIMIT, prefix="jobs, ",
    )  # fmt: skip
    what, taken = f"{tasks:,} tasks of {as_given(seconds)}", cases[ours]["all"]
    rows = [noise_row(f"{what}, ours by itself", taken, cases[again]["all"])]
    for peer in peers:
        name, target = f"{what}, with start-up; peer: {peer}", Target(1.0, of_peer=True)
        rows.append(PlannedRow(name, "s", taken, peer=cases[peer]["all"], target=target))
    title = f"{what} as jobs, on {slots:,} slots; ours: {ours}, Python workers"
    return Area("cluster/jobs", title, list(cases.values()), rows, budget=BUDGET[extent])
