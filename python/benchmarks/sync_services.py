"""Files, Gfarm and Redis under the load of all workers at once."""

from __future__ import annotations

import csv
import statistics
import tempfile
from contextlib import ExitStack

from benchmarks.curves import SvgLine, curves
from benchmarks.figures import Area, AreaCase, Extent, PlannedRow, Values, noise_row
from benchmarks.sync_instants import Seen, medians, workers_at
from gridbench.bench.points import Points
from gridbench_testbed.daemons import lacking
from gridbench_testbed.services import gfarm, mounts, redis
from gridbench_testbed.services.gfarm import Backend, Gfarm
from gridbench_testbed.services.mounts import Passthrough
from gridbench_testbed.services.redis import Redis

# Part `files`: a file of each worker, written with fsync, and read after the page cache was asked
# to forget it.

_FILES_WORKERS = {Extent.TRIAL: (1, 2), Extent.USUAL: (1, 2, 4, 8), Extent.FULL: (1, 2, 4, 8)}
_SIZE = {Extent.TRIAL: 1, Extent.USUAL: 64, Extent.FULL: 128}  # MiB, of each file
_FILES_REPEATS = {Extent.TRIAL: 1, Extent.USUAL: 1, Extent.FULL: 3}
_PLACES = {"local": "the local disk", "fuse": "the same disk through FUSE (bindfs)"}


def moved(place: str, workers: int, size: int, repeats: int) -> Values:
    """Bytes per second written and read by all together, and that again."""
    with ExitStack() as stack:
        if place == "fuse":
            folder = str(stack.enter_context(Passthrough()).mounts[0])
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gridbench-files-"))
        all_workers = stack.enter_context(workers_at(workers))
        words = ("--directory", folder, "--size", f"{size}M", "--fsync", "--drop")

        def step() -> Values:
            phases = all_workers.run("write-read", *words).figures.phases
            return {name: phases[name].bandwidth for name in ("write", "read")}

        return medians({"once": step, "again": step}, repeats)


def files_area(extent: Extent) -> Area:
    """A case for each place and number of workers."""
    counts, size, repeats = _FILES_WORKERS[extent], _SIZE[extent], _FILES_REPEATS[extent]
    missing = mounts.why_no_passthrough()
    cases: list[AreaCase] = []
    rows = []
    for place, where in _PLACES.items():
        own = {
            workers: AreaCase(
                f"files of {workers} on {where}", moved,
                {"place": place, "workers": workers, "size": size, "repeats": repeats},
                missing=missing if place == "fuse" else "", timeout=600,
            )
            for workers in counts
        }  # fmt: skip
        cases += own.values()
        for phase, way in (("write", "written to"), ("read", "read from")):
            for workers, case in own.items():
                what, once = f"{way} {where}, workers: {workers}", case[f"once {phase}"]
                rows.append(PlannedRow(what, "MB/s", once * 1e-6, digits=1))
                if workers == counts[-1]:
                    rows.append(noise_row(f"{what}, by itself", once, case[f"again {phase}"]))
    title = f"A file of {size} MiB of each worker, written with fsync and read, bytes of all"
    return Area("sync/files", title, cases, rows)


# Part `gfarm`: directories that all workers make, each through a mount of its own, the same number
# in total. Each point has a Gfarm of its own, whose journal and queue are empty.

_ALL = (1, 2, 4, 8, 16, 28, 56)
_GFARM_WORKERS = {Extent.TRIAL: (1, 2), Extent.USUAL: _ALL, Extent.FULL: _ALL}
_TOTAL = {Extent.TRIAL: 40, Extent.USUAL: 20_000, Extent.FULL: 20_000}
_KEPT: dict[Backend, str] = {
    "none": "no database, no journal",
    "postgresql": "PostgreSQL, synchronous journal",
}


def made(backend: Backend, workers: int, total: int) -> Values:
    """Directories per second of all together, and the median s that one takes."""
    with Gfarm(backend, journal=backend != "none", mounts=workers) as rig:
        mounts = rig.variables["GRIDBENCH_MOUNTS"]
        with workers_at(workers) as all_workers:
            phase = all_workers.run(
                "metadata",
                "--directory", f"{mounts}/mount-{{worker}}/worker-{{worker}}",
                "--total", str(total),
                "--operations", "mkdir",
            ).figures.phases["mkdir"]  # fmt: skip
    if phase.latency is None:
        raise RuntimeError("the tasks did not tell how long directories took")
    return {"rate": phase.rate, "latency": phase.latency.p50}


def gfarm_area(extent: Extent) -> Area:
    """A case for each number of workers and for what the metadata server keeps."""
    counts, total = _GFARM_WORKERS[extent], _TOTAL[extent]
    every, rows = [], []
    of_kept: dict[str, list[AreaCase]] = {}

    def case_of(backend: Backend, workers: int, more: str = "") -> AreaCase:
        return AreaCase(
            f"mkdir in Gfarm by {workers}; {_KEPT[backend]}{more}", made,
            {"backend": backend, "workers": workers, "total": total},
            missing=gfarm.why_not(backend), most_runs=3, timeout=300,
        )  # fmt: skip

    for backend, stored in _KEPT.items():
        cases = of_kept[stored] = [case_of(backend, workers) for workers in counts]
        again = case_of(backend, counts[0], ", again")
        every += [cases[0], again, *cases[1:]]
        what = f"mkdir, workers: {counts[0]}; {stored}, by itself"
        rows.append(noise_row(what, cases[0]["rate"], again["rate"]))
        for workers, case in zip(counts, cases, strict=True):
            what, taken = f"workers: {workers}; {stored}", case["latency"] * 1e6
            rows.append(PlannedRow(f"mkdir, {what}", "/s", case["rate"], digits=0))
            rows.append(PlannedRow(f"time of one (median), {what}", "us", taken, digits=0))

    def picture(points: Points) -> str:
        lines = [
            SvgLine(stored, counts, [case["rate"].of(points).median for case in cases], number)
            for number, (stored, cases) in enumerate(of_kept.items())
        ]
        return curves("mkdir in Gfarm over workers", "workers", "operations/s", lines)

    title = f"{total:,} directories in Gfarm, made by all workers together, a mount for each"
    return Area("sync/gfarm", title, every, rows, picture=picture)


# Part `redis`: Redis' own benchmark as the task, with a connection for each worker.

_REDIS_WORKERS = {
    Extent.TRIAL: (1, 2), Extent.USUAL: (1, 2, 4, 8, 16), Extent.FULL: (1, 2, 4, 8, 16),
}  # fmt: skip
_REQUESTS = {Extent.TRIAL: 500, Extent.USUAL: 20_000, Extent.FULL: 50_000}
"""Of each worker."""
_REDIS_REPEATS = {Extent.TRIAL: 1, Extent.USUAL: 1, Extent.FULL: 3}
_PROGRAM = "redis-benchmark"


def asked(workers: int, requests: int, repeats: int) -> Values:
    """Requests per second of all together, and the median us that one takes; and that again."""
    with Redis() as server, workers_at(workers) as all_workers:
        words = ("-s", str(server.socket), "-c", "1", "-n", str(requests), "-t", "set", "--csv")

        def step() -> Values:
            seen = all_workers.run(_PROGRAM, *words)
            rate = workers * requests / seen.figures.span
            return {"rate": rate, "latency": _latency(seen)}

        return medians({"once": step, "again": step}, repeats)


def _latency(seen: Seen) -> float:
    """The median of the workers' medians, us; they write them in ms, as CSV with a head."""
    tables = [list(csv.DictReader(text.splitlines())) for text in seen.printed]
    return 1e3 * statistics.median(float(table[0]["p50_latency_ms"]) for table in tables)


def redis_area(extent: Extent) -> Area:
    """A case for each number of workers."""
    counts, requests, repeats = _REDIS_WORKERS[extent], _REQUESTS[extent], _REDIS_REPEATS[extent]
    missing = redis.why_not()
    if lacking(_PROGRAM):
        missing = f"`{_PROGRAM}` is not installed: scripts/ensure-redis does that"
    cases, rows = [], []
    for workers in counts:
        arguments = {"workers": workers, "requests": requests, "repeats": repeats}
        case = AreaCase(f"Redis asked by {workers}", asked, arguments, missing=missing, timeout=300)
        cases.append(case)
        what, once, taken = f"workers: {workers}", case["once rate"], case["once latency"]
        rows += [
            PlannedRow(f"requests, {what}", "/s", once, digits=0),
            PlannedRow(f"time of one (median), {what}", "us", taken, digits=0),
            noise_row(f"requests, {what}, by itself", once, case["again rate"]),
        ]
    title = f"`{_PROGRAM}` of each worker at one Redis: {requests:,} times SET, one by one"
    return Area("sync/redis", title, cases, rows)
