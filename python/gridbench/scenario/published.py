"""Published figures of Ninf-G with Grid Engine and of Symphony, beside those measured.

Only cases like the published ones are shown: 100 cores, the same tasks and data. The time to start
the workers has a table of its own, as it depends mostly on the cluster.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from gridbench.formats import counted, duration
from gridbench.pages.document import WRITTEN, Block, Paragraph, TableBlock
from gridbench.pages.table import Column, table_of
from gridbench.published.figures import BINARY, Row, megabytes, table
from gridbench.quantities import MB
from gridbench.scenario.cases import ScenarioCell, engines_of, size_name, without_data

SYMPHONY = "Platform Symphony (published)"
NINFG = "Ninf-G on Grid Engine (published)"
_CORES = 100
_WORK = 100.0
"""Seconds of work that the published runs of scenario 6 divide into tasks."""
_WITHOUT_START_UP = (2, 4, 5)
"""The scenarios whose published figures leave start-up out."""
_ABOUT = (
    "The published systems ran on clusters of their time, with links of 1 Gbit/s; the caveats say"
    " where the others ran. Machine and network differ as well as the system. Only cases like the"
    " published ones are shown."
)
_COLD = "Cold starts have no such figure: their first tasks wait for workers. Add --start warm."


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """One table: a row for each case, a column for each system."""

    title: str
    about: str
    rows: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, row: str, system: str, seconds: float | None) -> None:
        """Add a value, if it is known."""
        if seconds is not None and math.isfinite(seconds):
            self.rows.setdefault(row, {})[system] = seconds

    def published(self, name: str, system: str, figure: str) -> None:
        """Add a figure of a published table, by the data of each task; of 100 tasks, if the table
        has several numbers."""
        for row in table(name):
            if row.get("tasks", f"{_CORES}") == f"{_CORES}":
                self.add(_each(_bytes(row)), system, float(row[figure]))

    def measured(self, cells: Iterable[ScenarioCell], figure: str) -> None:
        """Add a figure of cases, by the data of each task."""
        for cell in cells:
            size = max(cell.one.bytes_in, cell.one.bytes_out)
            self.add(_each(size), cell.one.engine, _value(cell, figure))

    def compared(self, systems: Sequence[str]) -> dict[str, dict[str, float]]:
        """The rows in which one of these systems stands beside a published one."""
        return {
            name: row
            for name, row in self.rows.items()
            if row.keys() & set(systems) and row.keys() & {SYMPHONY, NINFG}
        }


def comparisons(scenario: int, cells: Sequence[ScenarioCell]) -> list[PublishedComparison]:
    """The tables of a scenario that have rows. Only cases that count are in them."""
    good = [cell for cell in cells if cell.counts and _cores_used(cell) <= _CORES]
    engines = engines_of(cell.one for cell in good)
    return [one for one in _MAKERS[scenario](good) if one.compared(engines)]


def published_blocks(scenario: int, cells: Sequence[ScenarioCell]) -> list[Block]:
    """The tables of a scenario; a sentence if no case is like a published one."""
    found = comparisons(scenario, cells)
    if not found:
        return [Paragraph(_none(scenario, cells))]
    engines = engines_of(cell.one for cell in cells if cell.counts)
    return [Paragraph(_ABOUT, WRITTEN), *(_block(one, engines) for one in found)]


def _block(comparison: PublishedComparison, engines: Sequence[str]) -> TableBlock:
    rows = comparison.compared(engines)
    columns = [
        Column[str]("", lambda name: name),
        *(
            Column[str](
                system,
                lambda name, system=system: _duration(rows[name].get(system)),  # type: ignore[misc]
                condition=any(system in row for row in rows.values()),
            )
            for system in (SYMPHONY, NINFG, *engines)
        ),
    ]
    return TableBlock(comparison.title, table_of(columns, rows), comparison.about)


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else duration(seconds)


def _none(scenario: int, cells: Sequence[ScenarioCell]) -> str:
    if not any(cell.counts for cell in cells):
        return "No case counts, so that there is nothing to compare."
    text = f"The published runs were on {_CORES} cores, and no case here is like one of them."
    cold = all(cell.one.start == "cold" for cell in cells)
    return f"{text} {_COLD}" if cold and scenario in _WITHOUT_START_UP else text


def _first(cells: Sequence[ScenarioCell]) -> Iterable[PublishedComparison]:
    start = PublishedComparison("Start-up", _STARTED)
    after = PublishedComparison(
        "Shared data, start-up left out",
        "From then until the last of 100 cores computed, with this much shared data to each. Ours"
        " is what the data added to the time without it.",
    )
    for row in table("5.5.1-1"):
        size, system = _bytes(row), _SYSTEMS[row["system"]]
        start.add(_shared(size), system, float(row["start_up_s"]))
        after.add(_shared(size), system, float(row["transfer_s"]))
    own = [c for c in cells if c.one.cores == c.one.tasks == _CORES and c.one.start == "cold"]
    empty = {c.one.engine: _value(c, "last_start") for c in own if not c.one.bytes_shared}
    for cell in own:
        one, before = cell.one, empty.get(cell.one.engine)
        until = _value(cell, "last_start")
        start.add(_shared(one.bytes_shared), one.engine, before)
        if before is not None and until is not None and one.bytes_shared:
            after.add(_shared(one.bytes_shared), one.engine, max(0.0, until - before))
    return [start, after]


def _second(cells: Sequence[ScenarioCell]) -> Iterable[PublishedComparison]:
    found = PublishedComparison(
        "Tasks of 1 s: from the queue to the start, start-up left out",
        "Mean of the first 100 of 200 tasks on 100 cores, with this much data to each.",
    )
    found.published("5.5.2-1", NINFG, "start_minus_queue_s")
    of_a_second = [c for c in _warm(cells) if math.isclose(c.one.sleep_s / c.one.time_scale, 1.0)]
    found.measured(of_a_second, "first_dispatch")
    return [found]


def _third(cells: Sequence[ScenarioCell]) -> Iterable[PublishedComparison]:
    start = PublishedComparison(
        "Start-up",
        f"{_STARTED} The published values of several runs are means, and are of scenario 6.",
    )
    values: dict[tuple[int, str], list[float]] = {}
    for row in table("5.5.3-1"):
        values.setdefault((int(row["cores"]), NINFG), []).append(float(row["start_up_s"]))
    for row in table("5.5.6-1"):
        count = min(int(row["tasks"]), _CORES)
        values.setdefault((count, SYMPHONY), []).append(float(row["start_up_s"]))
    for cell in cells:
        seconds = _value(cell, "last_start")
        if seconds is not None and cell.one.start == "cold":
            values.setdefault((_cores_used(cell), cell.one.engine), []).append(seconds)
    for (count, system), several in sorted(values.items()):
        start.add(counted(count, "core"), system, statistics.mean(several))
    return [start]


def _fourth(cells: Sequence[ScenarioCell]) -> Iterable[PublishedComparison]:
    first = PublishedComparison(
        "From the queue to the start: first 100 of 200 tasks, start-up left out",
        "Mean on 100 cores, with this much data to each task.",
    )
    later = PublishedComparison(
        "From the queue to the start: last 100 of 200 tasks",
        "The same of the tasks that follow, as cores become free.",
    )
    span = PublishedComparison(
        "Starts of the first 100 tasks, start-up left out",
        "From the first start to the last.",
    )
    first.published("5.5.4-3", NINFG, "start_minus_queue_s")
    later.published("5.5.4-4", NINFG, "start_minus_queue_s")
    span.published("5.5.4-2", SYMPHONY, "span_s")
    both = [cell for cell in cells if (cell.one.cores, cell.one.tasks) == (_CORES, 2 * _CORES)]
    later.measured(both, "later_dispatch")
    first.measured(_warm(cells), "first_dispatch")
    span.measured(_warm(cells), "start_span")
    return [first, span, later]


def _fifth(cells: Sequence[ScenarioCell]) -> Iterable[PublishedComparison]:
    span = PublishedComparison(
        "Returns of the first 100 tasks, start-up left out",
        "From the first to the last result in the client's hand, on 100 cores, with this much"
        " output of each task.",
    )
    span.published("5.5.5-1", SYMPHONY, "span_s")
    span.published("5.5.5-2", NINFG, "done_span_s")
    span.measured(_warm(cells), "return_span")
    return [span]


def _sixth(cells: Sequence[ScenarioCell]) -> Iterable[PublishedComparison]:
    start = PublishedComparison("Start-up", _STARTED)
    beside = PublishedComparison(
        "What it cost besides, start-up left out",
        "The total less start-up, and less the time that the tasks themselves take on 100 cores.",
    )
    whole = PublishedComparison("Total", "Start-up and tasks included.")
    for name, system, size in _TOTALS:
        for row in table(name):
            tasks, sleep = int(row["tasks"]), float(row["sleep_s"])
            total, starting = float(row["total_s"]), float(row["start_up_s"])
            what = _split(tasks, size)
            start.add(what, system, starting)
            beside.add(what, system, total - starting - math.ceil(tasks / _CORES) * sleep)
            whole.add(what, system, total)
    for cell in cells:
        one = cell.one
        work = one.tasks * one.sleep_s / one.time_scale if one.time_scale else math.nan
        if one.cores != _CORES or not math.isclose(work, _WORK, rel_tol=1e-6):
            continue
        what, total = _split(one.tasks, one.bytes_in), cell.total().value
        empty = without_data(cell, cells, lambda cell: cell.one.bytes_in)
        start_up = _value(empty, "last_start") if empty else None
        before = start_up if one.start == "cold" else 0.0
        if before is not None:
            start.add(what, one.engine, before if one.start == "cold" else None)
            beside.add(what, one.engine, max(0.0, total - before - (one.ideal_s or 0.0)))
        # Of shorter tasks there is another total.
        whole.add(what, one.engine, total if one.time_scale == 1.0 else None)
    return [start, beside, whole]


def _cores_used(cell: ScenarioCell) -> int:
    return min(cell.one.cores, cell.one.tasks)


def _warm(cells: Iterable[ScenarioCell]) -> list[ScenarioCell]:
    """Warm starts of 200 tasks on 100 cores."""
    wanted = _CORES, 2 * _CORES, "warm"
    return [cell for cell in cells if (cell.one.cores, cell.one.tasks, cell.one.start) == wanted]


def _value(cell: ScenarioCell, name: str) -> float | None:
    found = cell.figure(name)
    return None if found is None else found.value


def _bytes(row: Row) -> int:
    return round(megabytes(row["size"], BINARY) * MB)


def _shared(size: int) -> str:
    return f"{size_name(size)} shared" if size else "no shared data"


def _each(size: int) -> str:
    return f"{size_name(size)} each" if size else "no data"


def _split(tasks: int, size: int) -> str:
    return f"{counted(tasks, 'task')}, {_each(size)}"


_SYSTEMS = {"symphony": SYMPHONY, "ninfg": NINFG}
_TOTALS = (
    ("5.5.6-1", SYMPHONY, 0),
    ("5.5.6-3", NINFG, 0),
    ("5.5.6-2", SYMPHONY, MB),
    ("5.5.6-4", NINFG, MB),
)
_STARTED = (
    "Published: until the workers were there, waiting for the batch system included. Ours: until"
    " the last of the workers that had a task began to compute, without data, from a cold start."
)
_MAKERS: dict[int, Callable[[Sequence[ScenarioCell]], Iterable[PublishedComparison]]] = {
    1: _first,
    2: _second,
    3: _third,
    4: _fourth,
    5: _fifth,
    6: _sixth,
}
