"""Tasks that end at once, all on this machine: how soon after each other they begin, and end."""

from __future__ import annotations

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from benchmarks.sync.rounds import medians, workers_at
from gridbench.bench.series import Points
from gridbench.sync.record import HoldPoint

_WORKERS = {Extent.TRIAL: 4, Extent.USUAL: 56, Extent.FULL: 56}
_REPEATS = {Extent.TRIAL: 2, Extent.USUAL: 5, Extent.FULL: 9}
_CASE = "null tasks at one instant"


def started(workers: int, repeats: int) -> Values:
    """Seconds of skew and span, held at entry, that again, and with exec inside."""
    with workers_at(workers) as all_workers:

        def step(start: HoldPoint) -> Values:
            figures = all_workers.run("null", start=start).figures
            return {"skew": figures.skew, "span": figures.span}

        return medians(
            {
                "entry": lambda: step("entry"),
                "again": lambda: step("entry"),
                "exec": lambda: step("exec"),
            },
            repeats,
        )


def area(extent: Extent) -> Area:
    """One case."""
    workers, repeats = _WORKERS[extent], _REPEATS[extent]
    case = AreaCase(_CASE, started, {"workers": workers, "repeats": repeats})  # fmt: skip
    title = f"{workers} null tasks on this machine, real processes; medians of {repeats} rounds"
    return Area("sync/null", title, (case,), _rows, part="null")


def _rows(samples: Points) -> list[Row]:
    rows = []
    for quantity, what, bound in (
        ("span", "first instruction to last exit", 0.010),
        ("skew", "start skew", 0.001),
    ):
        ours = samples.of(_CASE, f"entry {quantity}")
        rows += [
            noise_row(f"{what}, by itself", ours, samples.of(_CASE, f"again {quantity}")),
            Row(f"{what}, held at entry", "s", ours, target=Target(bound), digits=5),
            Row(f"{what}, exec inside", "s", samples.of(_CASE, f"exec {quantity}"), digits=5),
        ]
    return rows
