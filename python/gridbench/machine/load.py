"""How many processors others used while something was measured.

Counted is the time for which the processors that we may use were not idle, less what our own
processes used. What the hypervisor took away is not idle time either, so it counts as others' work,
and is shown apart. The kernel's work for the network does not count: a run behind links makes most
of it, and no process is charged for it. Where a control group limits us to a part of a node,
neighbours count only for as long as our own tasks waited for a processor.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gridbench.machine.available import available_processors, control_group, shares_processors
from gridbench.machine.processes import Process, processes, seconds_of, whose
from gridbench.machine.unused import unused_of

_GRAIN = 0.03  # seconds; the clocks tick in hundredths, so that less says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What others did meanwhile, in processors."""

    seconds: float
    """How long that was looked at."""
    others: float
    """All that was not idle, and is not known to be ours."""
    stolen: float = 0.0
    """The part of it that the hypervisor gave to other machines."""
    at_least: float = 0.0
    """What is known to be others': processes that are still there, and the hypervisor."""
    apart: bool = False
    """We have, or may have, workers on this machine that do not descend from us, so that the truth
    is between `at_least` and `others`."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A reading of the machine's clocks, in seconds."""

    at: float
    """Monotonic clock."""
    not_idle: float
    """All processors that we may use together; only differences mean something."""
    own: float
    """Processor time of the process asked for and all that work for it, ended ones too."""
    stolen: float = 0.0
    """What the hypervisor took away."""
    seen: float = 0.0
    """Processor time of others' processes that there are now."""
    apart: bool = False
    """See `Load`."""
    waited: float | None = None
    """Processor time that others took from us at most, if a control group tells."""

    def load_since(self, before: Moment) -> Load:
        """Others' work since then."""
        passed = self.at - before.at
        stolen = self.stolen - before.stolen
        others = (self.not_idle - before.not_idle) - (self.own - before.own)
        if self.waited is not None and before.waited is not None:
            others = min(others, self.waited - before.waited)
        apart = self.apart or before.apart
        if passed <= 0 or others < _GRAIN:
            return Load(seconds=max(0.0, passed), others=0.0, apart=apart)
        at_least = max(0.0, self.seen - before.seen) + stolen
        return Load(
            seconds=passed,
            others=others / passed,
            stolen=min(others, stolen) / passed,
            at_least=min(others, at_least) / passed,
            apart=apart,
        )


def reading(pid: int, table: Mapping[int, Process] | None = None) -> Moment:
    """The clocks now; `pid` is the process whose family is ours. `table`: all processes, if they
    have been looked up just now."""
    group = control_group()
    processors = available_processors(group)
    left = unused_of(Path("/proc/stat").read_text(encoding="ascii"), processors)
    at = time.monotonic()
    if table is None:
        table = processes()
    known = whose(table, pid)
    everywhere = len(processors) == os.cpu_count()
    waited = group.waited
    if waited is not None:  # some task waited; all of them may have
        waited = None if math.isinf(group.limit) else waited * len(processors)
    return Moment(
        at=at,
        not_idle=at * len(processors) - (left.idle + left.waiting + left.network),
        own=seconds_of(table, known.ours),
        stolen=left.stolen,
        seen=sum(
            table[one].used + table[one].waited_for
            for one in known.others
            if everywhere or shares_processors(one, processors)
        ),
        apart=known.apart,
        waited=waited,
    )
