"""One engine of ours against each peer, figure by figure: the answer to "why not that one?"."""

from __future__ import annotations

from dataclasses import dataclass

from gridbench.formats import NOTHING, times
from gridbench.micro.present.families import families, has_value, ours
from gridbench.micro.present.notes import compared_engine, enough_undisturbed
from gridbench.micro.present.wording import status_word, titled
from gridbench.micro.record import Claim, MicroFigure, Results


@dataclass(frozen=True, slots=True)
class Cell:
    """How many times as good as a peer; without a value why, in a word."""

    text: str
    claim: Claim | None
    """None if the peer has no value."""
    proven: bool = True
    """Whether there are enough undisturbed runs of both."""


@dataclass(frozen=True, slots=True)
class Against:
    """A figure, and a cell for each peer."""

    title: str
    cells: tuple[Cell, ...]


def against_each(results: Results) -> tuple[list[str], list[Against]]:
    """The peers, and a row for each figure in which one can be compared with `compared_engine`.

    Ratios are those of the medians, and what is within the figure's noise is no difference.
    Variants of an engine, named after a comma, do something else and are left out.
    """
    engine = compared_engine(results)
    figures = [figure for family in families(results) for figure in family.figures]
    known = [figure for figure in figures if figure.best_peer and _median(figure, engine)]
    names = {entry.engine for figure in known for entry in figure.entries}
    peers = sorted(name for name in names if not ours(name) and ", " not in name)
    rows = [
        Against(titled(figure.title), tuple(_cell(figure, engine, peer) for peer in peers))
        for figure in known
    ]
    return peers, rows


def _cell(figure: MicroFigure, engine: str, peer: str) -> Cell:
    entry = next((entry for entry in figure.entries if entry.engine == peer), None)
    if entry is None:
        return Cell(NOTHING, None)
    if not has_value(entry):
        return Cell(status_word(entry.status), None)
    own, other = _median(figure, engine), entry.median
    proven = enough_undisturbed(figure, engine, peer)
    if not own or not other:
        return Cell(NOTHING, None)
    good = other / own if figure.better == "less" else own / other
    if max(good, 1 / good) <= figure.noise:
        return Cell(times(good), "no difference")
    return Cell(
        times(good) if proven else f"{times(good)}?", "faster" if good > 1 else "slower", proven
    )


def _median(figure: MicroFigure, name: str) -> float | None:
    return next((e.median for e in figure.entries if e.engine == name and has_value(e)), None)
