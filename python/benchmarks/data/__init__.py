"""Area `data`: tasks that read, update and insert objects of data grids.

The cases are those of `gridbench data` (gridbench/datagrid).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.data import driver, latency, loading, omission, scenarios
from benchmarks.extent import Extent
from benchmarks.figures import Area

PARTS: dict[str, Callable[[Extent], Area]] = {
    "driver": driver.area,
    "latency": latency.area,
    "loading": loading.area,
    "omission": omission.area,
    **{
        f"scenario-{number}": partial(scenarios.area, number=number) for number in scenarios.NUMBERS
    },
}


def areas(extent: Extent) -> Iterator[Area]:
    """One for each figure."""
    for make in PARTS.values():
        yield make(extent)
