"""All that follows from the measurements: models, and where the data grid becomes faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gridbench.datagrid.crossover.cases import Curve, curves_of
from gridbench.datagrid.crossover.crossing import Crossing, crossing
from gridbench.datagrid.crossover.models import (
    ComputeModel,
    Fitted,
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
from gridbench.datagrid.crossover.record import Sharing
from gridbench.statistics.interval import Interval


@dataclass(frozen=True, slots=True)
class Pair:
    """A compute grid beside a data grid."""

    compute: Curve
    grid: Curve
    over_size: Mapping[int, Crossing]
    """By readers: at which bytes the data grid is faster."""
    over_readers: Mapping[int, Crossing]
    """By bytes: for how many readers."""
    predicted_sizes: Mapping[int, Crossing]
    """As `over_size`, by the models; none without both models."""
    predicted_readers: Mapping[int, Crossing]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it."""

    curves: Sequence[Curve]
    compute: Mapping[str, Fitted[ComputeModel]]
    """Models by the engine; without those for which too little was measured."""
    grids: Mapping[str, Fitted[GridModel]]
    pairs: Sequence[Pair]

    @property
    def readers(self) -> list[int]:
        """All numbers of them."""
        return sorted({case.readers for curve in self.curves for case in curve.cases})

    @property
    def sizes(self) -> list[int]:
        """All of them, bytes."""
        return sorted({case.bytes for curve in self.curves for case in curve.cases})

    def fitted(self, curve: Curve) -> Fitted[ComputeModel] | Fitted[GridModel] | None:
        """The model of a curve."""
        known = self.compute if curve.side == "compute grid" else self.grids
        return known.get(curve.engine)

    def predicting(self, curve: Curve) -> Predicting | None:
        """What predicts its times."""
        fitted = self.fitted(curve)
        if fitted is None:
            return None
        model = fitted.model
        return model.there if isinstance(model, GridModel) and curve.there else model


def answer_of(found: Iterable[Sharing]) -> Answer:
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
    without = Answer(curves, compute, grids, ())
    pairs = [
        _pair(without, one, other)
        for one in curves
        if one.side == "compute grid"
        for other in curves
        if other.side == "data grid"
    ]
    return Answer(curves, compute, grids, pairs)


def _middle(times: Mapping[tuple[int, int], Interval]) -> Times:
    return {key: one.value for key, one in times.items()}


def _fitted_compute(curve: Curve) -> Fitted[ComputeModel] | None:
    return _fitted(_middle(curve.times()), fit_compute)


def _fitted_grid(curve: Curve) -> Fitted[GridModel] | None:
    keys = [(case.readers, case.bytes) for case in curve.cases]
    putting = [case.time(lambda one: one.seconds - one.reading).value for case in curve.cases]
    reads = [case.time(lambda one: one.reading).value for case in curve.cases]
    loading, reading = dict(zip(keys, putting, strict=True)), dict(zip(keys, reads, strict=True))

    def fit(times: Times) -> GridModel | None:
        return fit_grid({key: loading[key] for key in times}, {key: reading[key] for key in times})

    return _fitted(_middle(curve.times()), fit)


def _fitted(times: Times, fit: Callable[[Times], M | None]) -> Fitted[M] | None:
    model = fit(times)
    if model is None:
        return None
    return Fitted(
        model=model,
        cases=len(times),
        readers=_ends(n for n, _ in times),
        bytes=_ends(size for _, size in times),
        held_out=hold_out(times, fit),
    )


def _pair(known: Answer, compute: Curve, grid: Curve) -> Pair:
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
