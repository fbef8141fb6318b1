"""Some of many things, for pictures that have no room for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def evenly(items: Sequence[T], most: int) -> list[T]:
    """At most so many of them, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(n * (len(items) - 1) / (most - 1))] for n in range(most)]
