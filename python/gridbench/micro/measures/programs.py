"""gridrpc from C, by the small C programs of the benchmark."""

from __future__ import annotations

from gridbench.bench.programs import numbers
from gridbench.micro.client import Client, Found


def null_call(client: Client, folder: str, count: int) -> Found:
    """`us`: median time of a blocking call of a native function without arguments."""
    del client
    return Found({"us": numbers(folder, "calls", "null", count)[0], "count": count})


def null_rate(client: Client, folder: str, count: int) -> Found:
    """`per_second`: calls submitted one by one, then waited for together."""
    del client
    return Found({"per_second": numbers(folder, "calls", "rate", count)[0], "count": count})
