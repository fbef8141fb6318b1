"""Runs the cases of the chosen areas interleaved, prints their tables and keeps all values."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from gridbench.bench import grain, large, libraries, modules
from gridbench.bench.child import CaseFailed, Stopped, run_in_child
from gridbench.bench.figures import Area, Case, Measured, Row, Samples
from gridbench.bench.table import print_area
from gridbench.engines.environments import ONE_THREAD
from gridbench.errors import InputError
from gridbench.run.interrupt import Interrupt
from gridbench.run.machine import machine_facts, versions

AREAS: dict[str, Callable[[bool], Area]] = {
    "grain": grain.area,
    "modules": modules.area,
    "large": large.area,
    "libraries": libraries.area,
}

QUICK_RUNS = 5
FULL_RUNS = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What the user asked for."""

    areas: Sequence[str]
    """Names; none: all."""
    full: bool = False
    runs: int | None = None
    out: Path | None = None


def run_bench(request: Request) -> int:
    """Measure, print, keep. Returns the exit status: 1 if something could not be measured."""
    unknown = [name for name in request.areas if name not in AREAS]
    if unknown:
        raise InputError(
            f"there is no area `{unknown[0]}`", remedy=f"the areas are {', '.join(AREAS)}"
        )
    runs = FULL_RUNS if request.full else QUICK_RUNS
    chosen = [make(request.full) for name, make in AREAS.items() if _wanted(name, request.areas)]
    console = Console()
    samples = Samples()
    record: dict[str, Any] = {
        "machine": machine_facts(),
        "versions": versions(),
        "environment": ONE_THREAD,
        "full": request.full,
        "runs": request.runs or runs,
        "areas": {},
    }
    save_record(request.out, record)  # a file that cannot be written is told before the work
    missing = False
    with Interrupt() as interrupt:
        for area in chosen:
            tell = _Progress(Console(stderr=True), area)
            rounds = request.runs or runs
            measure(area, rounds, samples, stopped=lambda: interrupt.came, tell=tell)
            rows = area.rows(samples)
            print_area(console, area.title, rows)
            record["areas"][area.name] = {"title": area.title, "rows": list(map(as_record, rows))}
            record["samples"] = samples.as_record()
            record["complete"] = not interrupt.came
            save_record(request.out, record)
            missing |= any(row.problems for row in rows)
            if interrupt.came:
                console.print("stopped: what was measured stands above")
                return interrupt.exit_status
    return 1 if missing else 0


def measure(
    area: Area,
    runs: int,
    samples: Samples,
    *,
    stopped: Callable[[], bool] = lambda: False,
    tell: Callable[[int, Case], object] | None = None,
) -> None:
    """Run the area's cases into `samples`; ends when `stopped`."""
    order = random.Random(area.name)
    for number in range(runs):
        due = [case for case in area.cases if case.most_runs is None or number < case.most_runs]
        order.shuffle(due)
        for case in due:
            if tell is not None:
                tell(number, case)
            try:
                values = run_in_child(
                    case.function, case.arguments, timeout=case.timeout, stopped=stopped
                )
                samples.add(case.name, number, values)
            except CaseFailed as failure:
                samples.add_failure(case.name, number, str(failure))
            except Stopped:
                return


class _Progress:
    """Says on a terminal what is being measured."""

    def __init__(self, console: Console, area: Area) -> None:
        self._console = console
        self._area = area

    def __call__(self, number: int, case: Case) -> None:
        """Called before each run."""
        if self._console.is_terminal:
            line = f"{self._area.name}: round {number + 1}, {case.name}"
            self._console.print(f"\r\x1b[K{line[: self._console.width - 1]}", end="\r")


def _wanted(name: str, areas: Sequence[str]) -> bool:
    return not areas or name in areas


def as_record(row: Row) -> dict[str, Any]:
    """A row for the file."""
    return {
        "what": row.what,
        "unit": row.unit,
        "gridrpc": _values(row.ours),
        "peer": _values(row.peer),
        "limit": _values(row.limit),
        "ratio_to_peer": _number(row.ratio_to_peer),
        "ratio_to_limit": _number(row.ratio_to_limit),
        "target": row.target
        and {
            "bound": row.target.bound,
            "at_least": row.target.at_least,
            "of_peer": row.target.of_peer,
            "of_limit": row.target.of_limit,
        },
        "reached": row.reached,
        "problems": row.problems,
    }


def _values(measured: Measured | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    return {"median": _number(measured.median), "values": measured.values}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value  # JSON has no NaN


def save_record(file: Path | None, record: dict[str, Any]) -> None:
    """Write it as JSON, if there is a file to write to. InputError if that cannot be."""
    if file is None:
        return
    try:
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write the results: {error.strerror or error}",
            file=file,
            remedy="choose another --out, in a folder that exists and can be written",
        ) from error
