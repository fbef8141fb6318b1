"""What it takes to claim that one is ahead of another."""

from __future__ import annotations

from collections.abc import Sequence

ENOUGH = 2
"""Undisturbed rounds from which on a difference can be claimed."""


def excludes_equality(ratios: Sequence[float]) -> bool:
    """Whether the ratios of undisturbed rounds are enough, and all on one side of 1."""
    return len(ratios) >= ENOUGH and (min(ratios) > 1 or max(ratios) < 1)
