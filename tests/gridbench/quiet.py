"""Tests run beside each other, so that what they measure is disturbed."""

from __future__ import annotations

from dataclasses import replace

from gridbench.bench.points import Points


def as_if_quiet(points: Points) -> Points:
    """The same as if no other program had been at work."""
    return Points(replace(point, disturbed=False) for point in points.all)
