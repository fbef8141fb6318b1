"""Runs the cases of the chosen areas interleaved, prints their tables and keeps all values."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from gridbench.bench import batch, grain, hosts, journal, large, libraries, modules
from gridbench.bench.child import CaseFailed, Stopped, run_in_child
from gridbench.bench.extent import Extent
from gridbench.bench.figures import Area, Case, Measured, Row, Samples
from gridbench.bench.table import markdown_of, print_area
from gridbench.engines.environments import ONE_THREAD
from gridbench.errors import InputError
from gridbench.report.files import write_page
from gridbench.run.interrupt import Interrupt
from gridbench.run.machine import machine_facts, versions

AREAS: dict[str, Callable[[Extent], Iterable[Area]]] = {
    "grain": lambda extent: [grain.area(extent is Extent.FULL)],
    "modules": lambda extent: [modules.area(extent is Extent.FULL)],
    "large": lambda extent: [large.area(extent is Extent.FULL)],
    "libraries": lambda extent: [libraries.area(extent is Extent.FULL)],
    "journal": lambda extent: [journal.area(extent is Extent.FULL)],
    "hosts": hosts.areas,
    "cluster": batch.areas,
}

RUNS = {Extent.TRIAL: 1, Extent.USUAL: 5, Extent.FULL: 7}


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What the user asked for."""

    areas: Sequence[str]
    """Names; none: all."""
    cases: Sequence[str] = ()
    """Parts of areas that have several, by their names; none: all."""
    extent: Extent = Extent.USUAL
    runs: int | None = None
    out: Path | None = None
    markdown: Path | None = None


def run_bench(request: Request) -> int:
    """Measure, print, keep. Returns the exit status: 1 if something could not be measured."""
    unknown = [name for name in request.areas if name not in AREAS]
    if unknown:
        raise InputError(
            f"there is no area `{unknown[0]}`", remedy=f"the areas are {', '.join(AREAS)}"
        )
    runs = request.runs or RUNS[request.extent]
    chosen = _chosen(request)
    console = Console()
    samples = Samples()
    record: dict[str, Any] = {
        "machine": machine_facts(),
        "versions": versions(),
        "environment": ONE_THREAD,
        "extent": request.extent.value,
        "runs": runs,
        "areas": {},
    }
    page = [_head(record)]
    save_record(request.out, record)  # a file that cannot be written is told before the work
    save_page(request.markdown, page)
    missing = False
    with Interrupt() as interrupt:
        for area in chosen:
            tell = _Progress(Console(stderr=True), area)
            measure(area, runs, samples, stopped=lambda: interrupt.came, tell=tell)
            rows = area.rows(samples)
            print_area(console, area.title, rows)
            page.append(markdown_of(area.title, rows))
            page += save_picture(request.markdown, area, samples)
            record["areas"][area.name] = {"title": area.title, "rows": list(map(as_record, rows))}
            record["samples"] = samples.as_record()
            record["complete"] = not interrupt.came
            save_record(request.out, record)
            save_page(request.markdown, page)
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
            if case.missing:
                samples.add_failure(case.name, number, case.missing)
                continue
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


def _chosen(request: Request) -> list[Area]:
    """The areas, or parts of them, in the order of the list above."""
    names = request.areas or AREAS
    areas = [area for name in AREAS if name in names for area in AREAS[name](request.extent)]
    if not request.cases:
        return areas
    parts = {area.part: area for area in areas if area.part}
    unknown = [name for name in request.cases if name not in parts]
    if unknown:
        known = f"the cases are {', '.join(parts)}" if parts else "these areas have no cases"
        raise InputError(f"there is no case `{unknown[0]}`", remedy=known)
    return [area for name, area in parts.items() if name in request.cases]


def _head(record: dict[str, Any]) -> str:
    machine = record["machine"]
    return (
        "# Measured by `gridbench bench`\n\n"
        f"{machine.get('cores', '?')} processors, {record['runs']} rounds ({record['extent']}). "
        "Shown are medians with the smallest and the largest value; ratios are of values of the "
        "same round.\n"
    )


def save_picture(page: Path | None, area: Area, samples: Samples) -> list[str]:
    """Write the area's picture beside the page; the text that shows it there, if there is one."""
    if page is None or area.picture is None:
        return []
    file = page.with_name(f"{page.stem}-{area.part or area.name}.svg")
    write_page(file, area.picture(samples))
    return [f"![{area.title}]({file.name})\n"]


def save_page(file: Path | None, parts: Sequence[str]) -> None:
    """Write the parts as one Markdown file, if there is one. InputError if that cannot be."""
    if file is not None:
        write_page(file, "\n".join(parts))


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
        "ratios": row.ratios,
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
