"""The results as Markdown: the page of the documentation, made anew from each archived run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gridbench.atomic_write import write_file
from gridbench.micro.present.each import against_each
from gridbench.micro.present.families import Family, families, side_by_side
from gridbench.micro.present.matrix import Row, matrix, percentiles
from gridbench.micro.present.notes import (
    behind,
    compared_engine,
    disturbed,
    gaps,
    headline,
    incomplete,
    machine_line,
    method,
    not_judged,
    reason,
    targets,
    undecided,
    unproven,
    when,
)
from gridbench.micro.present.wording import (
    compared_values,
    label,
    measured,
    median_with_interval,
    reached,
    titled,
    to_reach,
)
from gridbench.micro.record import Claim, FigureEntry, MicroFigure, Results
from gridbench.pages.markdown import escaped

ARCHIVE = "benchmarks/micro.json"
"""Where the results lie, as seen from the page, docs/performance.md."""
_COLUMNS = 4
"""Figures in one table."""


def write_markdown(results: Results, path: Path) -> None:
    """Write the page, completely or not at all. InputError if `path` cannot be written."""
    write_file(path, markdown(results))


def markdown(results: Results) -> str:
    """The page."""
    return "\n".join(_lines(results)).rstrip() + "\n"


def _lines(results: Results) -> Iterator[str]:
    yield from (
        "# Performance",
        "",
        "Why not Ray, Dask or a process pool? This page answers by measurement: the same small "
        "workloads on each engine, side by side on one machine. It is written by "
        "`gridbench micro`; all values of all runs are in "
        f"[{ARCHIVE.rpartition('/')[2]}]({ARCHIVE}).",
        "",
    )
    if told := incomplete(results):
        yield from (f"**{escaped(told)}**", "")
    yield from (f"{escaped(sentence)}" for sentence in headline(results))
    yield ""
    yield from _each(results)
    yield from _section("Where a peer is ahead", behind(results), "Nowhere in this run.")
    yield from _section("Provisional differences, not proven", unproven(results), "")
    yield from _section("No difference", undecided(results), "")
    yield from ("## How it was measured", "")
    yield from (f"{escaped(sentence)}" for sentence in method(results))
    yield from (
        "",
        f"Machine: {escaped(machine_line(results))}. Measured {escaped(when(results))}.",
        "",
    )
    versions = ([escaped(name), escaped(text)] for name, text in sorted(results.versions.items()))
    yield from _table(["", "version"], versions, numbers=False)
    yield from ("## Results", "")
    yield (
        "Medians with their 95 % interval, best first. Times and memory: less is better; rates: "
        f"more is better. {disturbed(results)}"
    )
    yield ""
    for family in families(results):
        if family.figures:
            yield from _family(family)
    if targets(results):
        yield from _targets(results)
    missing = [
        f"{label(gap.engine)}, {reason(gap.status, gap.why)}: {'; '.join(gap.figures)}"
        for gap in gaps(results.figures)
    ]
    missing += [f"{lead.what}: {lead.why}" for lead in not_judged(results)]
    yield from _section("What could not be measured", missing, "")
    yield from (
        "## How to repeat it",
        "",
        "`make bench-micro` installs the engines, each in an environment of its own, measures, and "
        "writes this page and the archive, in about an hour on two processors. "
        "`gridbench micro --quick` gives a first impression within minutes, and "
        "`gridbench micro --list` names the workloads. A run that was stopped goes on where "
        "it was.",
    )


def _targets(results: Results) -> Iterator[str]:
    yield from ("## Targets", "")
    rows = []
    for lead in targets(results):
        values = "; ".join(compared_values(results, lead))
        told = measured(results, lead) + (f" ({values})" if values else "")
        mark = f"**{reached(lead)}**" if lead.reached is False else reached(lead)
        what = f"{escaped(lead.what)}<br>{escaped(lead.engine)}"
        rows.append([what, escaped(to_reach(results, lead)), escaped(told), mark])
    yield from _table(["what", "target", "measured", "reached"], rows, numbers=False)


def _each(results: Results) -> Iterator[str]:
    peers, rows = against_each(results)
    if not rows:
        return
    yield from (
        f"## {compared_engine(results)} against each engine",
        "",
        "Times as good: 20× is a twentieth of the time or memory, or twenty times the rate. "
        "Below 1 (in bold) the other engine is ahead. In brackets: within the noise. With a "
        "question mark: provisional, as fewer than two undisturbed runs of both are known.",
        "",
    )
    styles: dict[Claim | None, str] = {
        "faster": "{}",
        "slower": "**{}**",
        "no difference": "({})",
        None: "{}",
    }
    shown = (
        [
            escaped(row.title),
            *(styles[cell.claim].format(escaped(cell.text)) for cell in row.cells),
        ]
        for row in rows
    )
    yield from _table(["", *map(escaped, peers)], shown)


def _family(family: Family) -> Iterator[str]:
    yield from (f"### {escaped(family.title)}", "")
    if family.about:
        yield from (escaped(family.about), "")
    for figures in side_by_side(family.figures, _COLUMNS):
        rows, notes = matrix(figures, _value)
        titles = [escaped(titled(figure.title)) for figure in figures]
        yield from _table(["", *titles], map(_cells, rows))
        yield from (f"- {escaped(line)}" for line in notes.lines())
        yield ""
    for figure in family.figures:
        names, shown = percentiles(figure)
        if shown:
            yield from (f"{escaped(titled(figure.title))}, percentiles:", "")
            yield from _table(["", *names], ([*map(escaped, row)] for row in shown))


def _cells(row: Row) -> list[str]:
    name = f"limit: {label(row.name)}" if row.kind == "limit" else row.name
    strong = row.kind in ("ours", "against peer", "against limit")
    if row.kind == "named":
        return [f"*{escaped(name)}*", *(f"*{escaped(cell)}*" for cell in row.cells)]
    first = f"**{escaped(name)}**" if strong else escaped(name)
    return [first, *map(escaped, row.cells)]


def _value(figure: MicroFigure, entry: FigureEntry) -> str:
    return median_with_interval(figure, entry.median or 0.0, entry.low, entry.high)


def _section(title: str, items: Sequence[str], otherwise: str) -> Iterator[str]:
    """A heading and a list; without items the other text, or nothing at all."""
    if not items and not otherwise:
        return
    yield from (f"## {title}", "")
    yield from (f"- {escaped(item)}" for item in items)
    yield from ([""] if items else [otherwise, ""])


def _table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True
) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|---|{('---:|' if numbers else '---|') * (len(head) - 1)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""
