"""How far the clocks of client and compute hosts can be trusted, from the stamps themselves.

A task is submitted before it computes, and comes back after it has ended. On the clock of its host,
which is `offset` ahead of the client's, that says, for each of its tasks:

    calc_out - retrieve  <=  offset  <=  calc_in - submit

The offset of a host thus lies between the largest of the left sides and the smallest of the right
ones. An engine may have compared the clocks by messages of its own; its stamps are then on the
client's clock already, and how far they may be off it narrows the interval (`clock_error`). Else
nothing is known but the stamps. Old clocks were kept by NTP, so that 0 is the best guess; where it
lies outside, clocks differ for sure, and the nearest possible offset is taken. How an interval is
shared between the way there and the way back, four stamps cannot tell.

Times that both ends took on one clock, such as the total, know of no offset. Theirs is only the
resolution of the stamps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gridbench.analysis.columns import Floats, Integers, seconds, succeeded, text
from gridbench.timeline import SCHEMA

_STAMPS = ("submit", "queued", "calc_in", "calc_out", "retrieve")
_FINEST = 1e-6
"""Seconds: what reading a clock and being scheduled to do so add, at the least."""
_FEWEST = 9
"""Stamps from which their resolution can be told."""


@dataclass(frozen=True, slots=True)
class Offset:
    """How far the clock of one host is ahead of the client's, seconds."""

    host: str
    tasks: int
    low: float
    """The smallest that its tasks allow."""
    high: float
    """The largest. Below `low` if the clocks have drifted against each other meanwhile."""

    @property
    def best(self) -> float:
        """0 if that is possible, else the nearest that is."""
        if self.low > self.high:
            return (self.low + self.high) / 2
        return min(max(0.0, self.low), self.high)

    @property
    def margin(self) -> float:
        """The offset lies within so much of `best`, on either side."""
        return max(abs(self.best - self.low), abs(self.high - self.best))


def offsets(table: pa.Table) -> list[Offset]:
    """The offset of each host, in order of their names. Hosts without stamped tasks are left out.

    A worker's first task is as good as any other here: what is late says nothing, as it can only
    widen the interval.
    """
    done = table.filter(pa.array(succeeded(table)))
    names, host = _hosts(done)
    before = seconds(done, "calc_in") - seconds(done, "submit")
    after = seconds(done, "calc_out") - seconds(done, "retrieve")
    known = np.isfinite(before) & np.isfinite(after)
    low, high = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    np.maximum.at(low, host[known], after[known])
    np.minimum.at(high, host[known], before[known])
    tasks = np.bincount(host[known], minlength=len(names))
    error = np.zeros(len(names))
    np.maximum.at(error, host[known], np.nan_to_num(errors(done)[known], nan=np.inf))
    narrow = np.maximum(low, -error) <= np.minimum(high, error)
    low = np.where(narrow, np.maximum(low, -error), low)
    high = np.where(narrow, np.minimum(high, error), high)
    ends = zip(names, tasks.tolist(), low.tolist(), high.tolist(), strict=True)
    found = [Offset(*one) for one in ends]
    return sorted((one for one in found if one.tasks), key=lambda one: one.host)


def corrected(table: pa.Table, known: list[Offset]) -> pa.Table:
    """The timeline with each host's stamps on the client's clock, by its best offset."""
    best = {offset.host: offset.best for offset in known if offset.best}
    if not best:
        return table
    names, host = _hosts(table)
    shift = np.array([best.get(name, 0.0) for name in names])[host]
    for name in ("calc_in", "calc_out"):
        moved = pa.array(seconds(table, name) - shift)
        table = table.set_column(SCHEMA.get_field_index(name), SCHEMA.field(name), moved)
    return table


def _hosts(table: pa.Table) -> tuple[list[str], Integers]:
    """The hosts, and the number of each row's among them."""
    codes = text(table, "host").combine_chunks().dictionary_encode()
    return codes.dictionary.to_pylist(), np.array(codes.indices, dtype=np.int64)


def errors(table: pa.Table) -> Floats:
    """By how much calc-in and calc-out of each row may be off the client's clock, shape (rows,),
    seconds; NaN where the engine does not tell, as in older timelines."""
    if "clock_error" not in table.column_names:
        return np.full(table.num_rows, np.nan)
    return seconds(table, "clock_error")


def largest_error(table: pa.Table) -> float:
    """The largest of them among the tasks that ended well, seconds; NaN if none is known."""
    known = errors(table)[succeeded(table)]
    known = known[np.isfinite(known)]
    return float(known.max()) if len(known) else float("nan")


def resolution(table: pa.Table) -> float:
    """The step of which all stamps are whole multiples: 1 s, 1 ms or 1 us; 0 if there is none."""
    stamps = np.concatenate([seconds(table, name) for name in _STAMPS])
    stamps = stamps[np.isfinite(stamps)]
    if len(stamps) < _FEWEST:
        return 0.0
    for step in (1.0, 1e-3, 1e-6):
        # Not closer to whole numbers than a float of some hundred seconds can be.
        if np.allclose(stamps / step, np.round(stamps / step), rtol=0, atol=1e-3):
            return step
    return 0.0


def one_clock(record: dict[str, Any], table: pa.Table) -> bool:
    """Whether client and workers were on one machine, whose processes all read the same clock."""
    machine = record.get("machine")
    client = machine.get("host") if isinstance(machine, dict) else None
    hosts = set(text(table, "host").unique().to_pylist()) - {""}
    return client is not None and hosts <= {client}


def clock_margin(table: pa.Table, *, same: bool) -> float:
    """Seconds within which differences between stamps of client and host are certain.

    `same`: they were taken on one clock. Else it is that of the least certain host.
    """
    step = max(resolution(table), _FINEST)
    if same:
        return step
    return max([step, *(offset.margin for offset in offsets(table))])
