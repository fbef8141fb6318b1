"""Where a benchmark's work is done, as its user says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gridbench.hosts.hosts_file import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which hosts; by default this machine."""

    hosts: tuple[Host, ...] = ()
    """Of a host file; they are reached by ssh."""
    grid: Path | None = None
    """A grid.toml, whose servers are used."""
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
