"""What a user asks of `gridbench scenario`, and the reading of options that click cannot check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gridbench.engines.servers import Servers
from gridbench.errors import InputError
from gridbench.links.link_option import DEFAULT_LINK
from gridbench.links.rates import parse_rate
from gridbench.machine.policy import Policy
from gridbench.printing import Printing
from gridbench.scenario.grids import Choice
from gridbench.scenario.needs import WorkerPlace
from gridbench.scenario.plan import TimeLimits
from gridbench.scenario.workloads import Times


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioRequest:
    """What the user asked for."""

    scenarios: Sequence[int]
    engines: Sequence[str]
    choice: Choice = field(default_factory=Choice)
    times: Times = field(default_factory=Times)
    place: WorkerPlace = field(default_factory=WorkerPlace)
    grid: Path | None = None
    """A grid.toml, whose servers have the workers."""
    names: tuple[str, ...] = ()
    """Which of them; or URLs."""
    servers: Servers | None = None
    """The same, once they have been asked for their workers."""
    limits: TimeLimits = field(default_factory=TimeLimits)
    rounds: int | None = 1
    """How often each case is measured; None: as often as its outcome takes."""
    warm: bool = False
    check: bool = False
    start_timeout: float = 180.0
    folder: Path | None = None
    """None: one below `runs`, named after the time."""
    fresh: bool = False
    retry_failed: bool = False
    dry_run: bool = False
    policy: Policy = field(default_factory=Policy)
    """What to do if other programs use the machine."""
    printing: Printing = field(default_factory=Printing)


def place_of(nodes: int | None, link: str | None, *, servers: bool = False) -> WorkerPlace:
    """Where workers are, from `--nodes` and `--link`, or on servers that other options name.

    InputError for what cannot be meant.
    """
    if servers:
        if nodes is not None or link is not None:
            raise InputError(
                "--nodes and --link make links on this machine, where servers have no workers",
                remedy="leave them out, or leave out --grid and --server",
            )
        return WorkerPlace(servers=True)
    if nodes is None:
        if link is not None:
            raise InputError(
                "--link gives the rate of links, and there are no links",
                remedy="add --nodes K, the number of nodes behind such links",
            )
        return WorkerPlace()
    return WorkerPlace(nodes=nodes, rate=parse_rate("--link", link or DEFAULT_LINK))
