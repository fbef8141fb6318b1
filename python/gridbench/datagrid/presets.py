"""Cases that are known by name: the three scenarios of the sources, and YCSB's core workloads.

| | varied | fixed |
|---|---|---|
| 1 | objects of 1 KB, 100 KB, 1 MB, 10 MB | 8 members, 10 clients, 100 operations |
| 2 | 1, 10, 100 clients | 8 members, objects of 1 KB, 1000 operations |
| 3 | 1, 4, 8 members | 100 clients, objects of 1 KB, 1000 operations |

Scenario 1 was planned with 100 clients, and run with 10. Each scenario reads, updates and inserts
(the sources: "writes"), one after the other; a case has one of these operations.
A task makes 100 (1000) of them, and every task is timed, so the tasks of a client are repetitions.

The sources do not tell NObjects. Here each client reads and updates objects of its own, the same in
each of its tasks, so that what is seen of contention is the data grid's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from gridbench.datagrid.workload import (
    LARGEST_OBJECT,
    LIMITS,
    SMALLEST_OBJECT,
    DataGridWorkload,
    Mix,
    TaskParameters,
)
from gridbench.errors import InputError
from gridbench.formats import size
from gridbench.quantities import KB, Count, ListOf, Quantity, Size
from gridbench.schema import option
from gridbench.selection import parse_selection
from gridbench.workload.numbers import shown

KINDS = {"read": "read_data_size", "update": "update_data_size", "insert": "write_data_size"}
"""The operations of scenarios, and which parameter says how many each iteration makes."""
_STEPS = (1, 2, 2.5, 5)  # times a power of ten: the numbers that people choose
_OTHERS_TOO = {"NNodes": (100,)}  # scenario 1 was planned with as many

Capacity = Callable[[TaskParameters], int]
"""How many objects of such parameters fit into the members."""


class ObjectSize(Quantity[float]):
    """The size of an object, in KB."""

    name = "size"

    def read(self, value: Any, folder: Path | None = None) -> float:
        """KB of 1024 bytes."""
        return Size(SMALLEST_OBJECT, LARGEST_OBJECT).read(value, folder) / KB


@dataclass(frozen=True, slots=True, kw_only=True)
class DataGridScale:
    """What a user wants otherwise than the scenarios have it; empty or None: nothing."""

    members: Sequence[int] = option(
        "--members",
        ListOf(Count(*map(int, LIMITS["MNodes"]))),
        metavar="LIST",
        help="Numbers of members, such as 3 or 1,2,4.",
        default=(),
    )
    clients: Sequence[int] = option(
        "--clients",
        ListOf(Count(*map(int, LIMITS["NNodes"]))),
        metavar="LIST",
        help="Numbers of clients, such as 10 or 1,10,100.",
        default=(),
    )
    object_sizes: Sequence[float] = option(
        "--object-sizes",
        ListOf(ObjectSize()),
        metavar="LIST",
        help="Sizes of objects, such as 1KB,100KB.",
        default=(),
    )
    operations: int | None = option(
        "--operations", Count(1, 1_000_000_000), metavar="N", help="Operations of each task."
    )
    tasks_per_client: int = option(
        "--tasks-per-client",
        Count(1, 10_000),
        metavar="N",
        help="How many tasks each client processes, one after the other.",
        default=3,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scenario:
    members: Sequence[int]
    clients: Sequence[int]
    object_sizes: Sequence[float]
    operations: int


_SCENARIOS = {
    1: _Scenario(
        members=(8,), clients=(10,), object_sizes=(1.0, 100.0, 1024.0, 10_240.0), operations=100
    ),
    2: _Scenario(members=(8,), clients=(1, 10, 100), object_sizes=(1.0,), operations=1000),
    3: _Scenario(members=(1, 4, 8), clients=(100,), object_sizes=(1.0,), operations=1000),
}


_NAMES = {1: "object-size", 2: "clients", 3: "members"}


def parse_scenarios(words: Sequence[str]) -> list[int]:
    """The numbers of scenarios as given on the command line. InputError for one that is not."""
    return parse_selection(words, _NAMES, "scenario")


def scenario(
    number: int, choice: DataGridScale, capacity: Capacity | None
) -> list[DataGridWorkload]:
    """The cases of a scenario. With `capacity`, those that members cannot hold are made smaller;
    each describes what is not the scenario's own."""
    return list(_cases(number, choice, capacity))


def _cases(
    number: int, choice: DataGridScale, capacity: Capacity | None
) -> Iterator[DataGridWorkload]:
    own = _SCENARIOS[number]
    operations = choice.operations or own.operations
    for members, clients, object_size, label in product(
        choice.members or own.members,
        choice.clients or own.clients,
        choice.object_sizes or own.object_sizes,
        KINDS,
    ):
        requested = TaskParameters(
            nnodes=clients,
            mnodes=members,
            ntasks=clients * choice.tasks_per_client,
            nrepeats=operations,
            nobjects=0 if label == "insert" else clients * operations,
            object_size=object_size,
            **{KINDS[label]: 1},
        )
        found = requested if capacity is None else fitted(requested, capacity(requested))
        yield DataGridWorkload(
            parameters=found,
            label=label,
            scenario=number,
            scaled=_scaled(number, requested, found),
        )


def fitted(requested: TaskParameters, most: int) -> TaskParameters:
    """The parameters with so few iterations that there are at most so many objects in the end, and
    each client still has its own; unchanged if there are no more anyway. One iteration is the
    least, even if that is too much."""
    if requested.at_end <= most:
        return requested
    each = (
        requested.nnodes * requested.keys_of_iteration
        + requested.ntasks * requested.write_data_size
    )
    room = most - requested.shared_data_size
    repeats = min(requested.nrepeats, round_down(max(1, room // max(1, each))))
    objects = requested.nnodes * repeats * requested.keys_of_iteration
    return replace(requested, nrepeats=repeats, nobjects=min(requested.nobjects, objects))


def round_down(count: int) -> int:
    """The largest of 1, 2, 5, 10, 20, 25, 50, 100 and so on that is no more than `count`."""
    power = 10 ** (len(str(count)) - 1)
    return max(
        int(step * power)
        for step in _STEPS
        if step * power <= count and float(step * power).is_integer()
    )


def _scaled(number: int, requested: TaskParameters, found: TaskParameters) -> dict[str, str]:
    """Parameters that are not the scenario's own, with what the scenario has."""
    own = _SCENARIOS[number]
    axes: dict[str, Sequence[float]] = {
        "NNodes": (*own.clients, *(_OTHERS_TOO["NNodes"] if number == 1 else ())),
        "MNodes": own.members,
        "NRepeats": (own.operations,),
        "ObjectSize": own.object_sizes,
    }
    values = found.to_dict()
    scaled = {
        name: _describe(name, axis) for name, axis in axes.items() if values[name] not in axis
    }
    if found.nobjects < requested.nobjects:
        scaled["NObjects"] = f"{requested.nobjects:,}"
    return scaled


def _describe(name: str, axis: Sequence[float]) -> str:
    """`1, 10 or 100`."""
    sizes = name == "ObjectSize"
    words = [size(value * KB) if sizes else f"{value:,}" for value in axis]
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


# ---- YCSB

RECORDS = 10_000
OPERATIONS = 1000
_NOTHING: Mix = {
    "read": 0.0,
    "overwrite": 0.0,
    "update": 0.0,
    "insert": 0.0,
    "scan": 0.0,
    "keys": "zipfian",
    "scan_length": 100,
    "seed": 1,
}
MIXES: dict[str, Mix] = {
    "a": {**_NOTHING, "read": 0.5, "overwrite": 0.5},
    "b": {**_NOTHING, "read": 0.95, "overwrite": 0.05},
    "c": {**_NOTHING, "read": 1.0},
    "d": {**_NOTHING, "read": 0.95, "insert": 0.05, "keys": "latest"},
    "e": {**_NOTHING, "scan": 0.95, "insert": 0.05},
    "f": {**_NOTHING, "read": 0.5, "update": 0.5},
}
"""The core workloads. What YCSB calls an update replaces a value without reading it: an
`overwrite`; its read-modify-write is an `update`."""


def parse_ycsb(names: Sequence[str]) -> list[str]:
    """The letters of workloads as given on the command line, `all` for all of them. InputError for
    one that is not."""
    found: list[str] = []
    for name in names:
        if name.lower() == "all":
            found += MIXES
        elif name.lower() in MIXES:
            found.append(name.lower())
        else:
            raise InputError(
                f"unknown workload of YCSB `{shown(name)}`",
                remedy=f"the core workloads are {', '.join(MIXES)}, and `all` of them",
            )
    return list(dict.fromkeys(found))


def ycsb(letter: str, choice: DataGridScale, *, records: int = RECORDS) -> list[DataGridWorkload]:
    """A core workload, for each number of members and clients and each size: objects of 1 KB on 3
    members with 10 clients, if the choice says nothing else."""
    return [
        DataGridWorkload(
            parameters=TaskParameters(
                nnodes=clients,
                mnodes=members,
                ntasks=clients * choice.tasks_per_client,
                nrepeats=choice.operations or OPERATIONS,
                read_data_size=1,  # an iteration is one operation, whichever is drawn
                nobjects=records,
                object_size=object_size,
            ),
            label=f"ycsb-{letter}",
            mix=MIXES[letter],
        )
        for members, clients, object_size in product(
            choice.members or (3,), choice.clients or (10,), choice.object_sizes or (1.0,)
        )
    ]


# ---- The first look

FIRST_LOOK = DataGridWorkload(
    parameters=TaskParameters(
        nnodes=4,
        mnodes=1,
        ntasks=40,
        nrepeats=500,
        read_data_size=1,
        update_data_size=1,
        write_data_size=1,
        nobjects=4000,
        object_size=1.0,
    )
)
"""What is run where the user names no set-up: all three operations, each client on objects of its
own."""
