"""Cases of data grids made by hand, for the tests of sentences about them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from gridbench.datagrid.record import (
    FORM,
    Checked,
    DataGridCase,
    Latencies,
    Loading,
    MemberUse,
    OperationCounts,
    TaskTimeline,
    WarmUp,
    Windows,
)
from gridbench.jsonl_store import Header

EVIL = "<script>document.title='broken'</script><b>bold</b>"
DISTURBED = {"judgement": "disturbed", "told": "disturbed: other programs used 1.9 processors"}
ENGINES = {"hazelcast": "Hazelcast", "ignite": "Apache Ignite", "coherence": "Oracle Coherence"}
PARAMETERS: dict[str, float] = {
    "NNodes": 2,
    "MNodes": 3,
    "NTasks": 4,
    "NRepeats": 10,
    "ReadDataSize": 1,
    "UpdateDataSize": 0,
    "WriteDataSize": 0,
    "NObjects": 1000,
    "ObjectSize": 1,
    "SharedDataSize": 0,
    "ProcessTime": 0,
    "SleepTime": 0,
}


def header_of(**options: object) -> Header:
    return Header(
        machine={"host": "client", "processor": "a processor", "cores": 2, "memory": 2**34},
        versions={"python": "3.11", "gridrpc": "0.1.0", "java": "17.0.17"},
        options={"repeats": 3} | options,
        started="2031-05-04T10:30:00+00:00",
        seed=1,
    )


def tasks_of(*columns: tuple[object, ...]) -> TaskTimeline:
    """Tasks by their columns, in the order of the record."""
    names = ("id", "client", "began", "ended", "operations", "why")
    return TaskTimeline(**dict(zip(names, columns, strict=True)))  # type: ignore[arg-type]


def windows_of(length: float, operations: Sequence[int], errors: Sequence[int]) -> Windows:
    return Windows(length=length, operations=tuple(operations), errors=tuple(errors))


def four() -> DataGridCase:
    """Of four tasks by two clients; all answers can be worked out by hand.

    Client 0 takes 1 s and 0.5 s, client 1 takes 1.2 s and 0.7 s, 40 reads in 2 s in all. Of these,
    20 take 10 ms, 16 take 20 ms, 3 take 50 ms and one 200 ms.
    """
    return DataGridCase(
        engine="hazelcast",
        title="Hazelcast",
        version="1.2",
        label="read",
        scenario=None,
        parameters=dict(PARAMETERS),
        repeat=0,
        processes=1,
        at="2031-05-04T10:31:00+00:00",
        status="done",
        cluster_in=9.0,
        clients_in=3.0,
        loading=Loading(objects=1000, bytes=1000 * 1024, seconds=2.0, client_memory=2**27),
        warm_up=WarmUp(seconds=5.0, steady=True, operations=900),
        seconds=2.0,
        tasks=TaskTimeline(
            id=(0, 2, 1, 3),
            client=(0, 0, 1, 1),
            began=(0.0, 1.0, 0.0, 1.2),
            ended=(1.0, 1.5, 1.2, 1.9),
            operations=(10, 10, 10, 10),
            why=("", "", "", ""),
        ),
        latencies=(
            Latencies(
                operation="read",
                counted="service",
                values=(10_000_000, 20_000_000, 50_000_000, 200_000_000),
                counts=(20, 16, 3, 1),
            ),
        ),
        windows=Windows(length=0.1, operations=(2,) * 20, errors=(0,) * 20),
        counts=OperationCounts(reads=40),
        members=tuple(
            MemberUse(
                index=index,
                host="node0",
                joined_in=4.0 + index,
                memory=200 * 2**20,
                used=100 * 2**20,
                entries=entries,
                backups=333,
                entries_after=entries,
            )
            for index, entries in enumerate((300, 300, 400))
        ),
        checked=Checked(
            expected=1000,
            found=1000,
            read=1000,
            missing=0,
            wrong=0,
            updates=0,
            updates_expected=0,
        ),
        client_cpu=1.5,
        client_gc=0.1,
    )


def killed(windows: Sequence[int], at: float = 1.0, **more: object) -> DataGridCase:
    """A case whose member 1 is killed; one client with a task over all windows of 0.1 s."""
    base = four()
    end = len(windows) * base.windows.length
    members = list(base.members)
    members[1] = replace(members[1], killed_at=at, entries_after=-1)
    values: dict[str, object] = {
        "kill": (1,),
        "seconds": end,
        "tasks": tasks_of((0,), (0,), (0.0,), (end,), (sum(windows),), ("",)),
        "windows": windows_of(0.1, tuple(windows), (0,) * len(windows)),
        "counts": OperationCounts(reads=sum(windows)),
        "members": tuple(members),
    }
    return replace(base, **(values | more))  # type: ignore[arg-type]


def made(
    engine: str = "hazelcast",
    *,
    label: str = "read",
    scenario: int | None = 1,
    size: float = 1,
    clients: int = 10,
    members: int = 3,
    repeat: int = 0,
    slow: float = 1.0,
    tasks_each: int = 6,
    loop: str = "closed",
    kill: tuple[int, ...] = (),
    seed: int = 1,
    **more: object,
) -> DataGridCase:
    """A case as it may come out: operations take 0.4 ms and 4 ms for each MB, insertions more, and
    wait for each other from 10 clients on."""
    draw = random.Random(f"{engine} {label} {size} {clients} {members} {repeat} {seed} {loop}")
    kind = {"read": 1.0, "update": 2.2, "insert": 1.6}[label]
    every = 100 if scenario == 1 else 1000
    each = (0.0004 + 0.004 * size / 1024) * kind * slow * max(1.0, clients / (4 * members))
    slots: dict[int, int] = {}
    id_, client, began, ended = [], [], [], []
    for place in range(clients):
        now = draw.uniform(0, 0.002)
        for number in range(tasks_each):
            seconds = each * every * draw.uniform(0.9, 1.15)
            id_.append(number * clients + place)
            client.append(place)
            began.append(now)
            now += seconds
            ended.append(now)
            for _ in range(60):
                value = each * draw.lognormvariate(-0.1, 0.4)
                value *= 12 if draw.random() < 0.004 else 1
                nanoseconds = float(f"{value * 1e9:.2e}")
                slots[int(nanoseconds)] = slots.get(int(nanoseconds), 0) + every // 50
    total = clients * tasks_each * every
    span = max(ended)
    length = 0.1
    count = max(1, math.ceil(span / length))
    windows = [int(total / count * draw.uniform(0.93, 1.07)) for _ in range(count)]
    errors = [0] * count
    killed_at = None
    if kill:
        # The members are killed in the middle; it takes a second until all is as before.
        at = count // 3
        killed_at = at * length + 0.04
        for number in range(at, min(count, at + 10)):
            windows[number] = int(windows[number] * 0.08 * (number - at))
        errors[min(at + 2, count - 1)] = 7
    latencies = [
        Latencies(
            operation=label,
            counted="service",
            values=tuple(sorted(slots)),
            counts=tuple(slots[value] for value in sorted(slots)),
        )
    ]
    if loop == "open":
        # Of 50 operations one waits for another that stalls.
        late: dict[int, int] = {}
        for value, count_of in slots.items():
            slower = int(value * (1 if value < 2.1e9 * each else 30))
            late[slower] = late.get(slower, 0) + count_of
        latencies.append(
            Latencies(
                operation=label,
                counted="intended",
                values=tuple(sorted(late)),
                counts=tuple(late[value] for value in sorted(late)),
            )
        )
    objects = 1000
    updates = total if label == "update" else 0
    inserts = total if label == "insert" else 0
    data = int(objects * size * 1024)
    parameters = PARAMETERS | {
        "NNodes": clients,
        "MNodes": members,
        "NTasks": clients * tasks_each,
        "NRepeats": every,
        "ReadDataSize": 1 if label == "read" else 0,
        "UpdateDataSize": 1 if label == "update" else 0,
        "WriteDataSize": 1 if label == "insert" else 0,
        "NObjects": objects,
        "ObjectSize": size,
    }
    values: dict[str, object] = {
        "engine": engine,
        "title": ENGINES.get(engine, engine),
        "stated": {"version": "1.2", "settings": f"Partitioned map of {ENGINES.get(engine)}."},
        "version": "1.2",
        "label": label,
        "scenario": scenario,
        "parameters": parameters,
        "scaled": {"MNodes": "8", "NNodes": "100"} if scenario else {},
        "repeat": repeat,
        "loop": loop,
        "rate": float(f"{0.9 / each * clients:.2g}") if loop == "open" else None,
        "kill": kill,
        "processes": min(4, clients),
        "at": "2031-05-04T10:31:00+00:00",
        "status": "done",
        "cluster_in": 11.5 if repeat == 0 else 0.0,
        "clients_in": 2.5 if repeat == 0 else 0.0,
        "loading": Loading(objects=objects, bytes=data, seconds=1.5, client_memory=300 * 2**20),
        "warm_up": WarmUp(seconds=6.0, steady=True, operations=total),
        "seconds": span,
        "tasks": tasks_of(
            tuple(id_),
            tuple(client),
            tuple(began),
            tuple(ended),
            (every,) * len(id_),
            ("",) * len(id_),
        ),
        "latencies": tuple(latencies),
        "windows": windows_of(length, tuple(windows), tuple(errors)),
        "counts": OperationCounts(
            reads=total if label == "read" else 0, updates=updates, inserts=inserts
        ),
        "errors": {"TargetDisconnectedException: the member has left": 7} if kill else {},
        "members": tuple(
            MemberUse(
                index=index,
                host="node0",
                joined_in=5.0 + index,
                memory=int((180 + draw.uniform(0, 30)) * 2**20 + 2.2 * data / members),
                used=int(60 * 2**20 + 2.1 * data / members),
                entries=objects // members + draw.randint(-12, 12),
                backups=objects // members,
                entries_after=-1 if index in kill else objects // members,
                killed_at=killed_at if index in kill else None,
            )
            for index in range(members)
        ),
        "checked": Checked(
            expected=objects + inserts,
            found=objects + inserts,
            read=objects + inserts,
            missing=0,
            wrong=0,
            updates=updates,
            updates_expected=updates,
        ),
        "client_cpu": span * 0.8,
        "client_gc": span * 0.01,
        "load": {"judgement": "undisturbed"},
    }
    return DataGridCase(**(values | more))  # type: ignore[arg-type]


def campaign(engines: Sequence[str] = tuple(ENGINES), repeats: int = 3) -> list[DataGridCase]:
    """The three scenarios on several engines, with open loops, a member killed, a case that other
    programs disturbed, one that failed, and one whose data were wrong."""
    return list(_campaign(tuple(engines), repeats))


@cache
def _campaign(engines: tuple[str, ...], repeats: int) -> tuple[DataGridCase, ...]:
    found: list[DataGridCase] = []
    for place, engine in enumerate(engines):
        slow = 1 + 0.35 * place
        for repeat in range(repeats):
            common = {"repeat": repeat, "slow": slow}
            for label in ("read", "update", "insert"):
                found += [
                    made(engine, label=label, size=size, tasks_each=4, **common)  # type: ignore[arg-type]
                    for size in (1, 100, 1024, 10240)
                ]
                found += [
                    made(engine, label=label, scenario=2, clients=clients, **common)  # type: ignore[arg-type]
                    for clients in (1, 10, 100)
                ]
                found += [
                    made(engine, label=label, scenario=3, clients=100, members=members, **common)  # type: ignore[arg-type]
                    for members in (1, 4, 8)
                ]
            for loop in ("closed", "open"):
                found.append(made(engine, scenario=None, loop=loop, **common))  # type: ignore[arg-type]
            killing = {"scenario": None, "label": "update", "tasks_each": 12, "kill": (1,)}
            found.append(made(engine, **killing, **common))  # type: ignore[arg-type]
    found[1] = replace(found[1], load=DISTURBED)
    found[4] = replace(found[4], status="failed", why="member 2 did not join within 60 s")
    wrong = found[-1].checked
    assert wrong is not None
    found[-1] = replace(found[-1], checked=replace(wrong, missing=3, found=wrong.found - 3))
    return tuple(found)


def write_folder(folder: Path, cases: Sequence[DataGridCase], **options: object) -> Path:
    """A folder of results."""
    file = FORM.open(folder, header_of(**options), fresh=True)
    for case in cases:
        file.add(case)
    file.close()
    return folder
