"""Area `server`: a `gridrpc server` that many clients share, beside bare TLS and other servers.

Servers and clients are all on this machine. Each part measures something twice: how far that
differs from itself is the noise of all.
"""

from __future__ import annotations

from benchmarks.server import endurance, inference, latency, throughput

PARTS = {
    "null": latency.null_area,
    "argument": latency.argument_area,
    "first": latency.first_area,
    "rate": throughput.rate_area,
    "inference": inference.area,
    "tasks": throughput.tasks_area,
    "idle": endurance.idle_area,
    "soak": endurance.soak_area,
    "restart": endurance.restart_area,
}
