"""The pictures: times over size and over readers, and where they cross."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gridbench.datagrid.crossover.answer import CrossoverAnswer, Pair
from gridbench.formats import counted, plain, size
from gridbench.pages.colours import SERIES, engine_colours
from gridbench.pages.curves import Curve, Line, Place, Point, exactly
from gridbench.quantities import MB
from gridbench.statistics.interval import Interval

PREDICTED = "dash"
SIZE = "size of the shared data"
_STEPS = 24
"""Points of a line that a model draws."""


def over_size(answer: CrossoverAnswer) -> list[Curve]:
    """For each number of readers the time over the size: measured, and as the models have it."""
    places = [Place(one / MB, size(one)) for one in answer.sizes]

    def of(n: int) -> Sequence[Line]:
        keys = [(n, one) for one in answer.sizes]
        return _lines(answer, places, keys, lambda x: (n, x * MB), lambda x: size(x * MB))

    return [
        _curve(f"readers-{n}", f"Time over size, {counted(n, 'reader')}", SIZE, places, of(n))
        for n in answer.readers
    ]


def over_readers(answer: CrossoverAnswer) -> list[Curve]:
    """For each size the time over the number of readers."""
    places = [Place(n, f"{n:,}") for n in answer.readers]

    def of(one: int) -> Sequence[Line]:
        keys = [(n, one) for n in answer.readers]
        return _lines(answer, places, keys, lambda x: (x, one), plain)

    return [
        _curve(f"size-{one}", f"Time over readers, {size(one)}", "readers", places, of(one))
        for one in answer.sizes
    ]


def crossings(answer: CrossoverAnswer) -> Curve:
    """From which size on the data grid is faster, over the readers: a line for each compute grid
    and way to the data, as far as there is such a size."""
    places = [Place(n, f"{n:,}") for n in answer.readers]
    lines = []
    for pair in answer.pairs:
        name = f"{pair.compute.name} or {pair.grid.name}"
        lines.append(Line(name, _crossings(pair), engine=pair.compute.engine))
        expected = [
            Point(Place(n, f"{n:,}"), exactly(one.at / MB), counts=True)
            for n, one in pair.predicted_sizes.items()
            if one.kind == "from"
        ]
        lines.append(Line(f"{name}, predicted", expected, of=name, dash=PREDICTED))
    return Curve(
        id="crossings",
        title="The size from which on the data grid is faster, over readers",
        about="Bars reach as far as the spread of the repeats allows. There is no mark where the"
        " data grid is always or never the faster one; the table says which.",
        x_title="readers",
        places=places,
        y_title=SIZE,
        unit="MB",
        lines=lines,
    )


def _colours(answer: CrossoverAnswer) -> dict[str, str]:
    """The colour of each engine; data grids have colours that no compute grid has."""
    compute = [one.engine for one in answer.curves if one.side == "compute grid"]
    colours = engine_colours(compute)
    free = [one for one in SERIES if one not in colours.values()]
    grids = dict.fromkeys(one.engine for one in answer.curves if one.side == "data grid")
    return colours | {name: free[n % len(free)] for n, name in enumerate(grids)}


def _curve(
    name: str, title: str, x_title: str, places: Sequence[Place], lines: Sequence[Line]
) -> Curve:
    return Curve(
        id=name,
        title=title,
        about="",
        x_title=x_title,
        places=places,
        y_title="until the last reader has it",
        unit="s",
        lines=lines,
    )


def _lines(
    answer: CrossoverAnswer,
    places: Sequence[Place],
    keys: Sequence[tuple[int, int]],
    key: Callable[[float], tuple[float, float]],
    reported: Callable[[float], str],
) -> list[Line]:
    """Of each way to the data what was measured at `keys`, which are drawn at `places`, and what is
    predicted: `key` gives readers and bytes at any place, `told` its text."""
    found = []
    colours = _colours(answer)
    for curve in answer.curves:
        times = curve.times()
        counts = {(case.readers, case.bytes): case.counts for case in curve.cases}
        points = [
            Point(place, times[at], counts[at])
            for at, place in zip(keys, places, strict=True)
            if at in times
        ]
        colour = colours[curve.engine]
        found.append(Line(curve.name, points, colour=colour, variant=curve.there))
        model = answer.predicting(curve)
        expected = []
        if model is not None and len(places) > 1:
            for x in map(float, np.geomspace(places[0].x, places[-1].x, _STEPS)):
                readers, bytes_ = key(x)
                value = model.line(readers).at(bytes_)
                expected.append(Point(Place(x, reported(x)), exactly(value), counts=True))
        name = f"{curve.name}, predicted"
        found.append(Line(name, expected, of=curve.name, dash=PREDICTED))
    return found


def _crossings(pair: Pair) -> list[Point]:
    return [
        Point(
            Place(n, f"{n:,}"),
            Interval(one.at / MB, one.low / MB, min(one.high, _largest(pair)) / MB),
            counts=True,
        )
        for n, one in pair.over_size.items()
        if one.kind == "from"
    ]


def _largest(pair: Pair) -> int:
    """Of the sizes that were measured: a bar has to end somewhere."""
    return max(bytes_ for _, bytes_ in pair.compute.times())
