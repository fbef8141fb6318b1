"""gridrpc from C, by the small C programs of the benchmark."""

from __future__ import annotations

from gridbench.bench.client import Client, Found
from gridbench.bench.programs import numbers

_UNDER_WAY = 1000  # calls


def null_call(client: Client, folder: str, count: int) -> Found:
    """`us`: median time of a blocking call of a native function without arguments."""
    del client
    return Found({"us": numbers(folder, "calls", "null", count)[0], "count": count})


def null_rate(client: Client, folder: str, count: int) -> Found:
    """`per_second`: calls submitted and waited for one by one, some of them under way."""
    del client
    rate = numbers(folder, "calls", "rate", count, _UNDER_WAY)[0]
    return Found({"per_second": rate, "count": count})
