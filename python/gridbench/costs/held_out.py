"""How wrong a model is about cases that it was not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

EACH = "each case in turn"
"""A way of holding cases out."""

C = TypeVar("C")
M = TypeVar("M")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """The errors of one way of holding cases out."""

    what: str
    errors: tuple[float, ...]
    """Predicted less measured, as a share of the measured."""

    @property
    def typical(self) -> float:
        """The median of their sizes."""
        return float(np.median(np.abs(self.errors)))

    @property
    def largest(self) -> float:
        """Of their sizes."""
        return float(np.abs(self.errors).max())


def models_without(
    cases: Sequence[C], parts: Sequence[Sequence[C]], fit: Callable[[Sequence[C]], M | None]
) -> list[tuple[C, M]]:
    """Each case of the parts, with the model that is fitted to all cases but those of its part;
    empty if too few are left for one of them."""
    found: list[tuple[C, M]] = []
    for part in parts:
        model = fit([case for case in cases if case not in part])
        if model is None:
            return []
        found += [(case, model) for case in part]
    return found
