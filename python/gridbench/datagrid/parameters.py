"""The twelve parameters of the data-grid benchmark.

A task `it` reads, updates and inserts objects by their keys:

    for is in 0..SharedDataSize-1:  read   key = is + NObjects
    for ip in 0..NRepeats-1:
      for ir in 0..ReadDataSize-1:  read   key = (g*(R+U) + ir) mod NObjects
      ProcessTime calls of a random generator, then a sleep of SleepTime
      for iu in 0..UpdateDataSize-1: update key = (g*(R+U) + R + iu) mod NObjects
      for iw in 0..WriteDataSize-1: insert key = NObjects + SharedDataSize + g*WriteDataSize + iw

where g = it*NRepeats + ip, R is ReadDataSize, and U is UpdateDataSize.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gridbench.errors import InputError
from gridbench.formats import as_given, whole

NAMES = {
    "NNodes": "nnodes",
    "MNodes": "mnodes",
    "NTasks": "ntasks",
    "NRepeats": "nrepeats",
    "ReadDataSize": "read_data_size",
    "UpdateDataSize": "update_data_size",
    "WriteDataSize": "write_data_size",
    "NObjects": "nobjects",
    "ObjectSize": "object_size",
    "SharedDataSize": "shared_data_size",
    "ProcessTime": "process_time",
    "SleepTime": "sleep_time",
}
"""The sources' names, and those of the fields."""

BYTES_PER_KB = 1024
SMALLEST_OBJECT = 32
"""Bytes: each value begins with its key, a counter and its length, so that it can be checked."""
LARGEST_OBJECT = 512 << 20
"""Bytes; more than that is more than some data grids can store."""
LIMITS: dict[str, tuple[float, float]] = {
    "NNodes": (1, 10_000),
    "MNodes": (1, 1000),
    "NTasks": (1, 1_000_000),
    "NRepeats": (1, 1_000_000_000),
    "ReadDataSize": (0, 1_000_000),
    "UpdateDataSize": (0, 1_000_000),
    "WriteDataSize": (0, 1_000_000),
    "NObjects": (0, 10_000_000_000),
    "ObjectSize": (SMALLEST_OBJECT / BYTES_PER_KB, LARGEST_OBJECT / BYTES_PER_KB),
    "SharedDataSize": (0, 1_000_000),
    "ProcessTime": (0, 10_000_000_000),
    "SleepTime": (0, 86_400.0),
}
"""From and to: what lies outside is a slip of the pen."""
REALS = ("ObjectSize", "SleepTime")
"""All others are whole numbers."""
MOST_OPERATIONS = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What tasks do, with which data, on how many members and clients. InputError if it cannot be
    meant."""

    nnodes: int
    """Clients: threads, each of which processes one task at a time."""
    mnodes: int
    """Members, which store the data."""
    ntasks: int
    nrepeats: int
    """Iterations of the loop inside a task."""
    read_data_size: int = 0
    """Objects that an iteration reads."""
    update_data_size: int = 0
    """Objects that an iteration updates: reads, then writes."""
    write_data_size: int = 0
    """Objects that an iteration inserts."""
    nobjects: int
    """Objects that exist for reading and updating."""
    object_size: float
    """KB of 1024 bytes, without the key."""
    shared_data_size: int = 0
    """Objects that each task reads at its beginning."""
    process_time: int = 0
    """Calls of a random generator in each iteration."""
    sleep_time: float = 0.0
    """Seconds of each iteration without load."""

    def __post_init__(self) -> None:
        for name, field in NAMES.items():
            _check_limits(name, getattr(self, field))
        if self.operations == 0:
            raise InputError(
                "no task reads, updates or inserts anything",
                remedy="make ReadDataSize, UpdateDataSize, WriteDataSize or SharedDataSize at"
                " least 1",
            )
        if self.nobjects == 0 and self.keys_of_iteration:
            raise InputError(
                "NObjects is 0, and tasks are to read or update objects",
                remedy="make NObjects at least 1, or ReadDataSize and UpdateDataSize 0",
            )
        if self.operations > MOST_OPERATIONS:
            raise InputError(
                f"all tasks together would make {self.operations:,} operations, and"
                f" {MOST_OPERATIONS:,} are the most",
                remedy="make NTasks or NRepeats smaller",
            )

    def to_dict(self) -> dict[str, float]:
        """By the sources' names, in their order."""
        return {name: getattr(self, field) for name, field in NAMES.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Parameters:
        """From `to_dict`, also if JSON or a record has made whole numbers real ones. InputError if
        a name is not known, or a value cannot be meant."""
        if unknown := sorted(values.keys() - NAMES.keys()):
            raise InputError(
                f"{unknown[0]} is no parameter", remedy=f"the parameters are {', '.join(NAMES)}"
            )
        given: dict[str, Any] = {}
        for name, value in values.items():
            _check_limits(name, value)
            given[NAMES[name]] = float(value) if name in REALS else int(value)
        if absent := [name for name in NEEDED if name not in values]:
            raise InputError(f"{', '.join(absent)} is missing", remedy=f"add {absent[0]}")
        return cls(**given)

    @property
    def object_bytes(self) -> int:
        """Of a value."""
        return round(self.object_size * BYTES_PER_KB)

    @property
    def keys_of_iteration(self) -> int:
        """Objects that an iteration reads or updates."""
        return self.read_data_size + self.update_data_size

    @property
    def operations_of_task(self) -> int:
        """Reads, of shared objects too, updates and inserts of one task."""
        each = self.keys_of_iteration + self.write_data_size
        return self.shared_data_size + self.nrepeats * each

    @property
    def operations(self) -> int:
        """Of all tasks."""
        return self.ntasks * self.operations_of_task

    @property
    def stored(self) -> int:
        """Objects that are there before the tasks begin, those of keys 0 to `stored` - 1."""
        return self.nobjects + self.shared_data_size

    @property
    def inserted(self) -> int:
        """Objects that all tasks insert."""
        return self.ntasks * self.nrepeats * self.write_data_size

    @property
    def at_end(self) -> int:
        """Objects that are there when all tasks have ended, those of keys 0 to `at_end` - 1."""
        return self.stored + self.inserted

    @property
    def busy_clients(self) -> int:
        """Clients that have a task."""
        return min(self.nnodes, self.ntasks)

    @property
    def apart(self) -> bool:
        """Whether certainly no two clients touch the same object for reading or updating.

        Client j processes the tasks j, j + NNodes, j + 2*NNodes and so on, one after the other, but
        one client may be many tasks ahead of another. So what counts is whether tasks of different
        clients have common keys. They have none if all tasks together need no more than NObjects
        keys; and none if NObjects is so large that a client's next task begins at the keys of its
        task before, or is a multiple of that.
        """
        own = self.nrepeats * self.keys_of_iteration
        if self.busy_clients == 1 or self.ntasks * own <= self.nobjects:
            return True
        return self.nobjects % (own * self.nnodes) == 0

    @property
    def may_collide(self) -> bool:
        """Whether two tasks may update the same object at the same time, so that an update that is
        not atomic may be lost. False is certain; True may be too careful."""
        return self.update_data_size > 0 and not self.apart


NEEDED = ("NNodes", "MNodes", "NTasks", "NRepeats", "NObjects", "ObjectSize")
"""Those without a default."""


def _check_limits(name: str, value: Any) -> None:
    low, high = LIMITS[name]
    real = name in REALS
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not (real or float(value).is_integer()):
        raise InputError(
            f"{name} must be a {'finite' if real else 'whole'} number, not `{str(value)[:40]}`",
            remedy=f"give a number from {as_given(low, '')} to {whole(high)}",
        )
    if not low <= value <= high:
        raise InputError(
            f"{name} must be from {as_given(low, '')} to {whole(high)}, not {value:,}",
            remedy=remedy_of(name),
        )


def remedy_of(name: str) -> str:
    """What to do if the value of a parameter is refused."""
    return {
        "MNodes": "a data grid has at least one member: give MNodes, such as 3",
        "ObjectSize": "it is in KB: 1 MB is 1024; each object needs 32 bytes to be checked",
        "SleepTime": "it is in seconds",
    }.get(name, "write a whole number within these bounds, such as 100")
