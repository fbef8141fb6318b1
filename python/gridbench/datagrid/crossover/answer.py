"""The answer of a crossover: repeats put together, models, and where the data grid is faster.

Models of undisturbed measurements are saved for `gridbench advise`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from gridbench.atomic_write import cache_file, write_file
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
from gridbench.errors import InputError
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed
from gridbench.records import RecordError, from_record
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
    """The outcome."""

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


# ---- Saved models

_KIND = "gridbench kept crossover"
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedComputeModel:
    """A compute grid."""

    version: str
    with_each_task: bool
    """The data goes with each task, and not once to each worker."""
    model: ComputeModel
    readers: int
    """The most that were measured."""
    bytes: int
    """The same."""
    made: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedGridModel:
    """A data grid."""

    title: str
    version: str
    model: GridModel
    readers: int
    bytes: int
    made: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossoverModels:
    """All that is known on a machine."""

    host: str
    processors: int
    compute: dict[str, SavedComputeModel] = field(default_factory=dict)
    """By the names of engines."""
    grids: dict[str, SavedGridModel] = field(default_factory=dict)


def cached_of(header: Header, answer: CrossoverAnswer, *, quiet: bool) -> CrossoverModels:
    """What an answer tells; with `quiet` only what rests on undisturbed measurements alone."""
    now = time.time()
    compute: dict[str, SavedComputeModel] = {}
    grids: dict[str, SavedGridModel] = {}
    for curve in answer.curves:
        if curve.there or (quiet and not all(case.counts for case in curve.cases)):
            continue
        if (engine := answer.compute.get(curve.engine)) and curve.side == "compute grid":
            compute[curve.engine] = SavedComputeModel(
                version=curve.first.version,
                with_each_task=curve.first.with_each_task,
                model=engine.model,
                readers=engine.readers[1],
                bytes=engine.bytes[1],
                made=now,
            )
        if (grid := answer.grids.get(curve.engine)) and curve.side == "data grid":
            grids[curve.engine] = SavedGridModel(
                title=curve.first.title or curve.engine,
                version=curve.first.version,
                model=grid.model,
                readers=grid.readers[1],
                bytes=grid.bytes[1],
                made=now,
            )
    machine = header.machine
    return CrossoverModels(
        host=str(machine["host"]),
        processors=int(machine["cores_usable"]),
        compute=compute,
        grids=grids,
    )


def keep(header: Header, answer: CrossoverAnswer) -> None:
    """Store an answer beside those of other engines. That it cannot be written
    is no error: nothing but time is lost."""
    found = cached_of(header, answer, quiet=True)
    if not found.compute and not found.grids:
        return
    before = load_cached(found.host, found.processors)
    if before is not None:
        found = replace(
            found,
            compute={**before.compute, **found.compute},
            grids={**before.grids, **found.grids},
        )
    path = _path(found.host, found.processors)
    record = {"kind": _KIND, "format": _FORMAT, **asdict(found)}
    with suppress(OSError, InputError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps(record, allow_nan=False) + "\n")


def load_cached(host: str, processors: int) -> CrossoverModels | None:
    """What is known on a machine; None if there is nothing, or nothing that this version can
    read."""
    try:
        record = json.loads(_path(host, processors).read_bytes())
        if (record["kind"], record["format"]) != (_KIND, _FORMAT):
            return None
        return from_record(CrossoverModels, record)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, RecordError):
        return None


def _path(host: str, processors: int) -> Path:
    return cache_file("crossover", host, str(processors))
