"""What a user asks of `gridbench sync`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gridbench.machine.policy import Policy
from gridbench.printing import Printing
from gridbench.sync.hosts_file import Host, Placement
from gridbench.sync.record import Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where the workers are; by default on this machine."""

    hosts: tuple[Host, ...] = ()
    """Of a host file; they are reached by ssh."""
    grid: Path | None = None
    """A grid.toml, whose servers have the workers."""
    names: tuple[str, ...] = ()
    """Which of them; or URLs."""
    emulated: str | None = None
    """The kind of cluster that gridbench starts on this machine; None: none."""
    nodes: int = 4
    """Of that."""
    patience: float = 180.0
    """Seconds until all hosts have to be there."""

    def record(self) -> dict[str, object]:
        """For the header of results."""
        return {
            "hosts": {host.name: host.cores for host in self.hosts},
            "grid": None if self.grid is None else str(self.grid.resolve()),
            "servers": list(self.names),
            "emulated": self.emulated,
            "nodes": self.nodes if self.emulated else None,
        }


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
    policy: Policy = field(default_factory=Policy)
    """What to do if other programs use the machine."""
    printing: Printing = field(default_factory=Printing)
