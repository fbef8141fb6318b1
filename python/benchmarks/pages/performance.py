"""docs/performance.md: key figures with their picture, and all tables on another page.

    python -m benchmarks.pages.performance [FILE]

FILE has the results of `gridbench micro`: docs/benchmarks/micro.json, unless another is named.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gridbench.atomic_write import write_file
from gridbench.formats import amount, interval
from gridbench.micro.document import document_of
from gridbench.micro.record import MicroFigure, Results, load_results
from gridbench.micro.sentences import compared_engine, machine_line, when
from gridbench.micro.tables import Family, families
from gridbench.micro.wording import advantage, against_peer, indicated, peer_interval, titled
from gridbench.pages.colours import SERIES
from gridbench.pages.document import escaped, markdown
from gridbench.pages.svg import Bar, bars

PAGE, TABLES, PICTURE = "performance.md", "benchmarks/micro.md", "benchmarks/micro.svg"
"""The files, as seen from docs/."""
ARCHIVE = "benchmarks/micro.json"
"""The results behind them."""
_DOCS = Path(__file__).resolve().parents[3] / "docs"
KEY_FIGURES = (
    "null_call",
    "null_rate",
    "map_rate",
    "argument_10MB",
    "shared_100MB_later",
    "start_2_first",
    "start_100_all",
    "memory_100",
    "metg_50",
    "work_spin",
)
"""Ids of the figures that open the page: calls, data, starting, memory, and what tasks gain."""
_OPENING = frozenset({"behind", "unproven", "undecided", "method"})
"""Sections that stay on the page; all others have tables of all figures."""


def performance_files(results: Results) -> dict[str, str]:
    """The text of each file, by its name as seen from docs/."""
    files = {PAGE: _page(results), TABLES: _tables(results)}
    if _key_figures(results):
        files[PICTURE] = _picture(results)
    return files


def _page(results: Results) -> str:
    document = document_of(results)
    opening = [section for section in document.sections if section.id in _OPENING]
    key_figures = "".join(line + "\n" for line in _key_lines(results))
    return (
        "# Performance\n\n"
        "How fast is gridrpc beside Ray, Dask or a process pool? `gridbench micro` ran the same"
        " small workloads on each engine, in turns on one machine, and wrote this page."
        f" [All tables]({TABLES}) have every figure on every engine, and"
        f" [{Path(ARCHIVE).name}]({ARCHIVE}) has the values of all runs.\n\n"
        f"{key_figures}{markdown(replace(document, sections=opening))}\n"
        "## How to repeat it\n\n"
        "`make bench-micro` installs the engines, each in an environment of its own, measures, and"
        " writes this page, its tables and the archive, in about an hour on two processors."
        " `gridbench micro --quick` gives a first impression within minutes, and"
        " `gridbench micro --list` names the workloads. A run that was stopped resumes.\n"
    )


def _tables(results: Results) -> str:
    document = document_of(results)
    others = [section for section in document.sections if section.id not in _OPENING]
    return (
        "# All figures of all engines\n\n"
        f"The tables behind [Performance](../{PAGE}), which says how they were measured and"
        f" the result. [{Path(ARCHIVE).name}]({Path(ARCHIVE).name}) has the values of all runs.\n\n"
        f"Machine: {escaped(machine_line(results))}. Measured {escaped(when(results))}.\n\n"
        f"{markdown(replace(document, sentences=[], sections=others))}"
    )


# ---- Key figures


def _key_figures(results: Results) -> list[tuple[Family, MicroFigure]]:
    """Those that were measured beside a peer, each with the family that its table is of."""
    engine = compared_engine(results)
    known = {
        figure.id: (family, figure)
        for family in families(results)
        for figure in family.figures
        if figure.best_peer and engine in figure.ratios and figure.ratios[engine].to_peer
    }
    return [known[name] for name in KEY_FIGURES if name in known]


def _key_lines(results: Results) -> Iterator[str]:
    """The table and the picture; nothing without any key figure."""
    figures, engine = _key_figures(results), compared_engine(results)
    if not figures:
        return
    yield "## Key figures"
    yield ""
    yield (
        f"Machine: {escaped(machine_line(results))}. Measured {escaped(when(results))}. Medians;"
        " in brackets their 95 % interval, or of fewer than six runs the smallest and the largest."
        " The best peer is the engine with the best median apart from gridrpc's own. A star says"
        " that other programs disturbed some of the runs."
    )
    yield ""
    yield f"| figure, with its table | {escaped(engine)} | best peer | comparison |"
    yield "|---|---:|---:|---:|"
    for family, figure in figures:
        peer, between = figure.best_peer or "", peer_interval(figure, engine)
        cells = (
            f"[{escaped(titled(figure.title))}]({TABLES}#{_anchor(family.title)})",
            _value(figure, engine),
            f"{escaped(peer)} {_value(figure, peer)}",
            against_peer(figure, engine) + (f"<br>({between})" if between else ""),
        )
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield f"![{escaped(_caption(engine))}]({PICTURE})"
    yield ""
    yield (
        f"How many times as good {escaped(engine)} is as the best peer, on a logarithmic scale:"
        " 20× is a twentieth of the time or memory, or twenty times the rate. Left of the line at"
        " 1× the peer is ahead. A pale mark is within the noise."
    )
    yield ""


def _value(figure: MicroFigure, engine: str) -> str:
    """`7.08 µs (7.00–8.17)`."""
    entry = next(entry for entry in figure.entries if entry.engine == engine)
    median = entry.median or 0.0
    star = "\\*" if entry.disturbed_runs else ""
    low, high = entry.low, entry.high
    if low is None and len(entry.values) > 1:
        low, high = min(entry.values), max(entry.values)
    between = interval(low, high, figure.unit, around=median)
    return f"{escaped(amount(median, figure.unit))}{star}" + (f"<br>({between})" if between else "")


def _anchor(title: str) -> str:
    """Where links to a heading lead, as GitHub names it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _caption(engine: str) -> str:
    return f"Advantage of {engine} over the best peer in the key figures"


def _picture(results: Results) -> str:
    engine = compared_engine(results)
    shown = [_bar(figure, engine) for _, figure in _key_figures(results)]
    return bars(shown, "x", _caption(engine), reference=1.0, paper=True) + "\n"


def _bar(figure: MicroFigure, engine: str) -> Bar:
    found = advantage(figure, figure.ratios[engine])
    assert found is not None  # key figures have a peer
    value, low, high = found
    own, peer = (
        next((e.median for e in figure.entries if e.engine == name), None)
        for name in (engine, figure.best_peer)
    )
    return Bar(
        f"{titled(figure.title)}: {amount(own, figure.unit)},"
        f" {figure.best_peer} {amount(peer, figure.unit)}",
        value,
        low or value,
        high or value,
        colour=SERIES[1 if value < 1 else 0],
        hollow=indicated(figure, engine) == "no difference",
    )


def main() -> None:
    """Write the page, its tables and its picture."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages.performance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, nargs="?", default=_DOCS / ARCHIVE, metavar="FILE")
    for name, text in performance_files(load_results(parser.parse_args().file)).items():
        write_file(_DOCS / name, text)
        print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
