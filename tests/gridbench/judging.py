"""Results of all kinds that keep their rules, and what `gridbench check` finds of results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import crossover_results
import datagrid_cases
import sync_rounds
from benchmarks.check import rules_for as benchmarks_rules_for
from gridbench.bench.points import DataPoint
from gridbench.datagrid.record import DataGridCase as DataCase
from gridbench.jsonl_store import Header
from gridbench.micro.record import FORM, RESULTS, Completeness, Results
from gridbench.micro.results import results_of
from gridbench.result_kind import rules_for
from gridbench.rules import Finding
from gridbench.sync.record import Phase, Round, TaskRun

QUIET = {"judgement": "undisturbed", "told": ""}
DISTURBED = {"judgement": "disturbed", "told": "disturbed: other programs used 1.9 processors"}


def judged(source: Path) -> dict[str, Finding]:
    rules = benchmarks_rules_for(source) or rules_for(source)
    assert rules is not None
    (place,) = rules.places(source)
    return {one.rule: one for one in rules.judge(rules.read(place))}


def outcomes(source: Path) -> dict[str, str]:
    return {name: one.outcome for name, one in judged(source).items()}


def tasks_of(count: int = 2) -> list[TaskRun]:
    phases = [Phase(name="write", seconds=0.5, bytes=1000)]
    return [
        sync_rounds.task_of(number, 0.0, 1.0, phases=phases, exit=0, output=f"output/{number}.txt")
        for number in range(count)
    ]


def rounds_of(repeats: int = 2) -> list[Round]:
    return [sync_rounds.round_of(tasks_of(), repeat=n, load=QUIET) for n in range(repeats)]


def printed(seconds: float = 0.5) -> bytes:
    line = {"phases": [{"name": "write", "seconds": seconds, "bytes": 1000}]}
    return json.dumps(line).encode()


def sync_folder(folder: Path, rounds: list[Round], output: bytes | None = None) -> Path:
    sync_rounds.write_folder(folder, rounds)
    (folder / "output").mkdir()
    for number in range(2):
        (folder / "output" / f"{number}.txt").write_bytes(printed() if output is None else output)
    return folder


def data_case(**changes: Any) -> DataCase:
    return replace(datagrid_cases.four(), seconds=1.9, load=QUIET, **changes)


def data_folder(folder: Path, change: Callable[[DataCase], DataCase] = lambda one: one) -> Path:
    cases = [change(data_case(repeat=n)) for n in range(2)]
    return datagrid_cases.write_folder(folder, cases)


def crossover_folder(folder: Path, **changes: Any) -> Path:
    found = crossover_results.measured(
        crossover_results.ENGINES, sizes=(crossover_results.MB,), readers=(1, 2), repeats=2
    )
    return crossover_results.write_folder(folder, [replace(one, **changes) for one in found])


ENGINES = {"gridrpc-python": 10.0, "gridrpc-python, again": 11.0, "ray": 1000.0}
HEADER = Header(
    machine={"host": "bench", "processor": "a processor", "cores": 2},
    versions={"python": "3.11", "gridrpc": "0.1.0"},
    options={"sizes": "quick"},
    started="2031-05-04T10:30:00+0200",
    seed=1,
)


def points_of(rounds: int = 2, **changes: Any) -> list[DataPoint]:
    """Of null calls; `changes` are those of the points of Ray in the last round."""
    found = [
        DataPoint(
            workload="null_call",
            engine=engine,
            round=number,
            values={"us": value + number},
            at="2031-05-04T10:31:00+0200",
            version="1.0",
        )
        for number in range(rounds)
        for engine, value in ENGINES.items()
    ]
    found[-1] = replace(found[-1], **changes)
    return found


def micro_folder(
    folder: Path, points: list[DataPoint], change: Callable[[Results], Results] = lambda one: one
) -> Path:
    """As `gridbench micro` leaves it, but for the change."""
    file = FORM.open(folder, HEADER, fresh=True)
    for point in points:
        file.add(point)
    file.close()
    results = results_of(HEADER, points, "2031-05-04T11:15:00+0200")
    count = len(points)
    extent = Completeness(points=count, planned=count, round=2, rounds=2)
    record = change(replace(results, extent=extent)).to_record()
    (folder / RESULTS).write_text(json.dumps(record))
    return folder
