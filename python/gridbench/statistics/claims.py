"""What it takes to claim that one is ahead of another."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

ENOUGH = 2
"""Undisturbed rounds from which on a difference can be claimed."""


def excludes_equality(ratios: Sequence[float]) -> bool:
    """Whether the ratios of undisturbed rounds are enough, and all on one side of 1."""
    return len(ratios) >= ENOUGH and (min(ratios) > 1 or max(ratios) < 1)


def stands_out(ratios: Sequence[float], noise: float) -> bool:
    """Whether the ratios of undisturbed rounds say more than that the machine is noisy."""
    if not excludes_equality(ratios):
        return False
    ratio = statistics.median(ratios)
    return max(ratio, 1 / ratio) > noise
