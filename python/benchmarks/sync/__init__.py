"""Area `sync`: tasks that all begin at one instant, and what servers and disks do under them.

The rounds are those of `gridbench sync` (gridbench/sync). Each part measures some of its cases
twice: how far they differ from themselves is the noise of all.
"""

from __future__ import annotations

from benchmarks.sync import instants, services

PARTS = {
    "null": instants.null_area,
    "hosts": instants.hosts_area,
    "simultaneity": instants.simultaneity_area,
    "files": services.files_area,
    "gfarm": services.gfarm_area,
    "redis": services.redis_area,
}
