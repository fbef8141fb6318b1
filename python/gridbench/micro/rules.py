"""The rules for results of micro benchmarks: see docs/rules.md."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gridbench.bench.points import DataPoint, Points
from gridbench.formats import counted, named
from gridbench.jsonl_store import Header, load_records
from gridbench.micro.catalogue import PEER
from gridbench.micro.record import FORM, RESULTS, FigureEntry, MicroFigure, Results, load_results
from gridbench.micro.results import catalogue_of, results_of, series_of
from gridbench.micro.workloads import AGAIN, ON_SERVERS
from gridbench.rules import Rules, Seen, broken_by, recorded
from gridbench.statistics.claims import ENOUGH

_OURS = "gridrpc"
_NO_POINTS = f"{FORM.file} is not beside the results"


@dataclass(frozen=True, slots=True)
class MicroEvidence:
    """The results with their points, as the rules look at them."""

    results: Results
    kept: tuple[Header, list[DataPoint]] | None
    """What they were made of; None: it is not there."""

    @property
    def values(self) -> Iterator[tuple[MicroFigure, FigureEntry]]:
        """All that has a value, limits too."""
        for figure in self.results.figures:
            for entry in (*figure.entries, *figure.limits):
                if entry.median is not None:
                    yield figure, entry

    @property
    def claimed(self) -> list[MicroFigure]:
        """The figures with an engine ahead, or behind."""
        return [
            figure
            for figure in self.results.figures
            if any(ratio.claim != "no difference" for ratio in figure.ratios.values())
        ]


def read(source: Path) -> MicroEvidence:
    """The results in a folder or file. InputError if they cannot be read."""
    results = load_results(source)
    file = source if source.is_dir() else source.parent
    # The points of another folder's results would be others.
    beside = source.is_dir() or source.name == RESULTS
    points = file / FORM.file
    return MicroEvidence(
        results, load_records(points, FORM) if beside and points.is_file() else None
    )


def _complete(found: MicroEvidence) -> Seen:
    extent = found.results.extent
    if extent is None:
        return "not known", "the results do not say how much was planned"
    reported = f"{extent.points:,} of {counted(extent.planned, 'planned point')} are there"
    return ("kept" if extent.points >= extent.planned else "broken"), reported


def _no_failure_is_hidden(found: MicroEvidence) -> Seen:
    if found.kept is None:
        return "not known", _NO_POINTS
    shown = {
        (figure.id, entry.engine): entry.status
        for figure in found.results.figures
        for entry in figure.entries
    }
    points = Points(found.kept[1])
    failed = [
        (kind.id, engine)
        for kind in catalogue_of(points)
        for engine, series in series_of(kind, points).items()
        if series.status == "failed" and not engine.endswith(AGAIN)
    ]
    hidden = [f"{engine} in {name}" for name, engine in failed if _ok(shown.get((name, engine)))]
    reported = f"{counted(len(failed), 'value')} failed, and the figures say so" if failed else ""
    return broken_by(
        hidden, "the figures do not tell that rounds failed", reported or "none failed"
    )


def _ok(status: str | None) -> bool:
    """Whether nothing says that something failed: an engine that is left out says nothing."""
    return status in (None, "ok")


def _figures(found: MicroEvidence) -> Seen:
    wrong = [f"{entry.engine} in {figure.id}" for figure, entry in found.values if _off(entry)]
    if wrong:
        return "broken", f"medians are not those of the values: {named(wrong)}"
    if found.kept is None:
        return "kept", f"medians follow from their values; {_NO_POINTS}"
    again = {figure.id: figure for figure in results_of(*found.kept, found.results.ended).figures}
    differ = [
        figure.id
        for figure in found.results.figures
        if _essence(figure) and _essence(figure) != _essence(again.get(figure.id))
    ]
    reported = f"values and claims, worked out again from {counted(len(found.kept[1]), 'point')}"
    return broken_by(differ, f"other values or claims follow from {FORM.file}", reported)


def _off(entry: FigureEntry) -> bool:
    """Whether what an entry says does not follow from its values."""
    # Older files do not say which of the values were disturbed.
    reported = bool(entry.undisturbed)
    return (
        not entry.values
        or entry.median != statistics.median(entry.values)
        or entry.runs != len(entry.values)
        or (reported and entry.disturbed_runs != entry.runs - len(entry.undisturbed))
    )


def _essence(figure: MicroFigure | None) -> tuple[object, ...] | None:
    """What is claimed in a figure, and what from; None: it has no values. What never was tried has
    entries that points do not tell of."""
    entries = [] if figure is None else [*figure.entries, *figure.limits]
    values = {e.engine: (e.values, e.disturbed_runs) for e in entries if e.values}
    if figure is None or not values:
        return None
    claims = {engine: ratio.claim for engine, ratio in figure.ratios.items()}
    return values, claims, figure.noise, figure.best_peer


def _equals(found: MicroEvidence) -> Seen:
    claimed = found.claimed
    without = [figure.id for figure in claimed if figure.noise == 1.0]
    if not claimed:
        return "kept", "nothing is claimed"
    if len(without) == len(claimed):
        return "broken", "no engine was measured twice, as if it were two"
    if without:
        figures = counted(len(claimed), "figure")
        return "not known", f"of {figures} with claims, these have no twin: {named(without)}"
    return "kept", f"in {counted(len(claimed), 'figure')} with claims equals were measured too"


def _repeated(found: MicroEvidence) -> Seen:
    sound = {(f.id, e.engine): e.runs - e.disturbed_runs for f, e in found.values}
    rests = [(figure, engine) for figure, engine in _rests_on(found) if (figure, engine) in sound]
    few = [
        f"{engine} in {figure} {counted(sound[figure, engine], 'time')}"
        for figure, engine in dict.fromkeys(rests)
        if sound[figure, engine] < ENOUGH
    ]
    reported = (
        f"{counted(len(set(rests)), 'value')} that claims and targets rest on" if rests else ""
    )
    return broken_by(few, f"undisturbed less than {ENOUGH} times", reported or "nothing is claimed")


def _rests_on(found: MicroEvidence) -> Iterator[tuple[str, str]]:
    """Figures and engines that claims, and judged targets, are of."""
    for figure in found.claimed:
        for engine, ratio in figure.ratios.items():
            if ratio.claim != "no difference":
                yield figure.id, engine
                yield figure.id, figure.best_peer or ""
    for lead in found.results.lead:
        if lead.reached is not None:
            yield lead.figure, lead.engine
            yield lead.of or lead.figure, lead.against.removeprefix(f"{PEER}: ")


def _recorded(found: MicroEvidence) -> Seen:
    versions = found.results.versions
    engines = {e.engine for figure in found.results.figures for e in figure.entries if e.values}
    # Variants of an engine are named after a comma, and those on servers like those here.
    bases = {name.removesuffix(ON_SERVERS).partition(", ")[0] for name in engines}
    lacks = [f"the version of {n}" for n in sorted(bases - versions.keys()) if _OURS not in n]
    if not found.results.ended:
        lacks.append("when it ended")
    return recorded(found.results.machine, versions, lacks)


_EACH: dict[str, Callable[[MicroEvidence], Seen]] = {
    "complete": _complete,
    "no failure is hidden": _no_failure_is_hidden,
    "figures follow from the values": _figures,
    "equals were measured too": _equals,
    "claims were repeated undisturbed": _repeated,
    "who measured what, where": _recorded,
}

RULES = Rules(key="micro", read=read, each=_EACH)
