"""What is measured: items, the sessions that they are measured in, how often, in which order.

A session is one fresh client process that starts an engine at most once and measures items with
it, one after the other. Rounds are outermost, so that a run that is cut off has all engines; within
a round the sessions come in random order. Which sessions there are says `gridbench.micro.sessions`.
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gridbench.errors import InputError

PYTHON, NATIVE, C, POOL = "gridrpc-python", "gridrpc-native", "gridrpc-c", "process-pool"
LIMITS = "limits"
EMPTY = "gridrpc-python, gridrpc.empty"
INHERITED = "process-pool, inherited"
AGAIN = ", again"
"""What the name of an engine ends with that is measured a second time as if it were another."""
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
    "solve": "numpy.linalg.solve in a worker against the same in the client",
}
"""By name, with what they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One quantity, or a few that are found together, of one engine: it gives a point."""

    workload: str
    engine: str
    """The name it is shown under; more than one can come from one session."""
    measure: str
    """MODULE:FUNCTION."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """What tells it from others of its workload."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """For the function."""
    seconds: float
    """How long it takes, about."""
    repeatable: bool = True
    """Whether the same process can measure it again."""

    @property
    def case(self) -> str:
        """The workload with the parameter that tells it from others: `argument_10MB`."""
        parts = [
            bytes_named(value) if name == "bytes" else str(value)
            for name, value in self.parameters.items()
            if name != "client" and self.workload != "shared_100MB"
        ]
        return "_".join([self.workload, *parts])


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One client process."""

    name: str
    engine: str
    """Whose environment it runs in, or `limits`."""
    label: str
    """The engine as it is shown."""
    place: str = ""
    """MODULE:CLASS of the driver; empty without one."""
    workers: int = 0
    items: tuple[Item, ...]
    start_seconds: float
    """How long the process and the engine take to start and to end, about."""
    rounds: int = 1
    left_out: str = ""
    """Why a run of this size does without it; it is then not run."""

    @property
    def seconds(self) -> float:
        """How long it takes, about."""
        return self.seconds_of(self.items)

    def seconds_of(self, items: Sequence[Item]) -> float:
        """How long these of its items take, about."""
        return self.start_seconds + sum(item.seconds for item in items) if items else 0.0


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


def order_of(sessions: Sequence[Session], number: int, seed: int) -> list[Session]:
    """The sessions of round `number`, from 0, in the order in which they run."""
    due = [session for session in sessions if number < session.rounds]
    random.Random(f"{seed} {number}").shuffle(due)
    return due
