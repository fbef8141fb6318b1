"""Workers through Slurm, from nothing until each has done a task; beside it, a bare `srun`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from benchmarks.batch.budget import BUDGET
from benchmarks.batch.engines import cases_of, few_of, peers_on_slurm
from benchmarks.batch.workers import one_each, one_request, slurm_for, until_all_worked
from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from benchmarks.hosts.places import in_random_order
from gridbench.bench.series import Points
from gridbench.statistics.series import Series
from gridbench_testbed.batch import slurm

_WORKERS = {Extent.TRIAL: 4, Extent.USUAL: 100, Extent.FULL: 100}
_CASE = "workers through Slurm"
_EACH = f"{_CASE}, a request for each"
_ALLOWANCE = 0.3  # seconds above the bare `srun`
_ENGINE = "emulated-slurm"
_WAYS = {
    "direct": "one request, which Slurm begins with at once (`direct`)",
    "array": "one request, which waits for Slurm's next look (`array`)",
    "each": "a request for each worker",
}


def started(workers: int, ways: Sequence[str]) -> Iterator[Values]:
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


def area(extent: Extent) -> Area:
    """Ours in one case; engines in one each, with fewer workers than ours beside as many."""
    workers, few = _WORKERS[extent], few_of(_WORKERS[extent])
    # A request for each worker takes long: further rounds may have room for the others alone.
    cases = [
        AreaCase(
            name, started, {"workers": workers, "ways": ways}, missing=slurm.why_not(), timeout=120
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
            for way, what in _WAYS.items()
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
