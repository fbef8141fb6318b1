"""What the micro benchmarks measure, and the names that engines have in them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from gridbench.bench.plan import Item
from gridbench.errors import InputError

PYTHON, NATIVE, C, POOL = "gridrpc-python", "gridrpc-native", "gridrpc-c", "process-pool"
LIMITS = "limits"
EMPTY = "gridrpc-python, gridrpc.empty"
INHERITED = "process-pool, inherited"
AGAIN = ", again"
"""What the name of an engine ends with that is measured a second time as if it were another."""
ON_SERVERS = " on servers"
"""What the name of an engine ends with whose workers are those of a grid's servers."""
TWINS = (PYTHON, POOL)
"""Engines that are measured twice in each round: what differs between the two is noise."""

WORKLOADS = {
    "null_call": "a call that does nothing, one after the other; percentiles",
    "null_rate": "null calls per second, submitted singly",
    "map_rate": "null calls per second by map, for several chunk sizes",
    "null_rate_4_clients": "null calls per second from 4 client processes at once",
    "argument": "arrays from 10 KB to 100 MB as arguments",
    "echo": "the same arrays there and back",
    "shared_100MB": "100 MB shared by 16 workers",
    "start": "from nothing to 2, 16 and 100 workers at work, and their memory",
    "tasks_100": "100 workers: 1000 tasks of 0.1 s, 10,000 of 0 s",
    "million": "1,000,000 calls in one go, and the client's memory",
    "metg": "shortest tasks at which 2 workers are busy for 50 % and 90 % of the time",
    "work": "tasks of 10 ms on 2 workers that do what --task says",
    "solve": "numpy.linalg.solve in a worker against the same in the client",
}
"""By name, with what they are."""


_TOGETHER = "its workers meet in files, and their memory is counted, on one machine"
ONLY_HERE = {
    "null_rate_4_clients": "each client would have workers of its own on the servers",
    "shared_100MB": _TOGETHER,
    "start": _TOGETHER,
    "tasks_100": _TOGETHER,
}
"""Workloads that are measured on this machine only, and why they are not with workers elsewhere."""


def case_of(item: Item) -> str:
    """The workload with the parameter that tells it from others: `argument_10MB`."""
    parts = [
        bytes_named(value) if name == "bytes" else str(value)
        for name, value in item.parameters.items()
        if name != "client" and item.workload != "shared_100MB"
    ]
    return "_".join([item.workload, *parts])


def bytes_named(size: int) -> str:
    """10000 as 10KB."""
    for unit, name in ((1_000_000, "MB"), (1000, "KB")):
        if size >= unit:
            return f"{size / unit:g}{name}"
    return f"{size}B"


def check_workloads(names: Iterable[str]) -> list[str]:
    """The workloads asked for, all of them for none; InputError for an unknown one."""
    chosen = list(names)
    for name in chosen:
        if name not in WORKLOADS:
            near = difflib.get_close_matches(name, WORKLOADS, n=1, cutoff=0.5)
            guess = f"did you mean `{near[0]}`? " if near else ""
            raise InputError(
                f"there is no workload `{name}`",
                remedy=f"{guess}the workloads are {', '.join(WORKLOADS)}",
            )
    return [name for name in WORKLOADS if not chosen or name in chosen]
