"""Throughput over time: whether it was steady, and what happened when a member was killed.

Only windows count in which all clients still had something to do: a client that has ended makes
fewer operations, and says nothing of the data grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridbench.datagrid.record import DataGridCase

FEWEST = 10
"""Fewest windows for a conclusion about them."""
WITHIN = 0.1
"""By so much of the mean the halves of a steady run may differ; also what may be missing of the
level of before to speak of recovery."""
SURE = 3.0
"""Standard errors: a smaller difference of the halves is scatter."""
HOLDS = 0.5
"""Seconds for which a recovered throughput has to hold."""
_NOTICED = 1.0
"""Seconds within which a killed member makes itself felt, if it does."""
_BEFORE = 3
"""Windows before a kill, from which on the level of before is known."""


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Whether the throughput of the measured part was the same from begin to end."""

    windows: int
    """In which all clients worked."""
    change: float
    """Of the second half against the first, as a share of the mean; NaN: not known."""
    steady: bool | None
    """None: there are too few windows to tell."""


@dataclass(frozen=True, slots=True)
class Dip:
    """What the death of members did to throughput, in operations per second."""

    killed_at: float
    """The first kill, seconds since all clients began."""
    level: float
    """The median before."""
    lowest: float
    """The least of a window until recovery."""
    recovered: float | None
    """Seconds from the kill until 90 % of the level held for half a second; 0: there was no dip.
    None: not before the end of the run."""
    stalled: float
    """Seconds until recovery in which no operation ended."""
    errors: int
    """Operations that failed until recovery."""

    @property
    def depth(self) -> float:
        """The share of the level that was missing at the lowest."""
        return max(0.0, 1 - self.lowest / self.level)


def working(case: DataGridCase) -> int:
    """The number of windows in which all clients had something to do."""
    last: dict[int, float] = {}
    for client, ended in zip(case.tasks.client, case.tasks.ended, strict=True):
        last[client] = max(last.get(client, 0.0), ended)
    if not last:
        return 0
    # A window that ends with the first client is one of them, however the division comes out.
    whole = math.floor(min(last.values()) / case.windows.length + 1e-6)
    return min(len(case.windows.operations), whole)


def steadiness(case: DataGridCase) -> Steadiness:
    """The halves of the measured part compared."""
    rates = _rates(case)
    if rates.size < FEWEST or not rates.mean() > 0:
        return Steadiness(rates.size, math.nan, None)
    half = rates.size // 2
    first, second = rates[:half], rates[-half:]
    change = float((second.mean() - first.mean()) / rates.mean())
    scatter = float(np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / half) / rates.mean())
    return Steadiness(rates.size, change, abs(change) <= max(WITHIN, SURE * scatter))


def dip(case: DataGridCase) -> Dip | None:
    """The dip after the first kill; None if no member was killed within the measured part, or if it
    is not known what was before."""
    kills = [one.killed_at for one in case.members if one.killed_at is not None]
    rates, length = _rates(case), case.windows.length
    if not kills:
        return None
    at = math.floor(min(kills) / length)
    if at < _BEFORE or at >= rates.size:
        return None
    level = float(np.median(rates[:at]))
    if not level > 0:
        return None
    # Errors may come after the first client has ended, and belong to the dip nevertheless.
    errors = np.asarray(case.windows.errors, dtype=np.int64)
    enough = (1 - WITHIN) * level
    looked = rates[at : at + math.ceil(_NOTICED / length)]
    if not (looked < enough).any():
        return Dip(min(kills), level, float(looked.min()), 0.0, 0.0, int(errors[at : at + 1].sum()))
    first = at + int(np.argmax(looked < enough))
    back = _held(rates, first, enough, max(1, round(HOLDS / length)))
    until = rates.size if back is None else back
    return Dip(
        killed_at=min(kills),
        level=level,
        lowest=float(rates[first:until].min()),
        recovered=None if back is None else max(0.0, back * length - min(kills)),
        stalled=float((rates[first:until] == 0).sum() * length),
        errors=int(errors[at : None if back is None else back].sum()),
    )


def _rates(case: DataGridCase) -> NDArray[np.float64]:
    """Operations per second in the windows in which all clients worked."""
    made = np.asarray(case.windows.operations[: working(case)], dtype=np.float64)
    return made / case.windows.length


def _held(rates: NDArray[np.float64], first: int, enough: float, windows: int) -> int | None:
    """The first window from `first` on that has enough, as the mean of it and the next ones has."""
    for at in range(first, rates.size - windows + 1):
        if rates[at] >= enough and rates[at : at + windows].mean() >= enough:
            return at
    return None
