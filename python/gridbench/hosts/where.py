"""Where a benchmark's work is done, as its user says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gridbench.errors import InputError
from gridbench.hosts.hosts_file import Host, read_hosts


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


def chosen(
    *,
    hosts: Path | None,
    grid: Path | None,
    servers: tuple[str, ...] | None,
    emulate: str | None,
    nodes: int | None,
    patience: float | None,
) -> Where:
    """What a user chose; of what is None, or empty, nothing was said. InputError if one choice
    contradicts another, or for a host file that cannot be read."""
    ways = [
        name
        for name, said in (
            ("--hosts", hosts),
            ("--grid and --server", grid or servers),
            ("--emulate", emulate),
        )
        if said
    ]
    if len(ways) > 1:
        raise InputError(
            f"{' and '.join(ways)} both say which hosts are used", remedy="choose one of them"
        )
    if nodes is not None and emulate is None:
        raise InputError(
            "--nodes is of the cluster that --emulate starts, and there is none",
            remedy="add --emulate ssh, slurm or gridengine",
        )
    return Where(
        hosts=() if hosts is None else read_hosts(hosts),
        grid=grid,
        names=servers or (),
        emulated=emulate,
        nodes=nodes or 4,
        patience=patience or 180.0,
    )
