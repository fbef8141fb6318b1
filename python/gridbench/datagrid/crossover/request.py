"""What a user asks of `gridbench data crossover`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gridbench.machine.policy import Policy
from gridbench.printing import Printing
from gridbench.quantities import MB

SIZES = tuple(n * MB for n in (1, 4, 16, 64, 256))
CORES = (1, 2, 4, 8, 16)
ENGINES = ("gridrpc-python", "process-pool")
DATA_GRIDS = ("embedded",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for."""

    engines: Sequence[str] = ENGINES
    """Compute grids."""
    data_grids: Sequence[str] = DATA_GRIDS
    sizes: Sequence[int] = SIZES
    """Bytes, ascending."""
    cores: Sequence[int] = CORES
    """Readers, ascending."""
    object_size: int = MB
    """Bytes of the objects that a data grid has the data in."""
    members: int = 3
    """Of a data grid that has them."""
    rounds: int = 3
    warm_up: float = 5.0
    """Seconds at most that clients of a data grid warm up before they read."""
    limit: float = 120.0
    """Seconds that one measurement may take."""
    seed: int = 1
    folder: Path | None = None
    """None: one below `runs`, named after the time."""
    fresh: bool = False
    retry_failed: bool = False
    policy: Policy = field(default_factory=Policy)
    """What to do if other programs use the machine."""
    printing: Printing = field(default_factory=Printing)
