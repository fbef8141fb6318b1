"""Area `journal`: `map` of functions that do nothing, with and without a journal, and resumed."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Area, AreaCase, Row, Target, Values
from gridbench.bench.points import Points
from gridbench.workload.calls import same
from gridrpc import Grid

_WORKERS = 2
_CASE = "nothing"
#: Items per second with a journal, and read from one.
_WRITTEN, _READ = 200_000, 1_000_000
#: How much more memory ten times as many items may take, bytes.
_MORE = 64e6


def nothing(count: int) -> Values:
    """Items per second of a map of so many: plain, with a new journal, and with a full one.

    `more`: what the process's largest size has grown by for all but the first tenth, bytes.
    """
    values: Values = {}
    with (
        tempfile.TemporaryDirectory(prefix="gb-journal-") as folder,
        Grid(workers=_WORKERS) as grid,
    ):
        grid.wait_until_ready()
        list(grid.map(same, range(count // 10), journal=Path(folder, "first")))
        list(grid.map(same, range(count // 10), journal=Path(folder, "first")))
        before = _peak()
        for name in ("plain", "written", "read"):
            journal = None if name == "plain" else Path(folder, "all")
            begin = time.perf_counter()
            total = sum(grid.map(same, range(count), journal=journal))
            values[name] = count / (time.perf_counter() - begin)
            if total != count * (count - 1) // 2:
                raise RuntimeError("results are missing, or wrong")
        values["more"] = _peak() - before
        values["bytes"] = Path(folder, "all").stat().st_size / count
    return values


def _peak() -> float:
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def area(full: bool) -> Area:
    """In full there are more items."""
    return area_of(count=10_000_000 if full else 1_000_000)


def area_of(*, count: int) -> Area:
    """With so many items."""
    return Area(
        "journal",
        f"map of {count:,} items of nothing, {_WORKERS} workers; limit: without a journal",
        [AreaCase(_CASE, nothing, {"count": count})],
        _rows,
    )


def _rows(samples: Points) -> list[Row]:
    plain = samples.of(_CASE, "plain")
    return [
        Row(
            "items per second with a journal",
            "/s",
            samples.of(_CASE, "written"),
            limit=plain,
            target=Target(_WRITTEN, at_least=True),
        ),
        Row(
            "items per second that a journal has",
            "/s",
            samples.of(_CASE, "read"),
            limit=plain,
            target=Target(_READ, at_least=True),
        ),
        Row(
            "memory for the last nine tenths of the items",
            "MB",
            samples.of(_CASE, "more").scaled(1e-6),
            target=Target(_MORE * 1e-6),
        ),
        Row("bytes of the file for each item", "", samples.of(_CASE, "bytes"), digits=1),
    ]
