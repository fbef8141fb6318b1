"""Area `sync`: tasks that all begin at one instant, and what servers and disks do under them.

The rounds are those of `gridbench sync` (gridbench/sync). Each part measures some of its cases
twice: how far they differ from themselves is the noise of all.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.extent import Extent
from benchmarks.figures import Area
from benchmarks.sync import files, gfarm, hosts, null, redis, simultaneity

PARTS = {
    "null": null.area,
    "hosts": hosts.area,
    "simultaneity": simultaneity.area,
    "files": files.area,
    "gfarm": gfarm.area,
    "redis": redis.area,
}


def areas(extent: Extent) -> Iterator[Area]:
    """One for each figure."""
    for make in PARTS.values():
        yield make(extent)
