"""Workers through Slurm, from nothing until each has done a task; beside it, a bare `srun`."""

from __future__ import annotations

import time

from gridbench.batch import slurm
from gridbench.bench.batch.engines import cases_of, peers_on_slurm
from gridbench.bench.batch.workers import one_each, one_request, slurm_for, until_all_worked
from gridbench.bench.extent import Extent
from gridbench.bench.figures import Area, Case, Measured, Row, Samples, Target, Values
from gridbench.bench.hosts.places import shuffled

_WORKERS = {Extent.TRIAL: 4, Extent.USUAL: 100, Extent.FULL: 100}
_REPEATED = {Extent.TRIAL: 1, Extent.USUAL: 2, Extent.FULL: 3}
_CASE = "workers through Slurm"
_ALLOWANCE = 0.3  # seconds above the bare `srun`
_ENGINE = "gridrpc-slurm"
_START_OF = "start of "
_WAYS = {
    "direct": "one request, which Slurm begins with at once (`direct`)",
    "array": "one request, which waits for Slurm's next look (`array`)",
    "each": "a request for each worker",
}


def started(workers: int, repeated: int) -> Values:
    """Seconds for each way, and for the bare `srun`, twice."""
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
        rounds = [shuffled(steps) for _ in range(repeated)]
        return {name: min(one[name] for one in rounds) for name in steps}


def area(extent: Extent) -> Area:
    """Ours in one case; other engines in one each."""
    workers = _WORKERS[extent]
    case = Case(
        name=_CASE,
        function=started,
        arguments={"workers": workers, "repeated": _REPEATED[extent]},
        missing=slurm.why_not(),
        timeout=600,
    )
    peers = peers_on_slurm()
    engines = (_ENGINE, *peers) if peers else ()
    others = cases_of(engines, workers, tasks=workers, seconds=0.0, prefix=_START_OF)
    title = f"{workers:,} native workers through Slurm; limit: `srun -n {workers} true`"

    def rows(samples: Samples) -> list[Row]:
        direct, srun = samples.of(_CASE, "direct"), samples.of(_CASE, "srun")
        allowed = {number: value + _ALLOWANCE for number, value in srun.by_round.items()}
        made = [
            Row(
                what="noise: the `srun` by itself",
                unit="x",
                ours=srun.difference_to(samples.of(_CASE, "again")),
                digits=2,
            ),
            Row(
                what=f"until all have done a task of 20 ms; limit: `srun` + {_ALLOWANCE} s",
                unit="s",
                ours=direct,
                limit=Measured(allowed, srun.problem),
                target=Target(1.0, of_limit=True),
            ),
        ]
        made += [
            Row(what=what, unit="s", ours=samples.of(_CASE, way), limit=srun)
            for way, what in _WAYS.items()
        ]
        made += [
            Row(
                what=f"the same, {_ENGINE} with Python workers; peer: {peer}",
                unit="s",
                ours=samples.of(_START_OF + _ENGINE, "start"),
                peer=samples.of(_START_OF + peer, "start"),
                target=Target(1.0, of_peer=True),
            )
            for peer in peers
        ]
        return made

    return Area("cluster/start-workers", title, (case, *others), rows, part="start-workers")
