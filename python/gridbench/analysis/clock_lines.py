"""The least return times of each host: a number or, where its clock drifts, a line over time.

What a clock is ahead, its tasks seem to return sooner. All returns lie above the least one, so a
line below them that touches them follows the clock: the edge of their lower convex hull over the
middle of the run (Moon, Skelly and Towsley 1999; Paxson 1998).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridbench.analysis.columns import Booleans, Floats, Integers

_FEWEST = 10
"""Tasks of a host from which a drift can be told."""
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


@dataclass(frozen=True, slots=True)
class Lines:
    """Of each host: `level` + `slope` * (t - `middle`); shape (hosts,) each."""

    level: Floats
    slope: Floats
    middle: Floats

    def at(self, host: Integers, times: Floats) -> Floats:
        """Their heights for rows of these hosts at these times."""
        return self.level[host] + self.slope[host] * (times - self.middle[host])


def least_returns(host: Integers, times: Floats, returns: Floats, hosts: int) -> Lines:
    """Lines below the return times (seconds, with the host's offset in them) of the rows.

    All arrays have shape (rows,). A host without rows has a level of infinity.
    """
    level, slope, middle = np.full(hosts, np.inf), np.zeros(hosts), np.zeros(hosts)
    np.minimum.at(level, host, returns)
    of_hosts = rows_of_hosts(host, times, hosts)
    tried = {
        number: _drift(times[rows], returns[rows])
        for number, rows in enumerate(of_hosts)
        if len(rows) >= _FEWEST
    }
    found = {number: line for number, line in tried.items() if line is not None}
    if not _common(np.array([slope_ for _, slope_, _ in found.values()]), len(tried)):
        for number, line in found.items():
            if len(of_hosts[number]) >= _MANY or len(found) > _SOME * len(tried):
                level[number], slope[number], middle[number] = line
    return Lines(level, slope, middle)


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
    kept: list[int] = []
    xs, ys = x.tolist(), y.tolist()
    order = np.lexsort((y, x))
    _, lowest = np.unique(x[order], return_index=True)
    for point in order[lowest].tolist():
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            turn = (xs[b] - xs[a]) * (ys[point] - ys[a]) - (ys[b] - ys[a]) * (xs[point] - xs[a])
            if turn > 0:
                break
            kept.pop()
        kept.append(point)
    return np.array(kept, dtype=np.int64)


def _common(slopes: Floats, hosts: int) -> bool:
    """Whether nearly all hosts have the same slope, of three at least."""
    if hosts < 3 or len(slopes) < _NEARLY_ALL * hosts:
        return False
    usual = float(np.median(slopes))
    same: Booleans = np.abs(slopes - usual) < abs(usual) / 3
    return float(same.mean()) >= _NEARLY_ALL
