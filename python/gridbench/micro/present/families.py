"""Which figures and curves are shown together, in which order, and what was measured there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gridbench.micro.present.wording import has_value
from gridbench.micro.record import FigureCurve, FigureEntry, MicroFigure, Results

_COLUMNS = 4
"""Figures in one table."""


@dataclass(frozen=True, slots=True)
class Family:
    """Figures of one kind, with the curves that belong to them."""

    name: str
    """For links."""
    title: str
    about: str
    """What was measured, in a few sentences."""
    figures: tuple[MicroFigure, ...]
    curves: tuple[FigureCurve, ...]


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    title: str
    ids: str
    """Pattern of the ids of figures and curves."""
    about: str


_KINDS = (
    _Kind(
        "calls",
        "Null calls",
        r"(null|map|native|call|rate)(_|$)",
        "A function that does nothing, with two workers. Latency: one call after the other, from "
        "submitting to having the result. Rates: calls submitted one by one and then gathered, or "
        "handed over by the engine's own map; from one client, or from four at once, whose rates "
        "are added.",
    ),
    _Kind(
        "argument",
        "Arguments",
        r"argument(_|$)",
        "A NumPy array goes to a function that looks at its ends. With gridrpc.empty the array was "
        "made in memory that workers can read, so that nothing is copied.",
    ),
    _Kind(
        "echo",
        "Arrays there and back",
        r"echo(_|$)",
        "A NumPy array goes to a function that returns it.",
    ),
    _Kind(
        "shared",
        "Data that all workers read",
        r"shared(_|$)",
        "100 MB, made after 16 workers had started, until each of them has read every page: the "
        "first time, and later with other data. What a forked pool inherits from its parent, "
        "because the data was there before it started, stands beside it as another case.",
    ),
    _Kind(
        "start",
        "Starting",
        r"start(_|$)",
        "From nothing until the first task is done, and until all workers are in a task at the "
        "same time. A client that has loaded NumPy stands beside one that has not.",
    ),
    _Kind(
        "memory",
        "Memory of idle workers",
        r"memory(_|$)",
        "The proportional set size of all of an engine's processes, the client's included, after "
        "each worker has run a task.",
    ),
    _Kind(
        "tasks",
        "More workers than processors",
        r"tasks(_|$)",
        "100 workers: 1000 tasks that sleep for 0.1 s, which cannot take less than 1 s, and "
        "thousands that do not sleep.",
    ),
    _Kind(
        "million",
        "A million calls",
        r"million(_|$)",
        "1,000,000 calls that do nothing, submitted in one go: the time, the client's peak "
        "memory, and whether the rate falls over the run. Engines that are slower get as many as "
        "fit into the same time: 60 s, in a quick run less.",
    ),
    _Kind(
        "grain",
        "The smallest task that pays",
        r"metg(_|$)",
        "METG, the minimum effective task granularity: the shortest task for which two workers "
        "still spend 50 % or 90 % of the elapsed time in tasks that spin.",
    ),
    _Kind(
        "work",
        "Tasks that do something",
        r"work(_|$)",
        "As many tasks as fit into the time, submitted one by one to two workers: they keep a "
        "processor busy, or do what --task names. What one process does, one task after the other, "
        "stands beside it, times the processors that can be at work.",
    ),
    _Kind(
        "solve",
        "Real work",
        r"solve(_|$)",
        "numpy.linalg.solve of 1000 equations, remote, as a multiple of the time it takes in the "
        "client.",
    ),
)


def families(results: Results) -> list[Family]:
    """All figures and curves, each in one family; what is of no known kind comes last."""
    left = list(results.figures)
    curves = list(results.curves)
    found = []
    for kind in _KINDS:
        figures = [figure for figure in left if re.match(kind.ids, figure.id)]
        own = [curve for curve in curves if re.match(kind.ids, curve.id)]
        if figures or own:
            found.append(Family(kind.name, kind.title, kind.about, _in_order(figures), tuple(own)))
        left = [figure for figure in left if figure not in figures]
        curves = [curve for curve in curves if curve not in own]
    for number, workload in enumerate(dict.fromkeys(figure.workload for figure in left)):
        figures = [figure for figure in left if figure.workload == workload]
        title = workload[:1].upper() + workload[1:]
        found.append(Family(f"other-{number}", title, "", _in_order(figures), ()))
    if curves:
        found.append(Family("other-curves", "Other curves", "", (), tuple(curves)))
    return found


def best_first(figure: MicroFigure) -> list[FigureEntry]:
    """The entries: those with values by their medians, then the others by name."""
    sign = 1 if figure.better == "less" else -1
    known = [entry for entry in figure.entries if has_value(entry)]
    other = [entry for entry in figure.entries if not has_value(entry)]
    known.sort(key=lambda entry: sign * (entry.median or 0.0))
    return [*known, *sorted(other, key=lambda entry: entry.engine)]


def engines_best_first(figures: tuple[MicroFigure, ...]) -> list[str]:
    """All engines of several figures, by their mean rank where they have a value."""
    ranks: dict[str, list[int]] = {}
    for figure in figures:
        for rank, entry in enumerate(best_first(figure)):
            ranks.setdefault(entry.engine, [])
            if has_value(entry):
                ranks[entry.engine].append(rank)
    worst = 1 + max((rank for found in ranks.values() for rank in found), default=0)
    mean = {name: sum(found) / len(found) if found else worst for name, found in ranks.items()}
    return sorted(mean, key=lambda name: (mean[name], name))


def side_by_side(figures: tuple[MicroFigure, ...]) -> list[tuple[MicroFigure, ...]]:
    """The figures of a family in tables of a few columns; what belongs together stays so."""
    tables: list[tuple[MicroFigure, ...]] = []
    for group in _groups(figures):
        if tables and len(tables[-1]) + len(group) <= _COLUMNS:
            tables[-1] += group
        else:
            tables += [group[start : start + _COLUMNS] for start in range(0, len(group), _COLUMNS)]
    return tables


def _in_order(figures: list[MicroFigure]) -> tuple[MicroFigure, ...]:
    """Figures that differ in nothing but a number stand beside each other."""
    return tuple(figure for group in _groups(figures) for figure in group)


def _groups(figures: Iterable[MicroFigure]) -> list[tuple[MicroFigure, ...]]:
    groups: dict[str, list[MicroFigure]] = {}
    for figure in figures:
        groups.setdefault(re.sub(r"\d+([KMG]?B)?", "", figure.id), []).append(figure)
    return [
        tuple(sorted(group, key=lambda f: f.parameter.value if f.parameter else 0.0))
        for group in groups.values()
    ]
