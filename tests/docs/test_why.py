"""The figures of docs/why.md and docs/faq.md are those of docs/benchmarks/micro.md."""

from __future__ import annotations

import re

import pytest
from blocks import ROOT


def cells(line: str) -> list[str]:
    """The cells of a row of a table, without emphasis."""
    return [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]


def tables(page: str) -> dict[tuple[str, str], str]:
    """The values of all tables of a page, by row and column."""
    found: dict[tuple[str, str], str] = {}
    header: list[str] = []
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            header = []
        elif not header:
            header = cells(line)
        else:
            row = cells(line)
            for column, cell in zip(header, row, strict=True):
                # The first is the value; behind it come comparisons with others.
                found.setdefault((row[0], column), cell)
    return found


MEASURED = tables("docs/benchmarks/micro.md")
ENGINES = ("gridrpc-python", "process-pool", "loky", "mpi", "ray", "dask")
CITED = [
    pytest.param(engine, column, cell, id=f"{engine}: {column}")
    for (engine, column), cell in tables("docs/why.md").items()
    if engine in ENGINES and column
]


def test_figures_are_cited() -> None:
    assert len(CITED) == 5 * len(ENGINES)


@pytest.mark.parametrize(("engine", "column", "cell"), CITED)
def test_figure_is_the_one_that_was_measured(engine: str, column: str, cell: str) -> None:
    # Behind the median stand its interval and marks.
    measured = re.match(r"[^(\\]*", MEASURED[engine, column])
    assert measured is not None
    assert cell == measured[0].strip(), "the figures were measured again: change docs/why.md"


def test_sentence_about_long_tasks_has_the_figures_that_were_measured() -> None:
    column = "1000 tasks of 0.1 s on 100 workers; the ideal is 1 s"
    ours, theirs = (MEASURED[engine, column].split(" (")[0] for engine in ENGINES[:2])
    page = " ".join((ROOT / "docs/why.md").read_text(encoding="utf-8").split())
    assert f"take {ours} with gridrpc and {theirs} with the process pool" in page


def test_what_a_call_costs_is_what_was_measured() -> None:
    """docs/faq.md."""
    call, stream, items = (
        re.split(r" \(| \\", MEASURED["gridrpc-python", column])[0]
        for column in (
            "A call that does nothing, one after the other",
            "Null calls per second, submitted singly",
            "Null calls per second by map, each engine with its best chunk size",
        )
    )
    page = " ".join((ROOT / "docs/faq.md").read_text(encoding="utf-8").split())
    assert f"takes {call}, a stream of submitted calls runs at {stream}" in page
    assert f"and `map` reaches {items} because" in page
