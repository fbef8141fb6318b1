"""Tables of figures by family, of one engine against each other, of targets, and of gaps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from gridbench.formats import NOTHING, amount, times
from gridbench.micro.record import FigureCurve, FigureEntry, Lead, MicroFigure, Results
from gridbench.micro.sentences import (
    compared_engine,
    enough_undisturbed,
    gaps,
    not_judged,
    reason,
    targets,
)
from gridbench.micro.wording import (
    against_limit,
    against_peer,
    compared_values,
    first_limit,
    has_value,
    label,
    measured,
    ours,
    reached,
    status_word,
    titled,
    to_reach,
)
from gridbench.pages.table import Cell, Column, Table, range_of, table_of
from gridbench.statistics.interval import Interval

_COLUMNS = 4
"""Figures in one table."""
_DISTURBED = "other programs disturbed some of its runs"
_WORDS = frozenset({"why", "figures", "target", "measured", "reached"})


# ---- Families


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
    """All figures and curves, each in one family; those of no known kind come last."""
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
    """Sort figures that differ in a number only next to each other."""
    return tuple(figure for group in _groups(figures) for figure in group)


def _groups(figures: Iterable[MicroFigure]) -> list[tuple[MicroFigure, ...]]:
    groups: dict[str, list[MicroFigure]] = {}
    for figure in figures:
        groups.setdefault(re.sub(r"\d+([KMG]?B)?", "", figure.id), []).append(figure)
    return [
        tuple(sorted(group, key=lambda f: f.parameter.value if f.parameter else 0.0))
        for group in groups.values()
    ]


# ---- Tables


@dataclass(slots=True)
class Footnotes:
    """Texts by the mark that a table has for them; the same text has one mark."""

    marks: dict[str, str] = field(default_factory=dict)

    def mark(self, text: str) -> str:
        """The mark of a text: a number in brackets."""
        numbers = sum(mark != "*" for mark in self.marks.values())
        return self.marks.setdefault(text, f"[{numbers + 1}]")

    def star(self, text: str) -> str:
        """The mark of the one text that most cells need."""
        return self.marks.setdefault(text, "*")

    def lines(self) -> list[str]:
        """`[1] failed: ...`."""
        return [f"{mark} {text}" for text, mark in sorted(self.marks.items(), key=itemgetter(1))]


def matrix(figures: tuple[MicroFigure, ...]) -> tuple[Table, Footnotes]:
    """Rows for the engines, the limits, and the comparisons of gridrpc; and what the marks in it
    mean."""
    notes = Footnotes()
    engines = engines_best_first(figures)
    rows: list[list[str | Cell]] = [
        [name, *(_value(figure, figure.entries, name, notes) for figure in figures)]
        for name in engines
    ]
    styles = [""] * len(engines)
    for name in dict.fromkeys(limit.engine for figure in figures for limit in figure.limits):
        cells = [_value(figure, figure.limits, name, notes) for figure in figures]
        rows.append([f"limit: {label(name)}", *cells])
        styles.append("uncounted")
    own = [name for name in engines if ours(name)]
    for title, others, reported in (
        ("best peer", [figure.best_peer or "" for figure in figures], against_peer),
        ("limit", [first_limit(figure) for figure in figures], against_limit),
    ):
        compared = [[name, *(reported(figure, name) for figure in figures)] for name in own]
        known = [row for row in compared if any(cell != NOTHING for cell in row[1:])]
        if known:
            rows.append([f"{title}:", *(label(name) or NOTHING for name in others)])
            rows += [[f"{name} against it", *cells] for name, *cells in known]
            styles += ["uncounted", *[""] * len(known)]
    return Table(["", *(titled(figure.title) for figure in figures)], rows, styles), notes


def _value(
    figure: MicroFigure, entries: tuple[FigureEntry, ...], name: str, notes: Footnotes
) -> Cell:
    """The median with its interval; or why there is none."""
    entry = next((entry for entry in entries if entry.engine == name), None)
    if entry is None:
        return Cell(NOTHING)
    if not has_value(entry):
        mark = f" {notes.mark(reason(entry.status, entry.why))}" if entry.why else ""
        return Cell(status_word(entry.status) + mark)
    median = entry.median or 0.0
    text = amount(median, figure.unit)
    if entry.note:
        text = f"{text} {notes.mark(entry.note)}"
    if entry.disturbed_runs:
        text += notes.star(_DISTURBED)
    if entry.low is None or entry.high is None:
        return Cell(text)
    known = Interval(median, entry.low, entry.high)
    return Cell(text, range_of(known, figure.unit, alone=False))


def percentiles(figure: MicroFigure) -> Table:
    """The percentiles of each engine that has any."""
    entries = [e for e in (*best_first(figure), *figure.limits) if e.percentiles and has_value(e)]
    names = sorted({name for entry in entries for name in entry.percentiles or {}}, key=float)
    columns = [
        Column[FigureEntry]("", lambda entry: label(entry.engine)),
        *(_percentile(name, figure.unit) for name in names),
    ]
    return table_of(columns, entries)


def _percentile(name: str, unit: str) -> Column[FigureEntry]:
    return Column(f"{name} %", lambda entry: (entry.percentiles or {}).get(name), unit)


def against_each(results: Results) -> Table:
    """A row for each figure in which `compared_engine` has a value and a peer: its advantage over
    each peer.

    Ratios are those of the medians. In brackets: within the figure's noise. Variants of an engine,
    named after a comma, do something else and are left out.
    """
    engine = compared_engine(results)
    figures = [figure for family in families(results) for figure in family.figures]
    known = [figure for figure in figures if figure.best_peer and _median(figure, engine)]
    names = {entry.engine for figure in known for entry in figure.entries}
    columns = [
        Column[MicroFigure]("", lambda figure: titled(figure.title)),
        *(_peer(engine, name) for name in sorted(names) if not ours(name) and ", " not in name),
    ]
    return table_of(columns, known, style="dense")


def _peer(engine: str, peer: str) -> Column[MicroFigure]:
    return Column(peer, lambda figure: _times_as_good(figure, engine, peer))


def _times_as_good(figure: MicroFigure, engine: str, peer: str) -> Cell:
    entry = next((entry for entry in figure.entries if entry.engine == peer), None)
    if entry is not None and not has_value(entry):
        return Cell(status_word(entry.status), style="soft")
    own, other = _median(figure, engine), _median(figure, peer)
    if not own or not other:
        return Cell(NOTHING, style="soft")
    good = other / own if figure.better == "less" else own / other
    if max(good, 1 / good) <= figure.noise:
        return Cell(f"({times(good)})", style="soft")
    doubt = "" if enough_undisturbed(figure, engine, peer) else "?"
    return Cell(f"{times(good)}{doubt}", style="bad" if good < 1 else "")


def _median(figure: MicroFigure, name: str) -> float | None:
    return next((e.median for e in figure.entries if e.engine == name and has_value(e)), None)


def targets_table(results: Results) -> Table:
    """The targets that could be judged."""
    columns = [
        Column[Lead]("", lambda lead: Cell(lead.what, lead.engine)),
        Column("target", lambda lead: to_reach(results, lead), words=True),
        Column(
            "measured",
            lambda lead: Cell(measured(results, lead), "; ".join(compared_values(results, lead))),
            words=True,
        ),
        Column(
            "reached",
            lambda lead: Cell(reached(lead), lead.why, "" if lead.reached else "bad"),
            words=True,
        ),
    ]
    return table_of(columns, targets(results), style="left")


def gaps_table(results: Results) -> Table:
    """What has no value, and targets that could not be judged, with the reason."""
    rows = [
        [label(gap.engine), reason(gap.status, gap.why), "; ".join(gap.figures)]
        for gap in gaps(results.figures)
    ]
    rows += [[lead.engine, lead.why, lead.what] for lead in not_judged(results)]
    return Table(["engine", "why", "figures"], rows, style="left", words=_WORDS)
