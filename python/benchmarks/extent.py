"""How much is measured."""

from __future__ import annotations

from enum import Enum


class Extent(Enum):
    """From a look whether all works to figures that are kept."""

    TRIAL = "trial"
    USUAL = "usual"
    FULL = "full"
