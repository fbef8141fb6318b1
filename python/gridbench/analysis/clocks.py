"""How far the clocks of client and compute hosts can be trusted, from the stamps themselves.

A task is submitted before it computes, and comes back after it has ended. On the clock of its host,
which is `offset` ahead of the client's, that says, for each of its tasks:

    calc_out - retrieve  <=  offset  <=  calc_in - submit

The offset of a host thus lies between the largest of the left sides and the smallest of the right
ones. An engine may have compared the clocks by messages of its own; its stamps are then on the
client's clock already, and how far they may be off it narrows the interval (`clock_error`).

Else nothing is known but the stamps. A task may wait long before it computes, so that only return
times are short: the least of them is about the same for all hosts. What it seems to differ by is
their offset, also of a clock that is behind, which breaks no law. How long that least return is, by
which all clocks could be moved together, lies between nothing and the shortest time there and back;
and clocks are as often ahead as behind. Where a line below the return times slopes, the clock
drifts (`least_returns`). Old clocks were kept by NTP: where 0 is likely enough, nothing is moved.

Times that both ends took on one clock, such as the total, know of no offset. Theirs is only the
resolution of the stamps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gridbench.analysis.columns import (
    Booleans,
    Floats,
    Integers,
    numbered,
    seconds,
    succeeded,
    text,
)
from gridbench.timeline import SCHEMA

_FEWEST_RETURNS = 10
"""Tasks that a host needs before its clock drift can be estimated."""
HIDDEN = 3.0
"""A drift shows if it moves the clock by so many times the usual distance from the line."""
_LARGEST = 0.02
"""Seconds per second: no clock is so wrong, and what looks like it is something else."""
_MANY = 20
"""Tasks from which chance makes no slope. With fewer it takes some hosts in which one shows."""
_SOME = 0.1
"""Of the hosts: in one of a hundred, chance makes a slope of so few tasks."""
_NEARLY_ALL = 0.9
"""If so many hosts have the same slope it is the client that takes results more slowly, or its own
clock, and no host's drift."""
_NEEDED = ("submit", "calc_in", "calc_out", "retrieve")
_STAMPS = (*_NEEDED, "queued")
_FINEST = 1e-6
"""Seconds: what reading a clock and being scheduled to do so add, at the least."""
_CLOSE = 1e-9
"""Seconds by which a stamp may be off a multiple of a step: no closer to it can a float of some
hundred seconds always be."""
_FEWEST = 9
"""Fewest stamps that determine their resolution."""
_FEW = 5
"""Fewest returns, or hosts, that determine their scatter."""
_SEVERAL = 3
"""Fewest hosts that show whether clocks are as often ahead as behind."""
_LIKELY = 3.0
"""A clock that differs by no more than so many times the scatter of returns may be right."""
_MAD = 1.4826
"""Times the median absolute deviation is the standard deviation, of a normal distribution."""
_OF_MEDIAN = 1.2533
"""The standard error of a median by that of a mean."""
_QUANTILE = 1.96


@dataclass(frozen=True, slots=True)
class ReturnLines:
    """Of each host: `level` + `slope` * (t - `middle`); shape (hosts,) each."""

    level: Floats
    slope: Floats
    middle: Floats

    def at(self, host: Integers, times: Floats) -> Floats:
        """Their heights for rows of these hosts at these times."""
        return self.level[host] + self.slope[host] * (times - self.middle[host])


def least_returns(host: Integers, times: Floats, returns: Floats, hosts: int) -> ReturnLines:
    """ReturnLines below the return times (seconds, with the host's offset in them) of the rows.

    All arrays have shape (rows,). A host without rows has a level of infinity.
    """
    level, slope, middle = np.full(hosts, np.inf), np.zeros(hosts), np.zeros(hosts)
    np.minimum.at(level, host, returns)
    of_hosts = rows_of_hosts(host, times, hosts)
    tried = {
        number: _drift(times[rows], returns[rows])
        for number, rows in enumerate(of_hosts)
        if len(rows) >= _FEWEST_RETURNS
    }
    found = {number: line for number, line in tried.items() if line is not None}
    if not _common(np.array([slope_ for _, slope_, _ in found.values()]), len(tried)):
        for number, line in found.items():
            if len(of_hosts[number]) >= _MANY or len(found) > _SOME * len(tried):
                level[number], slope[number], middle[number] = line
    return ReturnLines(level, slope, middle)


def rows_of_hosts(host: Integers, times: Floats, hosts: int) -> list[Integers]:
    """The rows of each host, in the order of their times."""
    order = np.lexsort((times, host))
    # Of no hosts there is one part, too.
    return np.split(order, np.searchsorted(host[order], np.arange(1, hosts)))[:hosts]


def _drift(times: Floats, returns: Floats) -> tuple[float, float, float] | None:
    """Level, slope and middle of the line below these points, rising in time; None if it is flat as
    far as one can see."""
    length = float(times[-1] - times[0])
    if length <= 0:
        return None
    hull = _lower_hull(times, returns)
    middle = float(times.mean())
    left = int(np.searchsorted(times[hull[1:-1]], middle))
    first, last = hull[left], hull[left + 1]
    slope = float((returns[last] - returns[first]) / (times[last] - times[first]))
    level = float(returns[first] + slope * (middle - times[first]))
    above = returns - level - slope * (times - middle)
    usual = float(np.median(above))
    # A line between two points says little: it has to bring the others down as well.
    flat = float(np.median(returns - returns.min()))
    shows = abs(slope) * length > HIDDEN * usual and usual < flat / 2
    return (level, slope, middle) if shows and abs(slope) <= _LARGEST else None


def _lower_hull(x: Floats, y: Floats) -> Integers:
    """Indices of the corners of the lower convex hull; `x` rises, and of equal ones the lowest
    counts."""
    stored: list[int] = []
    xs, ys = x.tolist(), y.tolist()
    order = np.lexsort((y, x))
    _, lowest = np.unique(x[order], return_index=True)
    for point in order[lowest].tolist():
        while len(stored) > 1:
            a, b = stored[-2], stored[-1]
            turn = (xs[b] - xs[a]) * (ys[point] - ys[a]) - (ys[b] - ys[a]) * (xs[point] - xs[a])
            if turn > 0:
                break
            stored.pop()
        stored.append(point)
    return np.array(stored, dtype=np.int64)


def _common(slopes: Floats, hosts: int) -> bool:
    """Whether nearly all hosts have the same slope, of three at least."""
    if hosts < 3 or len(slopes) < _NEARLY_ALL * hosts:
        return False
    usual = float(np.median(slopes))
    same: Booleans = np.abs(slopes - usual) < abs(usual) / 3
    return float(same.mean()) >= _NEARLY_ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """How far the clock of one host is ahead of the client's, seconds."""

    host: str
    tasks: int
    low: float
    """The smallest that its tasks allow."""
    high: float
    """The largest. Below `low` if they contradict each other."""
    best: float
    """The likeliest, in the middle of its tasks."""
    margin: float
    """The offset lies within so much of `best`, on either side."""
    between: float
    """The same, but for what all hosts have in common: of differences between two hosts."""
    drift: float
    """By how much the clock gains, seconds per second."""
    middle: float
    """When it is ahead by `best`, seconds."""

    def at(self, times: Floats) -> Floats:
        """The offset at these times."""
        return self.best + self.drift * (times - self.middle)


def offsets(table: pa.Table) -> list[Offset]:
    """The offset of each host, in order of their names. Hosts without stamped tasks are left out.

    A worker's first task is as good as any other here: what is late says nothing, as it can only
    widen the interval.
    """
    known = succeeded(table) & np.isfinite(sum(seconds(table, name) for name in _NEEDED))
    done = table.filter(pa.array(known))
    names, host = numbered(done, "host")
    submit, calc_in, calc_out, retrieve = (seconds(done, name) for name in _NEEDED)
    stamps = _Stamps(host, submit, calc_in, calc_out, retrieve, len(names))
    error = np.zeros(len(names))
    np.maximum.at(error, host, np.nan_to_num(errors(done), nan=np.inf))
    low, high = stamps.bounds()
    reported = np.maximum(low, -error) <= np.minimum(high, error)
    low, high = (
        np.where(reported, np.maximum(low, -error), low),
        np.where(reported, np.minimum(high, error), high),
    )
    aligned = None if np.isfinite(error).all() else _aligned(stamps)
    tasks, found = stamps.tasks(), []
    for number in np.argsort(np.array(names, dtype=object)).tolist():
        host_ = _HostClock(number, names[number], int(tasks[number]))
        guessed = None if np.isfinite(error[number]) and reported[number] else aligned
        found.append(_offset(host_, float(low[number]), float(high[number]), guessed))
    return found


@dataclass(frozen=True, slots=True)
class _Stamps:
    """Of the tasks that have all of them, shape (rows,), seconds; one at least of each host."""

    host: Integers
    submit: Floats
    calc_in: Floats
    calc_out: Floats
    retrieve: Floats
    hosts: int

    def tasks(self) -> Integers:
        """How many each host has."""
        return np.bincount(self.host, minlength=self.hosts).astype(np.int64)

    def bounds(self) -> tuple[Floats, Floats]:
        """The smallest and the largest offset of each host that its tasks allow."""
        low, high = np.full(self.hosts, -np.inf), np.full(self.hosts, np.inf)
        np.maximum.at(low, self.host, self.calc_out - self.retrieve)
        np.minimum.at(high, self.host, self.calc_in - self.submit)
        return low, high


@dataclass(frozen=True, slots=True)
class _Aligned:
    """Offsets by which the least returns of all hosts are the same."""

    lines: ReturnLines
    least: float
    """That return, seconds."""
    least_known: float
    """Within so much."""
    scatter: Floats
    """How far the least return of each host may lie above the least of all, shape (hosts,)."""


def _aligned(stamps: _Stamps) -> _Aligned | None:
    """None if no host's stamps agree with themselves."""
    lines = least_returns(
        stamps.host, stamps.calc_out, stamps.retrieve - stamps.calc_out, stamps.hosts
    )
    there = stamps.calc_in - stamps.submit + lines.at(stamps.host, stamps.calc_in)
    shortest = np.full(stamps.hosts, np.inf)
    np.minimum.at(shortest, stamps.host, there)
    fine = shortest >= 0
    if not fine.any():
        return None
    longest = float(shortest[fine].min())
    levels = lines.level[fine]
    usual = float(np.median(levels))
    spread = _MAD * float(np.median(np.abs(levels - usual)))
    # As often ahead as behind: the mean offset is 0, as far as so many hosts tell.
    several = len(levels) >= _SEVERAL
    doubt = _QUANTILE * _OF_MEDIAN * spread / math.sqrt(len(levels)) if several else np.inf
    least = min(usual, longest) if usual > spread else 0.0
    most = min(longest, max(0.0, usual) + doubt)
    above = stamps.retrieve - stamps.calc_out - lines.at(stamps.host, stamps.calc_out)
    scatter = _scatter(stamps, above, lines.level)
    if lines.slope.any():
        scatter = scatter + _unseen(stamps, lines, above)
    return _Aligned(lines, least, max(least, most - least), scatter)


def _unseen(stamps: _Stamps, lines: ReturnLines, above: Floats) -> Floats:
    """How far drift may move each host's clock that its line does not show, shape (hosts,).

    A line that slopes may do so too much or too little by the scatter of the returns. Where one
    clock drifts others may as well, without it being seen among returns that scatter.
    """
    usual, length = np.zeros(stamps.hosts), np.zeros(stamps.hosts)
    of_hosts = rows_of_hosts(stamps.host, stamps.retrieve, stamps.hosts)
    for number, rows in enumerate(of_hosts):
        usual[number] = np.median(above[rows])
        length[number] = np.ptp(stamps.retrieve[rows])
    hidden = np.minimum(np.abs(lines.slope).max() * length, HIDDEN * usual)
    return np.where(lines.slope == 0, hidden, usual)


def _scatter(stamps: _Stamps, above: Floats, levels: Floats) -> Floats:
    """How far the least of as many returns as each host has may be from the least of all, 95 %.

    From the other tasks of hosts that have several; without such, from hosts that have one each,
    whose clocks then are in it, too.
    """
    others = np.sort(above[above > 0])
    if len(others) < _FEW:
        single = np.sort(np.abs(levels - np.median(levels)))
        return np.full(stamps.hosts, _at(single, 0.95) if len(single) >= _FEW else np.inf)
    # All of n returns are above x with the n-th power of the probability that one is.
    share = 1 - 0.05 ** (1 / stamps.tasks())
    return np.array([_at(others, one) for one in share.tolist()])


def _at(values: Floats, share: float) -> float:
    return float(values[int(share * len(values))])


@dataclass(frozen=True, slots=True)
class _HostClock:
    number: int
    name: str
    tasks: int


def _offset(host: _HostClock, low: float, high: float, aligned: _Aligned | None) -> Offset:
    """Of one host, by what is known of it."""
    slope = float(aligned.lines.slope[host.number]) if aligned else 0.0
    drift, middle = 0.0, 0.0
    if low > high and not slope:
        best = (low + high) / 2
        margin = between = (low - high) / 2
    elif aligned is None:
        best = min(max(0.0, low), high)
        margin = between = max(abs(best - low), abs(high - best))
    else:
        likely = aligned.least - float(aligned.lines.level[host.number])
        scatter = float(aligned.scatter[host.number])
        if slope:
            best, drift, middle = likely, -slope, float(aligned.lines.middle[host.number])
        elif abs(likely) <= _LIKELY * scatter and low <= 0 <= high:
            best = 0.0
        else:
            best = min(max(likely, low), high)
        between = abs(best - likely) + scatter
        margin = between + aligned.least_known
        # The bounds of a clock that drifts move with it.
        if not slope:
            below, beyond = best - low, high - best
            margin = max(min(margin, below), min(margin, beyond))
            between = min(between, max(below, beyond))
    return Offset(
        host=host.name, tasks=host.tasks, low=low, high=high, best=best, margin=margin,
        between=between, drift=drift, middle=middle,
    )  # fmt: skip


def corrected(table: pa.Table, known: list[Offset]) -> pa.Table:
    """The timeline with each host's stamps on the client's clock, by its best offset."""
    moving = {offset.host: offset for offset in known if offset.best or offset.drift}
    if not moving:
        return table
    names, host = numbered(table, "host")
    of_hosts = rows_of_hosts(host, seconds(table, "submit"), len(names))
    for name in ("calc_in", "calc_out"):
        times = seconds(table, name)
        for own, rows in zip(names, of_hosts, strict=True):
            if own in moving:
                times[rows] -= moving[own].at(times[rows])
        moved = pa.array(times)
        table = table.set_column(SCHEMA.get_field_index(name), SCHEMA.field(name), moved)
    return table


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
    """The largest step that divides all stamps: 1 s, 1 ms or 1 us; 0 if there is none."""
    stamps = np.concatenate([seconds(table, name) for name in _STAMPS])
    stamps = stamps[np.isfinite(stamps)]
    if len(stamps) < _FEWEST:
        return 0.0
    for step in (1.0, 1e-3, 1e-6):
        if np.allclose(stamps, np.round(stamps / step) * step, rtol=0, atol=_CLOSE):
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


def hosts_margin(table: pa.Table, *, same: bool) -> float:
    """The same of stamps of a host by what all hosts have in common: of each end of a difference
    between two hosts."""
    step = max(resolution(table), _FINEST)
    if same:
        return step
    return max([step, *(offset.between for offset in offsets(table))])
