"""The timeline: one row per task of a run. Every benchmark writes it, every analysis reads it.

Stamps are seconds on the client's time base; t = 0 is when the client asked for its
workers (cold start) or when all had answered (warm start). NaN: not known.
"""

from __future__ import annotations

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("tid", pa.int64()),
        ("sleep", pa.float64()),  # seconds asked for, scaled
        ("slept", pa.float64()),  # seconds really slept
        ("submit", pa.float64()),  # client hands the task over
        ("queued", pa.float64()),  # engine took it, where the engine tells
        ("calc_in", pa.float64()),  # task starts computing
        ("calc_out", pa.float64()),  # task has its output ready
        ("retrieve", pa.float64()),  # result in the client's hand
        ("worker", pa.string()),
        ("host", pa.string()),
        ("bytes_in", pa.int64()),
        ("bytes_shared", pa.int64()),
        ("bytes_out", pa.int64()),
        ("status", pa.string()),  # "ok", or one line that says what happened
        ("clock_error", pa.float64()),  # calc_in and calc_out may be so far off the client's clock
    ]
)

ADDED = ("clock_error",)
"""Columns that older timelines do not have. Their values are then not known."""
