"""Tables: engines down and figures across, one engine against each other, targets, and gaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter

from gridbench.formats import NOTHING, amount, times
from gridbench.micro.present.families import best_first, engines_best_first, families
from gridbench.micro.present.sentences import (
    compared_engine,
    enough_undisturbed,
    gaps,
    not_judged,
    reason,
    targets,
)
from gridbench.micro.present.wording import (
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
from gridbench.micro.record import FigureEntry, Lead, MicroFigure, Results
from gridbench.pages.table import Cell, Column, Table, range_of, table_of
from gridbench.statistics.interval import Interval

_DISTURBED = "other programs disturbed some of its runs"
_WORDS = frozenset({"why", "figures", "target", "measured", "reached"})


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
    rows = [
        [name, *(_value(figure, figure.entries, name, notes) for figure in figures)]
        for name in engines
    ]
    styles = [""] * len(engines)
    for name in dict.fromkeys(limit.engine for figure in figures for limit in figure.limits):
        cells = [_value(figure, figure.limits, name, notes) for figure in figures]
        rows.append([f"limit: {label(name)}", *cells])
        styles.append("uncounted")
    own = [name for name in engines if ours(name)]
    for title, others, told in (
        ("best peer", [figure.best_peer or "" for figure in figures], against_peer),
        ("limit", [first_limit(figure) for figure in figures], against_limit),
    ):
        compared = [[name, *(told(figure, name) for figure in figures)] for name in own]
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
    """A row for each figure in which `compared_engine` has a value and a peer: how many times as
    good as each peer it is.

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
