"""Workloads of data grids: what tasks do with which objects, whatever the product.

A task `it` reads, updates and inserts objects by their keys:

    for is in 0..SharedDataSize-1:  read   key = is + NObjects
    for ip in 0..NRepeats-1:
      for ir in 0..ReadDataSize-1:  read   key = (g*(R+U) + ir) mod NObjects
      ProcessTime calls of a random generator, then a sleep of SleepTime
      for iu in 0..UpdateDataSize-1: update key = (g*(R+U) + R + iu) mod NObjects
      for iw in 0..WriteDataSize-1: insert key = NObjects + SharedDataSize + g*WriteDataSize + iw

where g = it*NRepeats + ip, R is ReadDataSize, and U is UpdateDataSize. The set-up file has these
parameters as tags, in any order:

    <DataGridSetup>
    <NNodes>         4    </NNodes>
    <MNodes>         3    </MNodes>
    <NTasks>         24   </NTasks>
    <NRepeats>       100  </NRepeats>
    <ReadDataSize>   1    </ReadDataSize>
    <UpdateDataSize> 1    </UpdateDataSize>
    <NObjects>       800  </NObjects>
    <ObjectSize>     1    </ObjectSize>
    </DataGridSetup>
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.formats import as_given, counted, size, whole
from gridbench.quantities import KB

SMALLEST_OBJECT = 32
"""Bytes: each value begins with its key, a counter and its length, so that it can be checked."""
LARGEST_OBJECT = 512 << 20
"""Bytes; some data grids cannot store more."""
MOST_OPERATIONS = 10**12
EXAMPLE = "examples/data/setup.xml"
_BOUNDS = "write a whole number within these bounds, such as 100"


def _parameter(
    name: str, low: float, high: float, *, default: Any = MISSING, remedy: str = _BOUNDS
) -> Any:
    """A field with the sources' name, the least and the largest value, and what to do about others.
    One without a default is required."""
    reported = {"name": name, "limits": (low, high), "remedy": remedy}
    return dataclasses.field(default=default, metadata=reported)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskParameters:
    """The twelve parameters of the data-grid benchmark: what tasks do, with which data, on how many
    members and clients. InputError if they make no sense."""

    nnodes: int = _parameter("NNodes", 1, 10_000)
    """Clients: threads, each of which processes one task at a time."""
    mnodes: int = _parameter(
        "MNodes",
        1,
        1000,
        remedy="a data grid has at least one member: give MNodes, such as 3",
    )
    """Members, which store the data."""
    ntasks: int = _parameter("NTasks", 1, 1_000_000)
    nrepeats: int = _parameter("NRepeats", 1, 1_000_000_000)
    """Iterations of the loop inside a task."""
    read_data_size: int = _parameter("ReadDataSize", 0, 1_000_000, default=0)
    """Objects that an iteration reads."""
    update_data_size: int = _parameter("UpdateDataSize", 0, 1_000_000, default=0)
    """Objects that an iteration updates: reads, then writes."""
    write_data_size: int = _parameter("WriteDataSize", 0, 1_000_000, default=0)
    """Objects that an iteration inserts."""
    nobjects: int = _parameter("NObjects", 0, 10_000_000_000)
    """Objects that exist for reading and updating."""
    object_size: float = _parameter(
        "ObjectSize",
        SMALLEST_OBJECT / KB,
        LARGEST_OBJECT / KB,
        remedy="it is in KB: 1 MB is 1024; each object needs 32 bytes to be checked",
    )
    """KB of 1024 bytes, without the key."""
    shared_data_size: int = _parameter("SharedDataSize", 0, 1_000_000, default=0)
    """Objects that each task reads at its beginning."""
    process_time: int = _parameter("ProcessTime", 0, 10_000_000_000, default=0)
    """Calls of a random generator in each iteration."""
    sleep_time: float = _parameter("SleepTime", 0, 86_400.0, default=0.0, remedy="it is in seconds")
    """Seconds of each iteration without load."""

    def __post_init__(self) -> None:
        for name, attribute in NAMES.items():
            _check_limits(name, getattr(self, attribute))
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
        return {name: getattr(self, attribute) for name, attribute in NAMES.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TaskParameters:
        """From `to_dict`, also if JSON or a record has made whole numbers real ones. InputError if
        a name is not known, or a value is out of bounds."""
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
        return round(self.object_size * KB)

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


# ---- By the names of the sources

NAMES = {one.metadata["name"]: one.name for one in fields(TaskParameters)}
"""The names of fields by those of the sources."""
LIMITS: dict[str, tuple[float, float]] = {
    one.metadata["name"]: one.metadata["limits"] for one in fields(TaskParameters)
}
"""The least and the largest value."""
REALS = tuple(one.metadata["name"] for one in fields(TaskParameters) if one.type == "float")
"""All others are whole numbers."""
NEEDED = tuple(one.metadata["name"] for one in fields(TaskParameters) if one.default is MISSING)
"""Those without a default."""
_REMEDIES = {one.metadata["name"]: one.metadata["remedy"] for one in fields(TaskParameters)}


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
            remedy=_REMEDIES[name],
        )


def read_setup(path: Path) -> TaskParameters:
    """Read the set-up file at `path`; InputError names file, line and remedy."""
    from gridbench.xml_setup import SetupReader

    found = SetupReader(
        path,
        root="DataGridSetup",
        tags=tuple(NAMES),
        optional=tuple(name for name in NAMES if name not in NEEDED),
        example=EXAMPLE,
    )
    values: dict[str, float] = {}
    for name, (low, high) in LIMITS.items():
        if name not in found:
            continue
        if name in REALS:
            values[name] = found.real(name, low, high, _REMEDIES[name])
        else:
            values[name] = found.whole(name, int(low), int(high), _REMEDIES[name])
    try:
        return TaskParameters.from_dict(values)
    except InputError as error:  # what is wrong with several of them together
        raise InputError(error.what, file=path, remedy=error.remedy) from None


# ---- Workloads


def label_shown(label: str) -> str:
    """`read`, `insert`, `YCSB A`."""
    if label.startswith("ycsb-"):
        return f"YCSB {label.removeprefix('ycsb-').upper()}"
    return label


def size_shown(kilobytes: float) -> str:
    """An object's size: `1 KB`, `10 MB`."""
    return size(kilobytes * KB)


Mix = Mapping[str, Any]
"""Shares of `read`, `overwrite`, `update`, `insert` and `scan`, which add up to 1; `keys`: how they
are drawn; `scan_length`: the most objects of a scan; `seed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataGridWorkload:
    """A case without its engine, its loop and its repeat: as its record has it."""

    parameters: TaskParameters
    label: str = ""
    """Which part of a scenario: `read`, `update`, `insert`, `ycsb-a`; empty: a case of the user's
    own."""
    scenario: int | None = None
    scaled: Mapping[str, str] = field(default_factory=dict)
    """Parameters that are not the scenario's own, with what the scenario has."""
    mix: Mix | None = None
    """Each iteration then is one operation that is drawn from it."""

    @property
    def inserted_at_most(self) -> int:
        """Objects that all tasks insert; of a mix, more than chance will ever have it."""
        if self.mix is None:
            return self.parameters.inserted
        drawn, share = self.parameters.operations, float(self.mix["insert"])
        spread = math.sqrt(drawn * share * (1 - share))
        return min(drawn, math.ceil(drawn * share + 6 * spread))

    @property
    def at_most(self) -> int:
        """Objects that are there in the end, at most."""
        return self.parameters.stored + self.inserted_at_most

    @property
    def may_collide(self) -> bool:
        """Whether two tasks may change the same object at the same time."""
        if self.mix is None:
            return self.parameters.may_collide
        changes = self.mix["update"] + self.mix["overwrite"] > 0
        return bool(changes) and self.parameters.busy_clients > 1

    def describe(self, *, members: int | None = None) -> str:
        """In words, on one line. `members`: those that there really are."""
        own = self.parameters
        parts = [
            "" if self.scenario is None else f"scenario {self.scenario}",
            label_shown(self.label),
            counted(own.mnodes if members is None else members, "member"),
            counted(own.nnodes, "client"),
            f"{counted(own.ntasks, 'task')} of {counted(own.operations_of_task, 'operation')}",
            size(own.object_bytes),
        ]
        return ", ".join(filter(None, parts))

    def scaled_text(self) -> list[str]:
        """What is not as the scenario has it: `NObjects is 250 in place of 1,000`."""
        values = self.parameters.to_dict()
        return [
            f"{name} is {_shown(name, values[name])} in place of {own}"
            for name, own in self.scaled.items()
        ]

    def cautions(self) -> list[str]:
        """What a user may not have meant, in whole sentences."""
        own = self.parameters
        found = []
        if own.ntasks < own.nnodes:
            found.append(
                f"NTasks is {own.ntasks:,} and NNodes {own.nnodes:,}: only"
                f" {counted(own.busy_clients, 'client')} will have a task."
            )
        if self.mix is None and 0 < own.nobjects < own.keys_of_iteration:
            found.append(
                f"NObjects is {own.nobjects:,}: an iteration, of {own.keys_of_iteration:,} objects,"
                " touches some of them more than once."
            )
        return found


def _shown(name: str, value: float) -> str:
    return size_shown(value) if name == "ObjectSize" else f"{value:,}"
