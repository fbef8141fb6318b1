"""Table 5.5.3-1: the start-up of Ninf-G with Grid Engine, and the line through it."""

from __future__ import annotations

import numpy as np

from gridbench.analysis.scaling import fit_line
from gridbench.published.figures import Figure, Reproduced
from gridbench.published.printed import Computed, Printed, figure_in_text, table

_MOST_CORES = 100


def table_5_5_3_1() -> Reproduced:
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
    return Reproduced(
        "5.5.3-1",
        "Ninf-G with Grid Engine: start-up (scenario 3, from runs of scenario 6)",
        "Least squares over all eight rows of the table; mean and standard deviation of the four "
        "with 100 cores.",
        tuple(
            Figure(
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
