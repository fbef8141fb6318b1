"""For which share of the time all tasks run, of those that sleep."""

from __future__ import annotations

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from benchmarks.sync.rounds import medians, workers_at
from gridbench.bench.series import Points
from gridbench.formats import as_given

_WORKERS = {Extent.TRIAL: 4, Extent.USUAL: 56, Extent.FULL: 56}
_SECONDS = {Extent.TRIAL: 0.2, Extent.USUAL: 1.0, Extent.FULL: 1.0}
_REPEATS = {Extent.TRIAL: 1, Extent.USUAL: 3, Extent.FULL: 5}
_CASE = "tasks that sleep"


def simultaneous(workers: int, seconds: float, repeats: int) -> Values:
    """The share of the span in which all run, and that again."""
    with workers_at(workers) as all_workers:

        def step() -> Values:
            return {"share": all_workers.run("sleep", f"{seconds:g}").figures.simultaneity}

        return medians({"ours": step, "again": step}, repeats)


def area(extent: Extent) -> Area:
    """One case."""
    workers, seconds, repeats = _WORKERS[extent], _SECONDS[extent], _REPEATS[extent]
    arguments = {"workers": workers, "seconds": seconds, "repeats": repeats}
    case = AreaCase(_CASE, simultaneous, arguments)
    title = f"{workers} tasks of {as_given(seconds)} on this machine; medians of {repeats} rounds"
    return Area("sync/simultaneity", title, (case,), _rows, part="simultaneity")


def _rows(samples: Points) -> list[Row]:
    ours = samples.of(_CASE, "ours share")
    return [
        noise_row("the share, by itself", ours, samples.of(_CASE, "again share"), digits=4),
        Row(
            "share of the span in which all run",
            "",
            ours,
            target=Target(0.99, at_least=True),
            digits=4,
        ),
    ]
