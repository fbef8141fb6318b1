"""The figures of a family as one table: engines down, figures across, footnotes below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal

from gridbench.formats import NOTHING, amount
from gridbench.micro.present.families import best_first, engines_best_first, has_value, ours
from gridbench.micro.present.notes import reason
from gridbench.micro.present.wording import (
    against_limit,
    against_peer,
    first_limit,
    label,
    status_word,
)
from gridbench.micro.record import Claim, FigureEntry, MicroFigure

RowKind = Literal["ours", "peer", "limit", "named", "against peer", "against limit"]
CellText = Callable[[MicroFigure, FigureEntry], str]
_DISTURBED = "other programs disturbed some of its runs"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    kind: RowKind
    name: str
    cells: tuple[str, ...]
    claims: tuple[Claim | None, ...] = ()
    """For each cell that compares with the best peer, what is claimed."""


@dataclass(slots=True)
class Footnotes:
    """Texts by the mark they have in the table; the same text has one mark."""

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


def matrix(figures: tuple[MicroFigure, ...], text: CellText) -> tuple[list[Row], Footnotes]:
    """Rows for the engines, the limits, and the comparisons of those that are ours.

    `text` gives a value with its interval as the table's reader is to see it.
    """
    notes = Footnotes()
    engines = engines_best_first(figures)
    rows = [
        Row(
            "ours" if ours(name) else "peer",
            name,
            tuple(_cell(f, f.entries, name, text, notes) for f in figures),
        )
        for name in engines
    ]
    limits = dict.fromkeys(limit.engine for figure in figures for limit in figure.limits)
    rows += [
        Row("limit", name, tuple(_cell(f, f.limits, name, text, notes) for f in figures))
        for name in limits
    ]
    own = [name for name in engines if ours(name)]
    compared: list[Row] = []
    for name in own:
        claims = tuple(f.ratios[name].claim if name in f.ratios else None for f in figures)
        cells = tuple(against_peer(f, name) for f in figures)
        compared.append(Row("against peer", name, cells, claims))
    rows += _headed("against best peer", [f.best_peer for f in figures], compared)
    compared = [
        Row("against limit", name, tuple(against_limit(f, name) for f in figures)) for name in own
    ]
    rows += _headed("against limit", [first_limit(f) for f in figures], compared)
    return rows, notes


def percentiles(figure: MicroFigure) -> tuple[list[str], list[list[str]]]:
    """The names of the percentiles that any entry has, and a row with an engine's name for each."""
    entries = [e for e in (*best_first(figure), *figure.limits) if e.percentiles and has_value(e)]
    known = {name for entry in entries for name in entry.percentiles or {}}
    names = sorted(known, key=float)
    rows = [
        [label(e.engine), *(amount((e.percentiles or {}).get(n), figure.unit) for n in names)]
        for e in entries
    ]
    return [f"{name} %" for name in names], rows


def _headed(title: str, others: Sequence[str | None], compared: Sequence[Row]) -> list[Row]:
    """Comparisons below a line that says with whom; nothing if no figure has any."""
    known = [row for row in compared if any(cell != NOTHING for cell in row.cells)]
    if not known:
        return []
    return [Row("named", title, tuple(label(name or NOTHING) for name in others)), *known]


def _cell(
    figure: MicroFigure,
    entries: tuple[FigureEntry, ...],
    name: str,
    text: CellText,
    notes: Footnotes,
) -> str:
    entry = next((entry for entry in entries if entry.engine == name), None)
    if entry is None:
        return NOTHING
    if not has_value(entry):
        if not entry.why:
            return status_word(entry.status)
        return f"{status_word(entry.status)} {notes.mark(reason(entry.status, entry.why))}"
    shown = text(figure, entry)
    if entry.note:
        shown = f"{shown} {notes.mark(entry.note)}"
    return f"{shown}{notes.star(_DISTURBED)}" if entry.disturbed_runs else shown
