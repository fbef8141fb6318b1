"""How long a part of this area may take."""

from __future__ import annotations

from benchmarks.extent import Extent

BUDGET = {Extent.TRIAL: 300.0, Extent.USUAL: 300.0, Extent.FULL: 600.0}
"""Seconds, for all rounds of all cases."""
