"""Repeats of the same measurement together: a case, with how its times spread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gridbench.datagrid.crossover.record import Sharing, Side
from gridbench.machine.rule import disturbed
from gridbench.statistics.interval import Interval, measured


@dataclass(frozen=True, slots=True)
class SharingCase:
    """The repeats of one size, number of readers and engine that were done; at least one."""

    all: tuple[Sharing, ...]

    @property
    def readers(self) -> int:
        """How many."""
        return self.all[0].readers

    @property
    def bytes(self) -> int:
        """Of the data."""
        return self.all[0].bytes

    @property
    def counts(self) -> bool:
        """Whether a claim may rest on it: at least one was undisturbed."""
        return not all(map(disturbed, self.all))

    @property
    def counting(self) -> list[Sharing]:
        """Those that count or, if none does, all."""
        return [one for one in self.all if not (self.counts and disturbed(one))]

    def time(self, of: Callable[[Sharing], float]) -> Interval:
        """The median of a time, from the smallest to the largest, seconds."""
        found = measured(map(of, self.counting), 0.0)
        assert found is not None
        return found


def whole(one: Sharing) -> float:
    """From handing over, or the begin of putting, on."""
    return one.seconds


def reading(one: Sharing) -> float:
    """Without putting it."""
    return one.reading


@dataclass(frozen=True, slots=True)
class Curve:
    """All cases of one way to the data: an engine, or a data grid with or without the loading."""

    side: Side
    engine: str
    name: str
    """As readers know it."""
    there: bool
    """The data is in the data grid already."""
    cases: tuple[SharingCase, ...]
    """By readers and size."""

    @property
    def of(self) -> Callable[[Sharing], float]:
        """The time that counts."""
        return reading if self.there else whole

    def times(self) -> dict[tuple[int, int], Interval]:
        """By readers and bytes, seconds."""
        return {(one.readers, one.bytes): one.time(self.of) for one in self.cases}

    @property
    def first(self) -> Sharing:
        """One of its measurements, for what all have in common."""
        return self.cases[0].all[0]


def curves_of(found: Iterable[Sharing]) -> list[Curve]:
    """Those of compute grids first, each in the order in which it was first measured; of each data
    grid two, the first with the loading."""
    groups: dict[tuple[Side, str], list[Sharing]] = {}
    for one in found:
        if one.status == "done":
            groups.setdefault((one.side, one.engine), []).append(one)
    curves: list[Curve] = []
    for (side, engine), own in sorted(groups.items(), key=lambda group: group[0][0]):
        cases = _cases(own)
        title = own[0].title or engine
        if side == "compute grid":
            curves.append(Curve(side, engine, title, there=False, cases=cases))
        else:
            curves.append(Curve(side, engine, f"{title} (put and read)", there=False, cases=cases))
            curves.append(Curve(side, engine, f"{title} (there already)", there=True, cases=cases))
    return curves


def _cases(found: Sequence[Sharing]) -> tuple[SharingCase, ...]:
    groups: dict[tuple[int, int], list[Sharing]] = {}
    for one in found:
        groups.setdefault((one.readers, one.bytes), []).append(one)
    return tuple(SharingCase(tuple(groups[key])) for key in sorted(groups))
