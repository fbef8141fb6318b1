"""What is measured: items, the sessions that they are measured in, how often, in which order.

A session is one fresh client process that starts an engine at most once and measures items with
it, one after the other. Rounds are outermost, so that a run that is cut off has all engines; within
a round the sessions come in random order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gridbench.engines.servers import Servers


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One quantity, or a few that are found together, of one engine: it gives a point."""

    workload: str
    engine: str = ""
    """The name it is shown under; more than one can come from one session."""
    measure: str
    """MODULE:FUNCTION."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """What tells it from others of its workload."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """For the function."""
    seconds: float
    """How long it takes, about."""
    repeatable: bool = True
    """Whether the same process can measure it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One client process."""

    name: str
    engine: str = ""
    """Whose environment it runs in. Without one, functions are called with their arguments alone,
    and not with a `Client`, and can take down what they have made when they are cut off."""
    label: str = ""
    """The engine as it is shown."""
    place: str = ""
    """MODULE:CLASS of the driver; empty without one."""
    workers: int = 0
    servers: Servers | None = None
    """Those that have the workers; None: this machine."""
    imports: tuple[str, ...] = ()
    """Modules that are loaded before anything is measured."""
    items: tuple[Item, ...]
    start_seconds: float = 0.0
    """How long the process and the engine take to start and to end, about."""
    rounds: int = 1
    left_out: str = ""
    """Why a run of this size does without it; it is then not run."""

    @property
    def seconds(self) -> float:
        """How long it takes, about."""
        return self.seconds_of(self.items)

    def seconds_of(self, items: Sequence[Item]) -> float:
        """How long these of its items take, about."""
        return self.start_seconds + sum(item.seconds for item in items) if items else 0.0


def order_of(sessions: Sequence[Session], number: int, seed: int) -> list[Session]:
    """The sessions of round `number`, from 0, in the order in which they run."""
    due = [session for session in sessions if number < session.rounds]
    random.Random(f"{seed} {number}").shuffle(due)
    return due
