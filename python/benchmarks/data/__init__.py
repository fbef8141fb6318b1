"""Area `data`: tasks that read, update and insert objects of data grids.

The cases are those of `gridbench data` (gridbench/datagrid).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.data import operations, scenarios
from benchmarks.figures import Area, Extent

PARTS: dict[str, Callable[[Extent], Area]] = {
    "driver": operations.driver_area,
    "latency": operations.latency_area,
    "loading": operations.loading_area,
    "omission": operations.omission_area,
    **{
        f"scenario-{number}": partial(scenarios.area, number=number) for number in scenarios.NUMBERS
    },
}
