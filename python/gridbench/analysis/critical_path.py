"""The critical path: waits of the last result, followed back to t = 0.

A job ends with its last result. That task computed at some time; it could not have begun before its
worker had done the task before, or before the client had submitted it; and so on. The steps of this
path follow each other without a gap, so that they add up to the job's time, whatever overlaps with
them: shortening anything else leaves that time as it is.

- **start-up**: from t = 0 to the first calc-in of the worker, on a cold start.
- **submission**: the client had not come to the task yet.
- **room**: it was waiting for a result, as it keeps a bounded number of tasks out.
- **dispatch**: from submit to calc-in, where the worker was free before.
- **between tasks**: from calc-out of the worker's task before to calc-in.
- **task**: from calc-in to calc-out.
- **output**: from calc-out to retrieve, of the last task and of those that the client waited for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gridbench.analysis.columns import Booleans, Floats, seconds
from gridbench.analysis.lanes import Lanes

KINDS = ("start-up", "submission", "room", "dispatch", "between tasks", "task", "output")


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the path; times in seconds after t = 0."""

    kind: str
    """One of KINDS."""
    row: int
    """The task that it leads to, or is of: its row in the timeline."""
    begin: float
    end: float

    @property
    def length(self) -> float:
        """Seconds; below 0 if clocks of hosts are off the client's."""
        return self.end - self.begin


def critical_path(
    table: pa.Table, lanes: Lanes, *, cold: bool, most_outstanding: int | None = None
) -> list[Step]:
    """The steps in the order of time, from 0 to the last retrieve; none without a task that has all
    stamps, or of stamps that contradict each other.

    `most_outstanding`: how many tasks the client kept out at most, if there was a bound.
    """
    stamps = {n: seconds(table, n) for n in ("submit", "calc_in", "calc_out", "retrieve")}
    known = np.isfinite(sum(stamps.values()))
    if not known.any():
        return []
    walk = _Walk(stamps, known, lanes, cold=cold, most_outstanding=most_outstanding)
    last = int(np.argmax(np.where(known, stamps["retrieve"], -math.inf)))
    return walk.back_from(last)


def by_kind(path: Sequence[Step]) -> dict[str, float]:
    """Seconds of each kind that is in the path."""
    return {
        kind: sum(step.length for step in path if step.kind == kind)
        for kind in KINDS
        if any(step.kind == kind for step in path)
    }


class _Walk:
    """Follows the path back, step by step."""

    def __init__(
        self,
        stamps: dict[str, Floats],
        known: Booleans,
        lanes: Lanes,
        *,
        cold: bool,
        most_outstanding: int | None,
    ) -> None:
        self._submit, self._calc_in = stamps["submit"], stamps["calc_in"]
        self._calc_out, self._retrieve = stamps["calc_out"], stamps["retrieve"]
        self._known = known
        self._previous = lanes.previous
        self._cold = cold
        self._most = most_outstanding
        rows = np.flatnonzero(known)
        self._submits = np.sort(self._submit[rows])
        self._by_retrieve = rows[np.argsort(self._retrieve[rows], kind="stable")]
        self._retrieves = self._retrieve[self._by_retrieve]

    def back_from(self, row: int) -> list[Step]:
        steps = self._output(row)
        following: int | None = row
        seen: set[int] = set()
        while following is not None:
            row = following
            if row in seen:  # a log whose stamps contradict each other
                return []
            seen.add(row)
            steps.append(Step("task", row, self._calc_in[row], self._calc_out[row]))
            more, following = self._before(row)
            steps += more
        return [_plain(step) for step in reversed(steps)]

    def _output(self, row: int) -> list[Step]:
        return [Step("output", row, self._calc_out[row], self._retrieve[row])]

    def _before(self, row: int) -> tuple[list[Step], int | None]:
        """The steps, last one first, that lead to a task's calc-in; and the task before them."""
        calc_in, submit, before = self._calc_in[row], self._submit[row], self._previous[row]
        has_before = before >= 0 and self._known[before]
        if not has_before and self._cold:
            return [Step("start-up", row, 0.0, calc_in)], None
        if has_before and self._calc_out[before] >= submit:
            return [Step("between tasks", row, self._calc_out[before], calc_in)], int(before)
        dispatch = Step("dispatch", row, submit, calc_in)
        freed = self._waited_for(submit)
        if freed is None:
            return [dispatch, Step("submission", row, 0.0, submit)], None
        room = Step("room", row, self._retrieve[freed], submit)
        return [dispatch, room, *self._output(freed)], freed

    def _waited_for(self, submit: float) -> int | None:
        """The task whose result let the client submit at this time; None if it need not wait."""
        if self._most is None:
            return None
        submitted = int(np.searchsorted(self._submits, submit, side="left"))
        back = int(np.searchsorted(self._retrieves, submit, side="right"))
        # Without the last result there would have been too many.
        if back == 0 or submitted - (back - 1) < self._most:
            return None
        return int(self._by_retrieve[back - 1])


def _plain(step: Step) -> Step:
    return Step(step.kind, int(step.row), float(step.begin), float(step.end))
