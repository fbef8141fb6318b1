"""Processor time that nobody used, as Linux counts it in /proc/stat since the machine was started.

What is used is better known as the difference to the time that has passed than from the kernel's
counts of it: these are sampled on many machines, and the idle time is not.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Unused:
    """Seconds, all processors together."""

    idle: float
    waiting: float
    """Idle while something waited for a disk."""
    network: float
    """In soft interrupts, most of them the network's: used, but by no process."""
    stolen: float
    """What the hypervisor took away."""


def unused(stat: str) -> Unused:
    """What the text of /proc/stat says, of which the first line is enough."""
    return _unused(stat.split("\n", 1)[0])


def unused_of(stat: str, processors: Collection[int]) -> Unused:
    """The same of some processors."""
    names = {f"cpu{number}" for number in processors}
    lines = [_unused(line) for line in stat.splitlines() if line.split(" ", 1)[0] in names]
    return Unused(
        idle=sum(one.idle for one in lines),
        waiting=sum(one.waiting for one in lines),
        network=sum(one.network for one in lines),
        stolen=sum(one.stolen for one in lines),
    )


def _unused(line: str) -> Unused:
    fields = [int(field) / _TICKS for field in line.split()[1:]]
    return Unused(
        idle=fields[3],
        waiting=fields[4],
        network=fields[6],
        stolen=fields[7] if len(fields) > 7 else 0.0,
    )
