"""Functions of cases that processes of their own import, and that end or do not."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from benchmarks.figures import Values
from gridbench.bench.client import LimitReached


def two_then_nothing() -> Iterator[Values]:
    """Never ends."""
    yield {"first": 1.0}
    yield {"second": 2.0}
    signal.pause()


def stuck() -> Values:
    """What it would measure has not ended."""
    raise LimitReached("did not end in 5 s: 3 of 7 done")


def one() -> Values:
    """Ends at once."""
    return {"s": 1.0}
