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
            what=f"{cold.WORKERS} {what}, from nothing to all at work",
            unit="s",
            ours=samples.of(case, "at_work"),
            peer=pool,
            limit=samples.of(_FORKS, "seconds"),
            target=None if bound is None else Target(bound, of_peer=True),
        )
        for what, case, bound in (
            ("Python workers", cold.name(PYTHON), 1.0),
            ("Python workers, function from a module", cold.name(PYTHON, own=True), None),
            ("native workers", cold.name(NATIVE), 0.5),
        )
    ]
