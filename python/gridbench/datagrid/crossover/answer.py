"""The answer of a crossover: repeats put together, models, and where the data grid is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gridbench.datagrid.crossover.models import (
    ComputeModel,
    FittedSide,
    GridModel,
    M,
    Predicting,
    Times,
    crossing_readers,
    crossing_size,
    fit_compute,
    fit_grid,
    hold_out,
)
from gridbench.datagrid.crossover.record import SharingRecord, Side
from gridbench.machine.judgement import disturbed
from gridbench.statistics.crossing import Crossing, crossing
from gridbench.statistics.interval import Interval, measured

# ---- Repeats together


@dataclass(frozen=True, slots=True)
class SharingCase:
    """The repeats of one size, number of readers and engine that were done; at least one."""

    all: tuple[SharingRecord, ...]

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
    def counting(self) -> list[SharingRecord]:
        """Those that count or, if none does, all."""
        return [one for one in self.all if not (self.counts and disturbed(one))]

    def time(self, of: Callable[[SharingRecord], float]) -> Interval:
        """The median of a time, from the smallest to the largest, seconds."""
        found = measured(map(of, self.counting), 0.0)
        assert found is not None
        return found


def whole(one: SharingRecord) -> float:
    """From handing over, or the begin of putting, on."""
    return one.seconds


def reading(one: SharingRecord) -> float:
    """Without putting it."""
    return one.reading


@dataclass(frozen=True, slots=True)
class SharingCurve:
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
    def of(self) -> Callable[[SharingRecord], float]:
        """The time that counts."""
        return reading if self.there else whole

    def times(self) -> dict[tuple[int, int], Interval]:
        """By readers and bytes, seconds."""
        return {(one.readers, one.bytes): one.time(self.of) for one in self.cases}

    @property
    def first(self) -> SharingRecord:
        """One of its measurements, for what all have in common."""
        return self.cases[0].all[0]


def curves_of(found: Iterable[SharingRecord]) -> list[SharingCurve]:
    """Those of compute grids first, each in the order in which it was first measured; of each data
    grid two, the first with the loading."""
    groups: dict[tuple[Side, str], list[SharingRecord]] = {}
    for one in found:
        if one.status == "done":
            groups.setdefault((one.side, one.engine), []).append(one)
    curves: list[SharingCurve] = []
    for (side, engine), own in sorted(groups.items(), key=lambda group: group[0][0]):
        cases = _cases(own)
        title = own[0].title or engine
        if side == "compute grid":
            curves.append(SharingCurve(side, engine, title, there=False, cases=cases))
        else:
            curves.append(
                SharingCurve(side, engine, f"{title} (put and read)", there=False, cases=cases)
            )
            curves.append(
                SharingCurve(side, engine, f"{title} (there already)", there=True, cases=cases)
            )
    return curves


def _cases(found: Sequence[SharingRecord]) -> tuple[SharingCase, ...]:
    groups: dict[tuple[int, int], list[SharingRecord]] = {}
    for one in found:
        groups.setdefault((one.readers, one.bytes), []).append(one)
    return tuple(SharingCase(tuple(groups[key])) for key in sorted(groups))


# ---- The answer


@dataclass(frozen=True, slots=True)
class Pair:
    """A compute grid beside a data grid."""

    compute: SharingCurve
    grid: SharingCurve
    over_size: Mapping[int, Crossing]
    """By readers: at which bytes the data grid is faster."""
    over_readers: Mapping[int, Crossing]
    """By bytes: for how many readers."""
    predicted_sizes: Mapping[int, Crossing]
    """As `over_size`, by the models; none without both models."""
    predicted_readers: Mapping[int, Crossing]


@dataclass(frozen=True, slots=True)
class CrossoverAnswer:
    """What came of it."""

    curves: Sequence[SharingCurve]
    compute: Mapping[str, FittedSide[ComputeModel]]
    """Models by the engine; without those for which too little was measured."""
    grids: Mapping[str, FittedSide[GridModel]]
    pairs: Sequence[Pair]

    @property
    def readers(self) -> list[int]:
        """All numbers of them."""
        return sorted({case.readers for curve in self.curves for case in curve.cases})

    @property
    def sizes(self) -> list[int]:
        """All of them, bytes."""
        return sorted({case.bytes for curve in self.curves for case in curve.cases})

    def fitted(
        self, curve: SharingCurve
    ) -> FittedSide[ComputeModel] | FittedSide[GridModel] | None:
        """The model of a curve."""
        known = self.compute if curve.side == "compute grid" else self.grids
        return known.get(curve.engine)

    def predicting(self, curve: SharingCurve) -> Predicting | None:
        """What predicts its times."""
        fitted = self.fitted(curve)
        if fitted is None:
            return None
        model = fitted.model
        return model.there if isinstance(model, GridModel) and curve.there else model


def answer_of(found: Iterable[SharingRecord]) -> CrossoverAnswer:
    """All of it, from the measurements that were done."""
    curves = curves_of(found)
    compute = {
        one.engine: engine
        for one in curves
        if one.side == "compute grid" and (engine := _fitted_compute(one))
    }
    grids = {
        one.engine: grid
        for one in curves
        if one.side == "data grid" and not one.there and (grid := _fitted_grid(one))
    }
    without = CrossoverAnswer(curves, compute, grids, ())
    pairs = [
        _pair(without, one, other)
        for one in curves
        if one.side == "compute grid"
        for other in curves
        if other.side == "data grid"
    ]
    return CrossoverAnswer(curves, compute, grids, pairs)


def _middle(times: Mapping[tuple[int, int], Interval]) -> Times:
    return {key: one.value for key, one in times.items()}


def _fitted_compute(curve: SharingCurve) -> FittedSide[ComputeModel] | None:
    return _fitted(_middle(curve.times()), fit_compute)


def _fitted_grid(curve: SharingCurve) -> FittedSide[GridModel] | None:
    keys = [(case.readers, case.bytes) for case in curve.cases]
    putting = [case.time(lambda one: one.seconds - one.reading).value for case in curve.cases]
    reads = [case.time(lambda one: one.reading).value for case in curve.cases]
    loading, reading = dict(zip(keys, putting, strict=True)), dict(zip(keys, reads, strict=True))

    def fit(times: Times) -> GridModel | None:
        return fit_grid({key: loading[key] for key in times}, {key: reading[key] for key in times})

    return _fitted(_middle(curve.times()), fit)


def _fitted(times: Times, fit: Callable[[Times], M | None]) -> FittedSide[M] | None:
    model = fit(times)
    if model is None:
        return None
    return FittedSide(
        model=model,
        cases=len(times),
        readers=_ends(n for n, _ in times),
        bytes=_ends(size for _, size in times),
        held_out=hold_out(times, fit),
    )


def _pair(known: CrossoverAnswer, compute: SharingCurve, grid: SharingCurve) -> Pair:
    ours, theirs = compute.times(), grid.times()
    both = ours.keys() & theirs.keys()
    readers, sizes = sorted({n for n, _ in both}), sorted({size for _, size in both})
    over_size = {n: crossing(_of_readers(ours, n), _of_readers(theirs, n)) for n in readers}
    over_readers = {size: crossing(_of_size(ours, size), _of_size(theirs, size)) for size in sizes}
    predicted_sizes: dict[int, Crossing] = {}
    predicted_readers: dict[int, Crossing] = {}
    one, other = known.predicting(compute), known.predicting(grid)
    if one is not None and other is not None:
        predicted_sizes = {n: crossing_size(one, other, n) for n in readers}
        predicted_readers = {size: crossing_readers(one, other, size) for size in sizes}
    return Pair(
        compute,
        grid,
        {n: found for n, found in over_size.items() if found},
        {size: found for size, found in over_readers.items() if found},
        predicted_sizes,
        predicted_readers,
    )


def _of_readers(times: Mapping[tuple[int, int], Interval], n: int) -> dict[int, Interval]:
    return {size: one for (readers, size), one in times.items() if readers == n}


def _of_size(times: Mapping[tuple[int, int], Interval], size: int) -> dict[int, Interval]:
    return {readers: one for (readers, own), one in times.items() if own == size}


def _ends(values: Iterable[int]) -> tuple[int, int]:
    known = sorted(values)
    return known[0], known[-1]
