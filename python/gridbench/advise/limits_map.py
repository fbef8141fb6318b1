"""What limits an engine or a system, over the time of a task and its data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from gridbench.advise.advice import parts_of
from gridbench.advise.costs import Costs
from gridbench.advise.search import Split
from gridbench.advise.work import Work
from gridbench.quantities import KB, MB

TIMES = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Seconds of a task."""
SIZES = (0, KB, 10 * KB, 100 * KB, MB, 10 * MB, 100 * MB)
"""Bytes of input of a task."""
BLOCKS = 4
"""Tasks for each core."""
_MOST_CORES = 1000
"""With more, a map takes longer than a user waits."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Tasks of one time and size."""

    seconds: float
    """Of a task; the next is its input."""
    bytes_in: int
    limits: str
    """The largest of the parts of the total."""
    share: float
    """Of the total, that it takes."""
    efficiency: float
    """Ideal by total."""
    measured: bool
    """Within what was measured of the engine."""


@dataclass(frozen=True, slots=True)
class LimitsMap:
    """Of an engine or a system."""

    name: str
    cores: int
    tasks: int
    cells: tuple[Cell, ...]
    """For each size all times."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def limits_map(costs: Costs, cores: int, *, warm: bool) -> LimitsMap:
    """On that many cores, or the most that are looked at, with `BLOCKS` tasks for each."""
    cores = min(cores, _MOST_CORES)
    split = Split(tasks=BLOCKS * cores, cores=cores, total=math.nan)
    cells = tuple(
        _cell(costs, split, seconds, size, warm=warm) for size in SIZES for seconds in TIMES
    )
    return LimitsMap(costs.name, split.cores, split.tasks, cells)


def _cell(costs: Costs, split: Split, seconds: float, size: int, *, warm: bool) -> Cell:
    work = Work(
        seconds=seconds * split.tasks, cores=split.cores, bytes_in_each=float(size), warm=warm
    )
    parts = parts_of(costs, work, split)
    what, part = max(parts, key=lambda one: one[1])
    situation = work.divided(split.tasks, split.cores)
    (total,) = costs.totals([situation]).tolist()
    return Cell(
        seconds=seconds,
        bytes_in=size,
        limits=what,
        share=part / total,
        efficiency=situation.ideal / total,
        measured=not costs.outside(situation),
    )
