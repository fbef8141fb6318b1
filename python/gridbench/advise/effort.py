"""How much of a work is tried, from the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gridbench.errors import InputError
from gridbench.formats import as_given


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is tried."""

    rounds: int = 3
    """How often each split is run."""
    limit: float = 60.0
    """Seconds that a split may be expected to take; others are left out."""


def effort_of(*, trying: bool, rounds: int | None, limit: float | None) -> Effort | None:
    """What is to be tried, from the command line; None: nothing. InputError for nonsense."""
    if not trying:
        for option, value in (("--rounds", rounds), ("--try-limit", limit)):
            if value is not None:
                raise InputError(f"{option} is for what is tried", remedy="add --try")
        return None
    effort = Effort()
    if rounds is not None:
        effort = replace(effort, rounds=rounds)
    if limit is not None:
        if not (math.isfinite(limit) and limit > 0):
            raise InputError(
                f"--try-limit must be a number of seconds above 0, not {as_given(limit, '')}",
                remedy="give how long a run may be expected to take, such as 60",
            )
        effort = replace(effort, limit=limit)
    return effort
