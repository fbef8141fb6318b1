"""What a user asks of `gridbench sync`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gridbench.hosts.hosts_file import Placement
from gridbench.hosts.where import Where
from gridbench.machine.policy import Policy
from gridbench.printing import Printing
from gridbench.sync.record import Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for."""

    task: str
    """As the user named it."""
    program: str
    """Its file, its name on PATH, or gridbench.sync.tasks.PROGRAM."""
    arguments: tuple[str, ...] = ()
    """With placeholders."""
    workers: tuple[int, ...] = ()
    """A sweep; none: as many as the hosts have cores."""
    parameters: tuple[str, ...] = ("",)
    repeats: int = 3
    starts: Sequence[Start] = ("entry",)
    timeout: float = 600.0
    """Seconds that a round may take."""
    directory: str = "."
    """That each task runs in, with placeholders."""
    placement: Placement = "spread"
    oversubscribe: bool = False
    """Allow more workers than cores also on hosts."""
    watched: tuple[str, ...] = ()
    """Names of programs whose processor time is told."""
    where: Where = field(default_factory=Where)
    folder: Path | None = None
    """None: one below `runs`, named after the time."""
    fresh: bool = False
    retry_failed: bool = False
    policy: Policy = field(default_factory=Policy)
    """What to do if other programs use the machine."""
    printing: Printing = field(default_factory=Printing)
