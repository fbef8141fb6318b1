"""Lanes: which tasks ran one after the other in the same place.

With a worker's name per task, a lane is a worker. Old logs only name the host, which runs
several workers; then the tasks of one host are dealt to as few lanes as their intervals allow,
the lane that has been free longest first. That gives back the number of workers that were
busy, but not which of them ran which task.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gridbench.analysis.columns import Floats, Integers, seconds, text


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lane of each row of a timeline, and the row before it in that lane."""

    lane: Integers
    """Shape (rows,): index into `names`, or -1 for a task without calc-in and calc-out."""
    previous: Integers
    """Shape (rows,): row of the task before in the same lane, or -1."""
    last: Integers
    """Shape (lanes,): row of the last task of each lane."""
    names: tuple[str, ...]
    """Names of the lanes, in natural order (w2 before w10)."""


def assign_lanes(table: pa.Table) -> Lanes:
    """Deal the tasks of a timeline to lanes in which no two compute at the same time."""
    begin = seconds(table, "calc_in")
    # A task whose end lies before its start (it cannot, on one clock) is taken as a point. Without
    # either, the end is not known.
    end = np.maximum(begin, seconds(table, "calc_out"))
    rows = np.flatnonzero(np.isfinite(end))
    group, group_names = _groups(table.take(pa.array(rows)))
    order = np.lexsort((end[rows], begin[rows], group))
    rows, group = rows[order], group[order]
    lane_of_row, dealt = _deal(begin[rows], end[rows], group)

    per_group = np.bincount(dealt.group, minlength=len(group_names))
    names = [
        group_names[g] if per_group[g] == 1 else f"{group_names[g]} #{k + 1}"
        for g, k in zip(dealt.group, dealt.number, strict=True)
    ]
    ranking = sorted(range(len(names)), key=lambda i: _natural(names[i]))
    rank = np.empty(len(names), dtype=np.int64)
    rank[ranking] = np.arange(len(names))

    lane = np.full(table.num_rows, -1, dtype=np.int64)
    lane[rows] = rank[lane_of_row] if len(rows) else lane_of_row
    return Lanes(lane, *_neighbours(lane, begin, end), tuple(names[i] for i in ranking))


def lanes(table: pa.Table) -> Integers:
    """The lane of each row, shape (rows,), from 0; -1 for tasks without calc-in and calc-out."""
    return assign_lanes(table).lane


@dataclass(frozen=True, slots=True)
class _Dealt:
    group: Integers
    number: Integers


def _groups(table: pa.Table) -> tuple[Integers, list[str]]:
    """Code of the place of each row, and the places' names: the worker, else its host."""
    worker, host = text(table, "worker"), text(table, "host")
    worker = pc.if_else(pc.equal(worker, ""), host, worker)
    # NUL cannot occur in a name that came out of a log, and keeps pairs apart.
    pair = pc.binary_join_element_wise(host, worker, "\0").combine_chunks().dictionary_encode()
    pairs = [value.split("\0") for value in pair.dictionary.to_pylist()]
    # Where there are several hosts, the number of a process says little without its host.
    several = len({host_ for host_, _ in pairs} - {""}) > 1
    seen = Counter(name for _, name in pairs)
    names = [
        f"{host_}/{name}" if seen[name] > 1 or (several and host_ not in ("", name)) else name
        for host_, name in pairs
    ]
    codes = np.asarray(pair.indices.to_numpy(), dtype=np.int64)
    return codes, [name or "unknown" for name in names]


def _deal(begin: Floats, end: Floats, group: Integers) -> tuple[Integers, _Dealt]:
    """Lane of each row, for rows sorted by group and begin, and each lane's group and number."""
    if len(group) == 0:
        empty = np.array([], dtype=np.int64)
        return empty, _Dealt(empty, empty)
    _, starts = np.unique(group, return_index=True)
    number = np.zeros(len(group), dtype=np.int64)
    for first, stop in zip(starts, [*starts[1:], len(group)], strict=True):
        if (begin[first + 1 : stop] < end[first : stop - 1]).any():
            number[first:stop] = _greedy(begin[first:stop], end[first:stop])
    found, lane = np.unique(np.stack([group, number]), axis=1, return_inverse=True)
    return lane.ravel(), _Dealt(found[0], found[1])


def _greedy(begin: Floats, end: Floats) -> list[int]:
    """Lanes of intervals sorted by begin: the one free longest, a new one if none is free."""
    free: list[tuple[float, int]] = []
    chosen = []
    for start, stop in zip(begin.tolist(), end.tolist(), strict=True):
        if free and free[0][0] <= start:
            number = free[0][1]
            heapq.heapreplace(free, (stop, number))
        else:
            number = len(free)
            heapq.heappush(free, (stop, number))
        chosen.append(number)
    return chosen


def _neighbours(lane: Integers, begin: Floats, end: Floats) -> tuple[Integers, Integers]:
    previous = np.full(len(lane), -1, dtype=np.int64)
    rows = np.flatnonzero(lane >= 0)
    rows = rows[np.lexsort((end[rows], begin[rows], lane[rows]))]
    same = lane[rows][1:] == lane[rows][:-1]
    previous[rows[1:][same]] = rows[:-1][same]
    if len(rows) == 0:
        return previous, rows
    return previous, rows[np.append(~same, True)]


def _natural(name: str) -> list[tuple[str, int, str, str]]:
    """Sorting key under which numbers in a name count as numbers, however long they are."""
    return [
        (words, len(digits), digits, zeros)
        for words, zeros, digits in re.findall(r"(\D*)(0*)(\d*)", name)
    ]
