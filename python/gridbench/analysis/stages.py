"""What each stage of a run took: starting up, the way to the workers, and the way back.

A *block* is as many tasks as there are cores. The first contends for the network, as all its
transfers begin together; later ones spread out, as cores become free one by one.

| from | to | seen in |
|---|---|---|
| client | scheduler | smallest difference of successive submit times, if handing over is sending |
| scheduler | workers | successive calc-in times of the first block |
| workers | client | successive retrieve times of the first block |

Starting up is in the first of these steps and spans, too: the same run without data tells how much
of it. An engine that puts tasks into a queue submits them faster than they travel, so that only
calc-in times tell how fast data came.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from gridbench.analysis.columns import Floats, seconds, succeeded
from gridbench.analysis.lanes import assign_lanes
from gridbench.analysis.transfer import NAN, Arrivals, arrivals, block_span, smallest_step


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """Seconds; NaN where the stamps do not tell."""

    first_start: float
    """Until the first task computed."""
    last_start: float
    """Until the last of the workers that had a task computed its first."""
    submit_step: float
    """Smallest difference of successive submit times."""
    submit_span: float
    """From the first to the last submission."""
    start_span: float
    """From the first to the last calc-in of the first block."""
    start_pace: Arrivals | None
    """Of the same stamps: step by step, without waits between waves of workers."""
    return_span: float
    """From the first to the last retrieve of the first block."""
    return_pace: Arrivals | None
    first_dispatch: float
    """Mean from submit to calc-in over the first block."""
    later_dispatch: float
    """Mean over later blocks, from the worker being free to calc-in."""
    first_return: float
    """Mean from calc-out to retrieve over the first block."""
    later_return: float

    def figures(self) -> dict[str, float]:
        """By name, without those that are not known; those of a pace as `start_pace_step`."""
        found: dict[str, float] = {}
        for name, value in asdict(self).items():
            if isinstance(value, dict):
                found |= {f"{name}_{inner}": float(one) for inner, one in value.items()}
            elif value is not None and math.isfinite(value):
                found[name] = value
        return found


def stage_times(table: pa.Table, cores: int, *, wait: float = 0.0) -> StageTimes:
    """The stages of a run on so many cores; failed tasks are left out.

    `wait`: seconds between waves of workers that the scheduler starts, which no pace has in it.
    """
    done = table.filter(pa.array(succeeded(table)))
    lanes = assign_lanes(done)
    submit, calc_in = seconds(done, "submit"), seconds(done, "calc_in")
    calc_out, retrieve = seconds(done, "calc_out"), seconds(done, "retrieve")
    first = np.zeros(done.num_rows, dtype=bool)
    first[np.argsort(np.where(np.isfinite(calc_in), calc_in, np.inf), kind="stable")[:cores]] = True
    starts = calc_in[(lanes.previous < 0) & (lanes.lane >= 0)]
    free = np.where(lanes.previous >= 0, np.minimum(retrieve[lanes.previous], calc_in), NAN)
    block = min(cores, done.num_rows)
    return StageTimes(
        first_start=_extreme(starts, largest=False),
        last_start=_extreme(starts, largest=True),
        submit_step=smallest_step(submit),
        submit_span=_extreme(submit, largest=True) - _extreme(submit, largest=False),
        start_span=block_span(calc_in, block),
        start_pace=arrivals(
            calc_in, block, sent=_extreme(seconds(done, "queued")[first], largest=False), wait=wait
        ),
        return_span=block_span(retrieve, block),
        return_pace=arrivals(
            retrieve, block, sent=_extreme(calc_out[first], largest=False), wait=wait
        ),
        first_dispatch=_mean((calc_in - submit)[first]),
        later_dispatch=_mean((calc_in - np.fmax(submit, free))[~first]),
        first_return=_mean((retrieve - calc_out)[first]),
        later_return=_mean((retrieve - calc_out)[~first]),
    )


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else NAN


def _extreme(values: Floats, *, largest: bool) -> float:
    known = values[np.isfinite(values)]
    if not len(known):
        return NAN
    return float(known.max() if largest else known.min())
