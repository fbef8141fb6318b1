"""Tables of the report whose figures follow from others, recomputed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gridbench.analysis.scaling import fit_line
from gridbench.analysis.transfer import (
    MEGABITS_PER_MEGABYTE,
    rate_mbps,
    time_per_task,
    transfer_load,
    transfer_time,
)
from gridbench.formats import as_given
from gridbench.published.figures import (
    BINARY,
    DECIMAL,
    Computed,
    Printed,
    RecomputedFigure,
    RecomputedTable,
    Row,
    computed,
    figure_in_text,
    megabytes,
    table,
    tasks_of,
    without_data,
)

HOW = (
    "Time per task = (span - span at 0 KB) / tasks. The rate comes from that time as printed, with "
    "a KB of 1/1000 MB. The spans are printed without the waits of 0.5 s in which instances start."
)


def block_figures(name: str, exceptions: Mapping[str, str]) -> tuple[RecomputedFigure, ...]:
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
            RecomputedFigure(
                label,
                "time per task",
                "ms",
                printed_step,
                step,
                exceptions.get(label, ""),
            ),
            RecomputedFigure(label, "rate", "Mbit/s", Printed(row["rate_mbps"]), rate_of_step(row)),
        ]
    return tuple(figures)


def rate_of_step(row: Row) -> Computed:
    """Mbit/s from the size and the printed ms per task of a row."""
    size = megabytes(row["size"], DECIMAL)
    return computed(lambda ms: rate_mbps(size, ms / 1e3), Printed(row["ms_per_task"]))


def table_5_5_1_1() -> RecomputedTable:
    """Transfer times and rates of scenario 1."""
    figures = []
    for row in table("5.5.1-1"):
        label = f"{row['system']}, {row['size']}"
        transfer = Printed(row["transfer_s"])
        start, start_up = Printed(row["compute_start_s"]), Printed(row["start_up_s"])
        rest = computed(lambda start, start_up: start - start_up, start, start_up)
        figures.append(RecomputedFigure(label, "transfer", "s", transfer, rest))
        if row["rate_mbps"]:
            size = _CORES * megabytes(row["size"], BINARY)
            rate = computed(lambda seconds, size=size: rate_mbps(size, seconds), transfer)
            figures.append(
                RecomputedFigure(label, "rate", "Mbit/s", Printed(row["rate_mbps"]), rate)
            )
    return RecomputedTable(
        "5.5.1-1",
        "Shared data to 100 cores (scenario 1)",
        "Transfer = start of the last core - start-up; rate = 100 x size / transfer, with a KB of "
        "1/1024 MB. Symphony's start-up of 5 s is the report's assumption.",
        tuple(figures),
    )


_MOST_CORES = 100


def table_5_5_3_1() -> RecomputedTable:
    """The line, and mean and spread at 100 cores."""
    rows = table("5.5.3-1")
    cores = np.array([float(row["cores"]) for row in rows])
    seconds = np.array([float(row["start_up_s"]) for row in rows])
    line = fit_line(cores, seconds)
    most = seconds[cores == _MOST_CORES]
    ours = (
        ("line", "constant", "start_up_constant", line.intercept, ""),
        ("line", "for each core", "start_up_per_core", line.slope, ""),
        ("100 cores", "mean", "start_up_mean", most.mean(), "the mean of the four is 19.17"),
        ("100 cores", "standard deviation", "start_up_deviation", most.std(ddof=1), ""),
    )
    return RecomputedTable(
        "5.5.3-1",
        "Ninf-G with Grid Engine: start-up (scenario 3, from runs of scenario 6)",
        "Least squares over all eight rows of the table; mean and standard deviation of the four "
        "with 100 cores.",
        tuple(
            RecomputedFigure(
                row,
                quantity,
                "s",
                Printed(figure_in_text(key, "ninfg")["value"]),
                Computed.exactly(float(value)),
                reason,
            )
            for row, quantity, key, value, reason in ours
        ),
    )


_CORES = 100


def table_5_5_2_1() -> RecomputedTable:
    """What starting a task takes beside the transfer."""
    rate = float(figure_in_text("shared_rate", "symphony")["value"])
    figures = []
    for row in table("5.5.2-1"):
        if row["size"] == "0 KB":
            continue
        start, transfer = Printed(row["start_minus_queue_s"]), Printed(row["transfer_s"])
        needed = Computed.exactly(transfer_time(_CORES * megabytes(row["size"], BINARY), rate))
        rest = computed(lambda start, transfer: start - transfer, start, transfer)
        figures += [
            RecomputedFigure(row["size"], "transfer", "s", transfer, needed),
            RecomputedFigure(row["size"], "rest", "s", Printed(row["difference_s"]), rest),
        ]
    return RecomputedTable(
        "5.5.2-1",
        "Ninf-G: starting a task, beside its transfer (scenario 2)",
        "Transfer = 100 x size / 880 Mbit/s, with a KB of 1/1024 MB; rest = (Start - Queue) - "
        "transfer.",
        tuple(figures),
    )


def table_5_5_4_1() -> RecomputedTable:
    """Client to management node."""
    return RecomputedTable(
        "5.5.4-1",
        "Symphony: task data, client to management node (scenario 4)",
        "Rate = size / smallest difference of successive submit times, with a KB of 1/1000 MB.",
        tuple(
            RecomputedFigure(
                f"{row['size']}, {row['tasks']} tasks",
                "rate",
                "Mbit/s",
                Printed(row["rate_mbps"]),
                rate_of_step(row),
            )
            for row in table("5.5.4-1")
        ),
    )


def table_5_5_4_2() -> RecomputedTable:
    """Management node to compute nodes."""
    return RecomputedTable(
        "5.5.4-2",
        "Symphony: task data, management node to nodes (scenario 4)",
        HOW,
        block_figures(
            "5.5.4-2",
            {"1 MB, 400 tasks": "10.2 is 4.08 s / 400: the span at 0 KB is not taken off"},
        ),
    )


def table_5_5_4_3() -> RecomputedTable:
    """Client to nodes, all at the same time."""
    rows = table("5.5.4-3")
    rate = float(figure_in_text("link_rate", "ninfg")["value"])
    fixed = float(figure_in_text("fixed_cost", "ninfg")["value"])
    empty = without_data(rows, "start_minus_queue_s")[""]
    figures = []
    for row in rows:
        size = _CORES * megabytes(row["size"], BINARY)
        if row["rate_mbps"]:
            above = Printed(row["above_empty_s"])
            difference = computed(
                lambda start, empty: start - empty, Printed(row["start_minus_queue_s"]), empty
            )
            achieved = computed(lambda seconds, size=size: rate_mbps(size, seconds), above)
            figures += [
                RecomputedFigure(row["size"], "above 0 KB", "s", above, difference),
                RecomputedFigure(
                    row["size"], "rate", "Mbit/s", Printed(row["rate_mbps"]), achieved
                ),
            ]
        line = Computed.exactly(fixed + transfer_time(size, rate))
        figures.append(
            RecomputedFigure(row["size"], "the line", "s", Printed(row["predicted_s"]), line)
        )
    return RecomputedTable(
        "5.5.4-3",
        "Ninf-G: task data, first 100 tasks (scenario 4)",
        "Above 0 KB = (Start - Queue) less that at 0 KB; rate = 100 x size / that; the line is "
        "0.145 s + 100 x size / 835 Mbit/s. A KB is 1/1024 MB.",
        tuple(figures),
    )


def table_5_5_4_4() -> RecomputedTable:
    """Client to nodes, spread over time."""
    rows = table("5.5.4-4")
    empty = without_data(rows, "start_minus_queue_s")[""]
    first = {row["size"]: Printed(row["start_minus_queue_s"]) for row in table("5.5.4-3")}
    figures = []
    for row in rows:
        if row["size"] == "0 KB":
            continue
        above = computed(
            lambda start, empty: start - empty, Printed(row["start_minus_queue_s"]), empty
        )
        each = computed(lambda seconds: seconds / _CORES, first[row["size"]])
        figures += [
            RecomputedFigure(row["size"], "above 0 KB", "s", Printed(row["above_empty_s"]), above),
            RecomputedFigure(
                row["size"], "transfer", "s", Printed(row["transfer_per_task_s"]), each
            ),
        ]
    return RecomputedTable(
        "5.5.4-4",
        "Ninf-G: task data, last 100 tasks (scenario 4)",
        "Above 0 KB = (Start - Queue) less that at 0 KB; transfer of one task = (Start - Queue of "
        "the first 100, in 5.5.4-3) / 100.",
        tuple(figures),
    )


_TASKS = 100


def table_5_5_5_1() -> RecomputedTable:
    """Compute nodes to management node to client."""
    return RecomputedTable(
        "5.5.5-1",
        "Symphony: output data (scenario 5)",
        HOW,
        block_figures("5.5.5-1", {}),
    )


def table_5_5_5_2() -> RecomputedTable:
    """Compute nodes to client."""
    rows = table("5.5.5-2")
    empty = without_data(rows, "done_span_s")[""]
    figures = []
    for row in rows:
        if row["size"] == "0 KB":
            continue
        above = Printed(row["above_empty_s"])
        difference = computed(lambda span, empty: span - empty, Printed(row["done_span_s"]), empty)
        figures.append(RecomputedFigure(row["size"], "above 0 KB", "s", above, difference))
        if row["rate_mbps"]:
            size = _TASKS * megabytes(row["size"], BINARY)
            rate = computed(lambda seconds, size=size: rate_mbps(size, seconds), above)
            reason = "follows from neither size of a KB: 460 or 471 do"
            figures.append(
                RecomputedFigure(
                    row["size"],
                    "rate",
                    "Mbit/s",
                    Printed(row["rate_mbps"]),
                    rate,
                    reason if row["size"] == "100 KB" else "",
                )
            )
    return RecomputedTable(
        "5.5.5-2",
        "Ninf-G: output data, first 100 tasks (scenario 5)",
        "Above 0 KB = time from the first to the 100th Done less that at 0 KB; rate = 100 x size / "
        "that, with a KB of 1/1024 MB.",
        tuple(figures),
    )


def table_5_5_6_1() -> RecomputedTable:
    """Symphony, no data."""
    return _processing("5.5.6-1", "Symphony: 100 s of work in n tasks, no data (scenario 6)", {})


def table_5_5_6_2() -> RecomputedTable:
    """Symphony, 1 MB."""
    rate = float(figure_in_text("node_rate", "symphony")["value"])
    return _estimates("5.5.6-2", "Symphony: 100 s in n tasks, 1 MB each (scenario 6)", rate)


def table_5_5_6_3() -> RecomputedTable:
    """Ninf-G, no data."""
    return _processing(
        "5.5.6-3",
        "Ninf-G: 100 s of work in n tasks, no data (scenario 6)",
        {"200": "21.299 s - 19.641 s is 1.658 s"},
    )


def table_5_5_6_4() -> RecomputedTable:
    """Ninf-G, 1 MB."""
    rate = float(figure_in_text("link_rate", "ninfg")["value"])
    return _estimates("5.5.6-4", "Ninf-G: 100 s in n tasks, 1 MB each (scenario 6)", rate)


def _processing(name: str, title: str, exceptions: Mapping[str, str]) -> RecomputedTable:
    return RecomputedTable(
        name,
        title,
        "Processing = total - start-up.",
        tuple(
            RecomputedFigure(
                tasks_of(row),
                "processing",
                "s",
                Printed(row["processing_s"]),
                computed(
                    lambda total, start_up: total - start_up,
                    Printed(row["total_s"]),
                    Printed(row["start_up_s"]),
                ),
                exceptions.get(row["tasks"], ""),
            )
            for row in table(name)
        ),
    )


def _estimates(name: str, title: str, rate: float) -> RecomputedTable:
    figures = []
    for row in table(name):
        label = tasks_of(row)
        transfer = transfer_time(float(row["tasks"]), rate)
        # Of one task only, though with more tasks than cores several follow each other: the
        # report counts the later ones as hidden behind transfers.
        total = float(row["start_up_s"]) + float(row["sleep_s"]) + transfer
        figures += [
            RecomputedFigure(
                label, "transfer", "s", Printed(row["transfer_s"]), Computed.exactly(transfer)
            ),
            RecomputedFigure(
                label, "total", "s", Printed(row["predicted_s"]), Computed.exactly(total)
            ),
        ]
    return RecomputedTable(
        name,
        title,
        f"Transfer = tasks x 1 MB / {as_given(rate, 'Mbit/s')}; estimated total = start-up +"
        " sleep of one task + transfer.",
        tuple(figures),
    )


_GIGABIT = 1000.0
"""Mbit/s."""


def figures_in_text() -> RecomputedTable:
    """Rates, estimates and the rule of thumb."""
    ours = {
        ("whole_run_rate", "symphony"): rate_mbps(1200 * megabytes("100 KB", DECIMAL), 1.87),
        ("slides_rate", "symphony"): rate_mbps(300 * 10, 46.2),
        ("slides_rate", "ninfg"): rate_mbps(100 * 10, 9.7),
        ("slides_shared_10mb", "symphony"): 10 / (15 - 5),
        ("slides_shared_100mb", "symphony"): 100 / (95 - 5),
        ("link_rate", "ninfg"): _fitted_rate(),
        ("estimate_100kb", "symphony"): _two_way(0.1),
        ("estimate_1mb", "symphony"): _two_way(1.0),
        ("rule_100", ""): transfer_load(100, 10, _GIGABIT, 1.0),
        ("rule_200", ""): transfer_load(200, 10, _GIGABIT, 1.0),
        ("rule_400", ""): transfer_load(400, 10, _GIGABIT, 1.0),
        ("rule_400_1mb", ""): transfer_load(400, 1, _GIGABIT, 1.0),
    }
    figures = []
    for (key, system), value in ours.items():
        row = figure_in_text(key, system)
        label = f"{system}: {row['what']}" if system else row["what"]
        figures.append(
            RecomputedFigure(
                label,
                row["where"],
                row["unit"],
                Printed(row["value"]),
                Computed.exactly(value),
            )
        )
    return RecomputedTable(
        "text",
        "Figures in the text",
        "Rate = tasks x size / time; 835 Mbit/s is the line of least squares through 5.5.4-3; "
        "estimate = 5 s + (1 s + transfer there and back) x 4 rounds, with 0.1 s and 1 s for a "
        "transfer to 100 cores; rule of thumb: cores x size / rate, in seconds, is to be less than "
        "a task takes.",
        tuple(figures),
    )


def _two_way(transfer: float) -> float:
    """Seconds of 400 tasks of 1 s on 100 cores, with data in and out."""
    start_up, sleep, rounds = 5.0, 1.0, 4
    return start_up + (sleep + 2 * transfer) * rounds


def _fitted_rate() -> float:
    rows = table("5.5.4-3")
    sizes = np.array([100 * megabytes(row["size"], BINARY) for row in rows])
    seconds = np.array([float(row["start_minus_queue_s"]) for row in rows])
    return MEGABITS_PER_MEGABYTE / fit_line(sizes, seconds).slope
