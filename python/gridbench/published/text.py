"""Figures that follow from others in the text of the report and the slides."""

from __future__ import annotations

import numpy as np

from gridbench.analysis.scaling import fit_line
from gridbench.analysis.transfer import MEGABITS_PER_MEGABYTE, rate_mbps, transfer_load
from gridbench.published.figures import Figure, Reproduced
from gridbench.published.printed import (
    BINARY,
    DECIMAL,
    Computed,
    Printed,
    figure_in_text,
    megabytes,
    table,
)

_GIGABIT = 1000.0
"""Mbit/s."""


def figures_in_text() -> Reproduced:
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
            Figure(
                label,
                row["where"],
                row["unit"],
                Printed(row["value"]),
                Computed.exactly(value),
            )
        )
    return Reproduced(
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
