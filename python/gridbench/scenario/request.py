"""What a user asks of `gridbench scenario`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gridbench.scenario.grids import Choice
from gridbench.scenario.needs import Place
from gridbench.scenario.plan import Limits
from gridbench.scenario.workloads import Times


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for."""

    scenarios: Sequence[int]
    engines: Sequence[str]
    choice: Choice = field(default_factory=Choice)
    times: Times = field(default_factory=Times)
    place: Place = field(default_factory=Place)
    limits: Limits = field(default_factory=Limits)
    rounds: int = 1
    warm: bool = False
    check: bool = False
    start_timeout: float = 180.0
    folder: Path | None = None
    """None: one below `runs`, named after the time."""
    fresh: bool = False
    dry_run: bool = False
