"""Tables 5.5.2-1 and 5.5.4-1 to -4: data to each task."""

from __future__ import annotations

from gridbench.analysis.transfer import rate_mbps, transfer_time
from gridbench.published.blocks import HOW, block_figures, rate_of_step
from gridbench.published.figures import Figure, Reproduced
from gridbench.published.printed import (
    BINARY,
    Computed,
    Printed,
    computed,
    figure_in_text,
    megabytes,
    table,
    without_data,
)

_CORES = 100


def table_5_5_2_1() -> Reproduced:
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
            Figure(row["size"], "transfer", "s", transfer, needed),
            Figure(row["size"], "rest", "s", Printed(row["difference_s"]), rest),
        ]
    return Reproduced(
        "5.5.2-1",
        "Ninf-G: starting a task, beside its transfer (scenario 2)",
        "Transfer = 100 x size / 880 Mbit/s, with a KB of 1/1024 MB; rest = (Start - Queue) - "
        "transfer.",
        tuple(figures),
    )


def table_5_5_4_1() -> Reproduced:
    """Client to management node."""
    return Reproduced(
        "5.5.4-1",
        "Symphony: task data, client to management node (scenario 4)",
        "Rate = size / smallest difference of successive submit times, with a KB of 1/1000 MB.",
        tuple(
            Figure(
                f"{row['size']}, {row['tasks']} tasks",
                "rate",
                "Mbit/s",
                Printed(row["rate_mbps"]),
                rate_of_step(row),
            )
            for row in table("5.5.4-1")
        ),
    )


def table_5_5_4_2() -> Reproduced:
    """Management node to compute nodes."""
    return Reproduced(
        "5.5.4-2",
        "Symphony: task data, management node to nodes (scenario 4)",
        HOW,
        block_figures(
            "5.5.4-2",
            {"1 MB, 400 tasks": "10.2 is 4.08 s / 400: the span at 0 KB is not taken off"},
        ),
    )


def table_5_5_4_3() -> Reproduced:
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
                Figure(row["size"], "above 0 KB", "s", above, difference),
                Figure(row["size"], "rate", "Mbit/s", Printed(row["rate_mbps"]), achieved),
            ]
        line = Computed.exactly(fixed + transfer_time(size, rate))
        figures.append(Figure(row["size"], "the line", "s", Printed(row["predicted_s"]), line))
    return Reproduced(
        "5.5.4-3",
        "Ninf-G: task data, first 100 tasks (scenario 4)",
        "Above 0 KB = (Start - Queue) less that at 0 KB; rate = 100 x size / that; the line is "
        "0.145 s + 100 x size / 835 Mbit/s. A KB is 1/1024 MB.",
        tuple(figures),
    )


def table_5_5_4_4() -> Reproduced:
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
            Figure(row["size"], "above 0 KB", "s", Printed(row["above_empty_s"]), above),
            Figure(row["size"], "transfer", "s", Printed(row["transfer_per_task_s"]), each),
        ]
    return Reproduced(
        "5.5.4-4",
        "Ninf-G: task data, last 100 tasks (scenario 4)",
        "Above 0 KB = (Start - Queue) less that at 0 KB; transfer of one task = (Start - Queue of "
        "the first 100, in 5.5.4-3) / 100.",
        tuple(figures),
    )
