"""Tables of Symphony that come from the span of a block of tasks: 5.5.4-2 and 5.5.5-1."""

from __future__ import annotations

from collections.abc import Mapping

from gridbench.analysis.transfer import rate_mbps, time_per_task
from gridbench.published.figures import Figure
from gridbench.published.printed import (
    DECIMAL,
    Computed,
    Printed,
    Row,
    computed,
    megabytes,
    table,
    without_data,
)

HOW = (
    "Time per task = (span - span at 0 KB) / tasks. The rate comes from that time as printed, with "
    "a KB of 1/1000 MB. The spans are printed without the waits of 0.5 s in which instances start."
)


def block_figures(name: str, exceptions: Mapping[str, str]) -> tuple[Figure, ...]:
    """All figures of such a table. `exceptions` says why a time is none, by row."""
    rows = table(name)
    empty = without_data(rows, "span_s")
    figures = []
    for row in rows:
        if row["size"] == "0 KB":
            continue
        tasks = int(row["tasks"])
        label = f"{row['size']}, {tasks} tasks"
        step = computed(
            lambda span, no_data, tasks=tasks: 1e3 * time_per_task(span, no_data, tasks),
            Printed(row["span_s"]),
            empty[row["tasks"]],
        )
        printed_step = Printed(row["ms_per_task"])
        figures += [
            Figure(
                label,
                "time per task",
                "ms",
                printed_step,
                step,
                exceptions.get(label, ""),
            ),
            Figure(label, "rate", "Mbit/s", Printed(row["rate_mbps"]), rate_of_step(row)),
        ]
    return tuple(figures)


def rate_of_step(row: Row) -> Computed:
    """Mbit/s from the size and the printed ms per task of a row."""
    size = megabytes(row["size"], DECIMAL)
    return computed(lambda ms: rate_mbps(size, ms / 1e3), Printed(row["ms_per_task"]))
