"""Table 5.5.1-1: shared data to all cores."""

from __future__ import annotations

from gridbench.analysis.transfer import rate_mbps
from gridbench.published.figures import Figure, Reproduced
from gridbench.published.printed import BINARY, Printed, computed, megabytes, table

_CORES = 100


def table_5_5_1_1() -> Reproduced:
    """Transfer times and rates of scenario 1."""
    figures = []
    for row in table("5.5.1-1"):
        label = f"{row['system']}, {row['size']}"
        transfer = Printed(row["transfer_s"])
        start, start_up = Printed(row["compute_start_s"]), Printed(row["start_up_s"])
        rest = computed(lambda start, start_up: start - start_up, start, start_up)
        figures.append(Figure(label, "transfer", "s", transfer, rest))
        if row["rate_mbps"]:
            size = _CORES * megabytes(row["size"], BINARY)
            rate = computed(lambda seconds, size=size: rate_mbps(size, seconds), transfer)
            figures.append(Figure(label, "rate", "Mbit/s", Printed(row["rate_mbps"]), rate))
    return Reproduced(
        "5.5.1-1",
        "Shared data to 100 cores (scenario 1)",
        "Transfer = start of the last core - start-up; rate = 100 x size / transfer, with a KB of "
        "1/1024 MB. Symphony's start-up of 5 s is the report's assumption.",
        tuple(figures),
    )
