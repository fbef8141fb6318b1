"""Models of both sides of a crossover, and where the times that they predict cross.

Compute grid, n readers of S bytes:   t = start + each n + (once + reader n) S

as in gridbench's model of an engine: `once` is what the client does with the data, whoever many
need it, `reader` what it takes for each of them, and `each` what a task costs by itself.

Data grid:   t = put_start + put S   +   read_start + max(all n S, one S)

One reader gets no more than a byte in `one` seconds, and all together no more than one in `all`;
the first two terms are of the loading, and are not there if the data is there already.

Both are fitted so that the sum of the squares of relative errors is least, with no cost below 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.analysis.scaling import FittedLine
from gridbench.model.formula import crowded_least_squares, least_squares
from gridbench.model.held_out import EACH, HeldOutErrors, models_without
from gridbench.statistics.crossing import Crossing, kind_of

# ---- Models

_SPARE = 1
"""Cases that there must be beyond the number of costs."""

LARGEST = "all of the largest size"
"""A way of holding cases out, beside `EACH`."""

MOST_READERS = 1000
"""Up to which it is looked for."""

Times = Mapping[tuple[int, int], float]
"""Seconds by readers and bytes."""


class Predicting(Protocol):
    """A model of either side."""

    def line(self, readers: float) -> FittedLine:
        """What so many readers take, over the size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeModel:
    """Of an engine; seconds, and seconds for each byte."""

    start: float
    each: float
    once: float
    reader: float

    def line(self, readers: float) -> FittedLine:
        """What so many readers take, over the size."""
        return FittedLine(self.start + self.each * readers, self.once + self.reader * readers)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridModel:
    """Of a data grid; seconds, and seconds for each byte, 0 where nothing limits."""

    put_start: float
    put: float
    read_start: float
    all: float
    """That all readers together read."""
    one: float
    """That one of them does."""

    def line(self, readers: float) -> FittedLine:
        """What putting the data and so many readers take, over the size."""
        reading = self.reading(readers)
        return FittedLine(self.put_start + reading.intercept, self.put + reading.slope)

    def reading(self, readers: float, reads: float | None = None) -> FittedLine:
        """The same if the data is there already; so many `reads` of all of it, if readers read more
        than once."""
        reads = readers if reads is None else reads
        each = math.ceil(reads / readers)
        return FittedLine(self.read_start, max(reads * self.all, each * self.one))

    @property
    def there(self) -> _There:
        """With the data there already."""
        return _There(self)


@dataclass(frozen=True, slots=True)
class _There:
    model: GridModel

    def line(self, readers: float) -> FittedLine:
        return self.model.reading(readers)


M = TypeVar("M", bound=Predicting)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSide(Generic[M]):
    """A model with what it rests on."""

    model: M
    cases: int
    readers: tuple[int, int]
    """The fewest and the most that were measured."""
    bytes: tuple[int, int]
    held_out: tuple[HeldOutErrors, ...] = field(default=())


def fit_compute(times: Times) -> ComputeModel | None:
    """From the times of an engine; None if there are too few cases for the costs that vary.

    Where all cases have the same number of readers, or the same size, costs of another number or
    size are not known, and are in `once` and `start`.
    """
    keys = [np.ones(len(times)), *_varying(times)]
    if len(times) < len(keys) + _SPARE:
        return None
    found = dict(zip(_names(times), least_squares(keys, _values(times)), strict=True))
    return ComputeModel(**dict.fromkeys(("start", "each", "once", "reader"), 0.0) | found)


def fit_grid(loading: Times, reading: Times) -> GridModel | None:
    """From the times of putting the data and of reading it; None if there are too few cases."""
    sizes = _sizes(loading)
    if len(loading) < 2 + _SPARE or len(set(sizes.tolist())) < 2:
        return None
    put_start, put = least_squares([np.ones(len(sizes)), sizes], _values(loading))
    read = _fit_reading(reading)
    if read is None:
        return None
    return GridModel(
        put_start=put_start,
        put=put,
        read_start=read[0],
        all=read[1],
        one=read[2],
    )


def _fit_reading(times: Times) -> tuple[float, float, float] | None:
    """Start, and seconds for each byte of all together and of one reader."""
    readers, sizes, values = _readers(times), _sizes(times), _values(times)
    if len(times) < 2 + _SPARE or len(set(sizes.tolist())) < 2:
        return None
    if readers.min() == readers.max():
        start, per_byte = least_squares([np.ones(len(sizes)), sizes], values)
        return start, 0.0, per_byte
    # With so many readers all that the data grid has to give is used; fewer get what one gets.
    (start, one), _, filled = crowded_least_squares(
        lambda crowd: [np.ones(len(sizes)), sizes * crowd], readers, values
    )
    return start, one / filled, one


def hold_out(times: Times, fit: Callable[[Times], Predicting | None]) -> tuple[HeldOutErrors, ...]:
    """How wrong `fit` is about each case if it is fitted to all others, and about all of the
    largest size if it is fitted to the smaller ones; without a way that has too few cases."""
    largest = max(size for _, size in times)
    ways = [
        (EACH, [[key] for key in times]),
        (LARGEST, [[key for key in times if key[1] == largest]]),
    ]
    found = []
    for what, parts in ways:
        pairs = models_without(
            list(times), parts, lambda keys: fit({key: times[key] for key in keys})
        )
        if pairs:
            errors = [model.line(n).at(size) / times[n, size] - 1 for (n, size), model in pairs]
            found.append(HeldOutErrors(what=what, errors=tuple(errors)))
    return tuple(found)


# ---- Crossings of predicted times


def crossing_size(compute: Predicting, grid: Predicting, readers: float) -> Crossing:
    """For which bytes the data grid is faster, with so many readers."""
    ours, theirs = compute.line(readers), grid.line(readers)
    start, slope = theirs.intercept - ours.intercept, ours.slope - theirs.slope
    at = start / slope if slope else math.nan
    if slope > 0:
        return Crossing("from", at, at, at) if start > 0 else Crossing("always", low=0, high=0)
    if start < 0:
        return Crossing("up to", at, at, at) if slope else Crossing("always", low=0, high=0)
    return Crossing("never", low=math.inf, high=math.inf)


def crossing_readers(
    compute: Predicting, grid: Predicting, size: float, most: int = MOST_READERS
) -> Crossing:
    """For how many readers, up to `most`, it is, with so many bytes."""
    kind, number, several = kind_of(
        [grid.line(n).at(size) < compute.line(n).at(size) for n in range(1, most + 1)]
    )
    if kind == "always":
        return Crossing(kind, low=0, high=0)
    if kind == "never":
        return Crossing(kind, low=math.inf, high=math.inf, several=several)
    at = number + 1 if kind == "from" else number
    return Crossing(kind, at, at, at, several)


def _varying(times: Times) -> list[Floats]:
    readers, sizes = _readers(times), _sizes(times)
    columns = {"each": readers, "once": sizes, "reader": readers * sizes}
    return [columns[name] for name in _names(times)[1:]]


def _names(times: Times) -> list[str]:
    """Of the costs that can be told apart."""
    several_readers = len({n for n, _ in times}) > 1
    several_sizes = len({size for _, size in times}) > 1
    found = ["start"]
    found += ["each"] if several_readers else []
    found += ["once"] if several_sizes else []
    return found + (["reader"] if several_readers and several_sizes else [])


def _readers(times: Times) -> Floats:
    return np.array([n for n, _ in times], dtype=np.float64)


def _sizes(times: Times) -> Floats:
    return np.array([size for _, size in times], dtype=np.float64)


def _values(times: Times) -> Floats:
    return np.array(list(times.values()), dtype=np.float64)
