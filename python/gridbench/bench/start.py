"""Area `start`: from nothing until all of 100 workers are at work. See `cold` for the method."""

from __future__ import annotations

from gridbench.bench import cold
from gridbench.bench.crews import NATIVE, POOL, PYTHON
from gridbench.bench.figures import Area, Case, Row, Samples, Target
from gridbench.bench.limits import forking

_FORKS = f"{cold.WORKERS} forks"


def area(full: bool) -> Area:
    """The same number of workers, in full or not."""
    del full
    forks = Case(name=_FORKS, function=forking, arguments={"processes": cold.WORKERS})
    return Area(
        "start",
        "From nothing until all of 100 workers are at work; limit: forks of one Python process",
        (*cold.cases(), forks),
        _rows,
    )


def _rows(samples: Samples) -> list[Row]:
    pool = samples.of(cold.name(POOL), "at_work")
    return [
        Row(
            what=f"{cold.WORKERS} {kind} workers, from nothing to all at work",
            unit="s",
            ours=samples.of(cold.name(case), "at_work"),
            peer=pool,
            limit=samples.of(_FORKS, "seconds"),
            target=Target(bound, of_peer=True),
        )
        for kind, case, bound in (("Python", PYTHON, 1.0), ("native", NATIVE, 0.5))
    ]
