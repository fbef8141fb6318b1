"""What the process that runs a case is asked for, and what it answers: JSON both ways."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gridbench.engines.servers import Servers
from gridbench.machine.load import Load, Moment
from gridbench.run.client import EngineFacts
from gridbench.workload.body import SLEEP


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOrder:
    """One case on one engine."""

    engine: str
    setup: Path
    folder: Path
    """Where the run goes; it must exist and be empty."""
    time_scale: float
    body: str = SLEEP
    """What tasks do: see `gridbench.workload.body`."""
    warm: bool
    check: bool
    start_timeout: float
    facts: EngineFacts
    """What the engine has said of itself."""
    namespaces: tuple[str, ...] = ()
    """Network namespaces for the workers, in turn; none: they are beside the client."""
    began: Moment | None = None
    """The machine's clocks before the process was started that is to run it, or earlier."""
    analysed: bool = True
    """What was measured is looked at in that process; else by who has ordered it."""
    servers: Servers | None = None
    """Servers that have the workers, of which as many as the case has cores are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How it went."""

    status: Literal["done", "failed", "invalid", "interrupted"]
    reason: str = ""
    total_s: float | None = None
    ideal_s: float | None = None
    returned: int = 0
    """Tasks that came back."""
    figures: dict[str, float] = field(default_factory=dict)
    load: Load | None = None
    """What others did while it was measured; None: it was not."""
