"""What was measured, so that nothing beyond it is predicted silently."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from gridbench.costs.spans import UNKNOWN, Span, span_of
from gridbench.formats import duration, size, whole
from gridbench.model.observation import Situation


@dataclass(frozen=True, slots=True)
class Range:
    """The span of each thing that decides what a run takes."""

    cores: Span
    tasks: Span
    sleep: Span
    """Mean seconds of a task."""
    bytes_in: Span
    bytes_shared: Span
    bytes_out: Span
    starts: tuple[Literal["cold", "warm"], ...]

    def outside(self, situation: Situation) -> tuple[str, ...]:
        """In which ways a situation is unlike all that was measured, as sentences without a
        full stop."""
        found = [
            span.outside(what, value, shown)
            for span, value, what, shown in self._spans(situation)
            if not span.holds(value)
        ]
        start = "warm" if situation.warm else "cold"
        if start not in self.starts:
            found.append(f"no run had a {start} start")
        return tuple(found)

    def beyond(self, situation: Situation) -> float:
        """How far a situation is from all that was measured: the sum of the logarithms of the
        factors by which it is beyond, in each way that `outside` tells; of data or starts that no
        run had, a factor of 10."""
        found = sum(span.distance(value) for span, value, _, _ in self._spans(situation))
        start = "warm" if situation.warm else "cold"
        return found if start in self.starts else found + math.log(UNKNOWN)

    def _spans(self, situation: Situation) -> list[tuple[Span, float, str, Callable[[float], str]]]:
        """What was measured, and what a situation has of it.

        Less data than in any run, and tasks that sleep longer, ask nothing of an engine that it
        was not seen to do: they count as what was measured.
        """
        sleep = min(float(situation.sleep.mean()), self.sleep.high)
        return [
            (self.cores, situation.cores, "cores", whole),
            (self.tasks, situation.tasks, "tasks", whole),
            (self.sleep, sleep, "time of a task", duration),
            *(
                (span, max(value, span.low), what, size)
                for span, value, what in (
                    (self.bytes_in, situation.bytes_in, "task data"),
                    (self.bytes_shared, situation.bytes_shared, "shared data"),
                    (self.bytes_out, situation.bytes_out, "output data"),
                )
            ),
        ]


def range_of(situations: Sequence[Situation]) -> Range:
    """Of all of them; at least one."""

    def span(value: Callable[[Situation], float]) -> Span:
        return span_of(map(value, situations))

    kinds: list[Literal["cold", "warm"]] = []
    if any(not one.warm for one in situations):
        kinds.append("cold")
    if any(one.warm for one in situations):
        kinds.append("warm")
    return Range(
        cores=span(lambda one: one.cores),
        tasks=span(lambda one: one.tasks),
        sleep=span(lambda one: float(one.sleep.mean())),
        bytes_in=span(lambda one: one.bytes_in),
        bytes_shared=span(lambda one: one.bytes_shared),
        bytes_out=span(lambda one: one.bytes_out),
        starts=tuple(kinds),
    )
