"""What `gridbench data` measures, and with how much memory and warm-up."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from gridbench.datagrid.options import DataGridParameters
from gridbench.datagrid.workload import Workload
from gridbench.formats import counted
from gridbench.hosts.where import Where
from gridbench.schema import record_of

if TYPE_CHECKING:
    from gridbench.datagrid.engines.engine import Engine

MB = 1 << 20
LEAST_MEMORY, MOST_MEMORY = 128 * MB, 2048 * MB
"""Of a member, if the user says nothing."""
_SHARE = 4  # a quarter of what is available is for members
_ELSEWHERE = 1024 * MB  # of a member on hosts whose memory nobody has told


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUpLimits:
    """How long tasks' operations are made before the measurement."""

    least: float = 2.5
    """Seconds."""
    most: float = 20.0
    """Seconds, if throughput does not become steady before."""
    window: float = 0.5
    """Seconds over which throughput is taken."""
    within: float = 0.1
    """So much of their mean the last windows may differ from it, to be steady; or by what so few
    operations scatter."""

    @classmethod
    def of(cls, most: float) -> WarmUpLimits:
        """That of so many seconds at most: steady needs five windows, however short."""
        return cls(least=min(2.5, most), most=most, window=min(0.5, most / 5))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataGridWork:
    """The workloads that are measured, on which data grids and where."""

    name: str = "data"
    """Of the folder of results, if the user names none."""
    engines: tuple[Engine, ...]
    """No two of the same name."""
    workloads: tuple[Workload, ...]
    parameters: DataGridParameters
    warm_up: WarmUpLimits | None = field(default_factory=WarmUpLimits)
    """None: what starting costs is in the measurement."""
    available: int
    """Bytes of memory of this machine that could be used when it was asked for."""
    where: Where = field(default_factory=Where)

    @property
    def elsewhere(self) -> bool:
        """Whether the members are on hosts whose memory is not this machine's."""
        return bool(self.where.hosts or self.where.grid or self.where.names)

    def memory_of(self, members: int) -> int:
        """Bytes of each of so many members: what the user says, or else what the machine has."""
        if self.parameters.member_memory is not None:
            return self.parameters.member_memory
        return _ELSEWHERE if self.elsewhere else default_member_memory(self.available, members)

    def cautions(self) -> list[str]:
        """What the user may not have meant, in whole sentences, each once."""
        found = [told for one in self.workloads for told in one.cautions()]
        for members in sorted({one.parameters.mnodes for one in self.workloads}):
            if members <= self.parameters.backups and any(
                one.described.members for one in self.engines
            ):
                held = "is 1 copy" if members == 1 else f"are {members} copies"
                found.append(f"On {counted(members, 'member')} there {held} of each object in all.")
        return list(dict.fromkeys(found))

    def record(self) -> dict[str, object]:
        """For the header of results: what all of their cases have in common, and no case tells."""
        warm_up = None if self.warm_up is None else asdict(self.warm_up)
        return {"warm_up": warm_up, **record_of(self.parameters), "where": self.where.record()}


def default_member_memory(available: int, members: int) -> int:
    """Bytes of each of so many members if the user says nothing: the largest power of two that
    leaves three quarters of what is available, from 128 MB to 2 GB. A case that goes on later finds
    the same, unless the machine has changed much."""
    share = available // _SHARE // max(1, members)
    return min(MOST_MEMORY, max(LEAST_MEMORY, 1 << max(0, share.bit_length() - 1)))
