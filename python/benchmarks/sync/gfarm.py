"""Directories that all workers make at once in Gfarm, each through a mount of its own.

All of them together make the same number, whatever their number is. Each point has a Gfarm of its
own: what the ones before have left in its journal and its queue would slow it down.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.curves import Line, curves
from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Values, noise_row
from benchmarks.sync.rounds import workers_at
from gridbench.bench.series import Points
from gridbench_testbed.services import gfarm
from gridbench_testbed.services.gfarm import Backend, Gfarm

_ALL = (1, 2, 4, 8, 16, 28, 56)
_WORKERS = {Extent.TRIAL: (1, 2), Extent.USUAL: _ALL, Extent.FULL: _ALL}
_TOTAL = {Extent.TRIAL: 40, Extent.USUAL: 20_000, Extent.FULL: 20_000}
_KEPT: dict[Backend, str] = {
    "none": "no database, no journal",
    "postgresql": "PostgreSQL, synchronous journal",
}
_AGAIN = ", again"


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


def area(extent: Extent) -> Area:
    """A case for each number of workers and for what the metadata server keeps."""
    counts, total = _WORKERS[extent], _TOTAL[extent]
    cases = [
        AreaCase(
            _name(backend, workers) + more,
            made,
            {"backend": backend, "workers": workers, "total": total},
            missing=gfarm.why_not(backend),
            most_runs=3,
            timeout=300,
        )
        for backend in _KEPT
        for workers in counts
        for more in (("", _AGAIN) if workers == counts[0] else ("",))
    ]
    return Area(
        "sync/gfarm",
        f"{total:,} directories in Gfarm, made by all workers together, a mount for each",
        tuple(cases),
        lambda samples: _rows(samples, counts),
        part="gfarm",
        picture=lambda samples: _picture(samples, counts),
    )


def _name(backend: Backend, workers: int) -> str:
    return f"mkdir in Gfarm by {workers}; {_KEPT[backend]}"


def _rows(samples: Points, counts: Sequence[int]) -> list[Row]:
    rows = []
    for backend, kept in _KEPT.items():
        first = _name(backend, counts[0])
        again = samples.of(first + _AGAIN, "rate")
        what = f"mkdir, workers: {counts[0]}; {kept}, by itself"
        rows.append(noise_row(what, samples.of(first, "rate"), again))
        for workers in counts:
            name = _name(backend, workers)
            what = f"mkdir, workers: {workers}; {kept}"
            rows += [
                Row(what, "/s", samples.of(name, "rate"), digits=0),
                Row(
                    f"time of one (median), workers: {workers}; {kept}",
                    "us",
                    samples.of(name, "latency").scaled(1e6),
                    digits=0,
                ),
            ]
    return rows


def _picture(samples: Points, counts: Sequence[int]) -> str:
    lines = [
        Line(kept, counts, [samples.of(_name(backend, n), "rate").median for n in counts], number)
        for number, (backend, kept) in enumerate(_KEPT.items())
    ]
    return curves("mkdir in Gfarm over workers", "workers", "operations/s", lines)
