"""Tables 5.5.5-1 and -2: data that each task returns."""

from __future__ import annotations

from gridbench.analysis.transfer import rate_mbps
from gridbench.published.blocks import HOW, block_figures
from gridbench.published.figures import Figure, Reproduced
from gridbench.published.printed import BINARY, Printed, computed, megabytes, table, without_data

_TASKS = 100


def table_5_5_5_1() -> Reproduced:
    """Compute nodes to management node to client."""
    return Reproduced(
        "5.5.5-1",
        "Symphony: output data (scenario 5)",
        HOW,
        block_figures("5.5.5-1", {}),
    )


def table_5_5_5_2() -> Reproduced:
    """Compute nodes to client."""
    rows = table("5.5.5-2")
    empty = without_data(rows, "done_span_s")[""]
    figures = []
    for row in rows:
        if row["size"] == "0 KB":
            continue
        above = Printed(row["above_empty_s"])
        difference = computed(lambda span, empty: span - empty, Printed(row["done_span_s"]), empty)
        figures.append(Figure(row["size"], "above 0 KB", "s", above, difference))
        if row["rate_mbps"]:
            size = _TASKS * megabytes(row["size"], BINARY)
            rate = computed(lambda seconds, size=size: rate_mbps(size, seconds), above)
            reason = "follows from neither size of a KB: 460 or 471 do"
            figures.append(
                Figure(
                    row["size"],
                    "rate",
                    "Mbit/s",
                    Printed(row["rate_mbps"]),
                    rate,
                    reason if row["size"] == "100 KB" else "",
                )
            )
    return Reproduced(
        "5.5.5-2",
        "Ninf-G: output data, first 100 tasks (scenario 5)",
        "Above 0 KB = time from the first to the 100th Done less that at 0 KB; rate = 100 x size / "
        "that, with a KB of 1/1024 MB.",
        tuple(figures),
    )
