"""What the micro benchmarks measure and how much of it, and the names of engines in them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gridbench.errors import InputError
from gridbench.workload.body import SPIN

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


def case_of(workload: str, parameters: dict[str, Any]) -> str:
    """The workload with its parameter: `argument_10MB`."""
    parts = [
        bytes_named(value) if name == "bytes" else str(value)
        for name, value in parameters.items()
        if name != "client" and workload != "shared_100MB"
    ]
    return "_".join([workload, *parts])


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """The numbers that decide how long a run takes."""

    name: str
    """Results measured with other sizes are not mixed; this tells them apart."""
    rounds: int
    """How often gridrpc and the process pool are measured, where that is quick."""
    peer_rounds: int = 3
    """The same of other engines."""
    budget: float
    """Seconds that one quantity may take, about."""
    workers: int = 2
    arrays: tuple[int, ...] = (10_000, 1_000_000, 10_000_000, 100_000_000)
    """Bytes."""
    chunks: tuple[int, ...] = (10, 100, 1000)
    order: int = 1000
    """Equations to solve."""
    longest_grain: float = 1.0
    """Seconds of a task up to which the shortest effective one is looked for."""
    clients: int = 4
    readers: int = 16
    """Workers that share data."""
    shared: int = 100_000_000
    """Bytes that they share."""
    worker_counts: tuple[int, ...] = (2, 16, 100)
    """Numbers of workers that are brought up from nothing."""
    body: str = SPIN
    """What the tasks of `work` do: see `gridbench.workload.body`."""
    body_seconds: float = 0.01
    """For how long, if it takes a time."""
    short_tasks: tuple[int, float] = (1000, 0.1)
    """Number and seconds of tasks that sleep, for the largest count."""
    null_tasks: int = 10_000
    calls: int = 1_000_000
    """Calls in one go."""
    calls_seconds: float = 60.0
    """Seconds into which an engine's calls in one go have to fit."""
    start_limit: float = 150.0
    """Seconds after which bringing up workers is given up."""
    item_limit: float = 120.0
    """Seconds after which any other measurement is given up."""
    each: float = 28.0
    """Seconds that one session of a peer may take in all its rounds together; it always has as many
    as a claim takes."""
    longest: float = 300.0
    """Seconds of bringing up workers beyond which it is not measured with an engine."""
    thorough: bool = True
    """Whether twins are measured in all workloads, and starting also with NumPy loaded before."""


FULL = Sizes(name="full", rounds=5, budget=0.5)
QUICK = Sizes(
    name="quick",
    rounds=2,
    budget=0.15,
    peer_rounds=1,
    null_tasks=5_000,
    calls_seconds=5.0,
    start_limit=60.0,
    item_limit=60.0,
    each=6.0,
    longest=16.0,
    thorough=False,
)
