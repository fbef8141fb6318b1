"""Figures in pages are those of the data files behind them: docs/figures.md says which."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from blocks import ROOT, pages

from benchmarks.pages.performance import PAGE, performance_files
from gridbench.formats import bit_rate, duration, percent
from gridbench.micro.record import load_results
from gridbench.result_kind import report_markdown
from gridbench.scenario.published import NINFG
from gridbench.statistics.interval import ratio_bounds

BENCHMARKS = ROOT / "docs" / "benchmarks"
SOURCES = "docs/figures.md"
REMAKE = "python -m benchmarks.pages.performance"
LONGEST = 2500
"""Words of a page that is no reference."""

#: A cell that holds a measured figure, and nothing but such: "8.04 µs", "3.5 s (3.4-3.7)", "82 %".
FIGURE = re.compile(
    r"\*{0,2}(below )?[-+<]? ?[\d.,]+( to [\d.,]+)?[\s\xa0]?"
    r"(ns|µs|us|ms|s|%|×|x|/s|[kM]/s|[KMG]?B|[KMG]?B/s|[KMG]?bit/s|calls/s)\b.*"
)


def cells(line: str) -> list[str]:
    """Of a row of a table, as they are read."""
    text = re.sub(r"\\([\\`*_\[\]<>])", r"\1", line.strip())
    return [cell.strip() for cell in text.removeprefix("|").removesuffix("|").split(" |")]


def rows(page: str) -> Iterator[list[str]]:
    """All rows of all tables of a page."""
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("|"):
            yield cells(line)


def read(name: str) -> Any:
    return json.loads((BENCHMARKS / name).read_text(encoding="utf-8"))


# Each page with measured figures says where they are from.


def describe() -> dict[str, list[str]]:
    """What docs/figures.md says of each page, by its path."""
    found: dict[str, list[str]] = {}
    for row in rows(SOURCES):
        for name in re.findall(r"\]\(([\w./-]+\.md)(?:#[\w-]*)?\)", row[0]):
            path = str((ROOT / "docs" / name).resolve().relative_to(ROOT))
            found[path] = row
    return found


#: Pages whose tables have sizes and times that nobody measured: limits and defaults.
SET = {"docs/coming-from-ninf-g.md", "docs/linpack.md"}

MEASURED = sorted(
    page
    for page in pages()
    if page not in {SOURCES, *SET}
    and any(FIGURE.fullmatch(cell) for row in rows(page) for cell in row)
)


def test_pages_with_tables_of_figures_are_found() -> None:
    assert {"docs/performance.md", "docs/measured.md", "docs/sync-method.md", "docs/slurm.md"} <= {
        *MEASURED
    }


@pytest.mark.parametrize("page", MEASURED)
def test_it_is_reported_where_the_figures_of_a_page_are_from(page: str) -> None:
    assert page in describe(), f"say in {SOURCES} where the figures of {page} are from"


@pytest.mark.parametrize("page", describe())
def test_what_is_reported_is_there(page: str) -> None:
    assert (ROOT / page).exists()
    _, *stored, again = describe()[page]
    assert again
    if len(stored) < 2:  # when it was measured, for there is no file
        assert re.match(r"2026-\d\d-\d\d", stored[0])
        return
    file, held = stored
    for name in re.findall(r"`(docs/[\w./-]+\.json)`", file):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"`(tests/[\w./-]+\.py)`", held):
        test = (ROOT / name).read_text(encoding="utf-8")
        assert Path(page).name in test or page in test, f"{name} says nothing of {page}"


# Each page is held against its file.


def test_performance_is_made_of_the_kept_results() -> None:
    """docs/performance.md, docs/benchmarks/micro.md and their picture."""
    made = performance_files(load_results(BENCHMARKS / "micro.json"))
    assert len(made) == 3
    for name, text in made.items():
        stored = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert stored == text, f"docs/{name}: make it again with `{REMAKE}`"
    assert len(made[PAGE].split()) <= LONGEST


def test_scenarios_are_reported_as_the_kept_cases_have_them() -> None:
    folders = sorted((BENCHMARKS / "scenarios").iterdir())
    page = (BENCHMARKS / "scenarios.md").read_text(encoding="utf-8")
    made = report_markdown(folders)
    assert page.partition("\n## Results\n\n")[2] == made
    assert made.count(NINFG) > 6


def agree(cell: str, value: float) -> bool:
    """Whether a cell begins with the value, with as many digits as it shows."""
    found = re.match(r"([\d,]+(?:\.(\d+))?)", cell)
    assert found, cell
    shown, digits = float(found[1].replace(",", "")), len(found[2] or "")
    return abs(shown - value) <= 0.5001 * 10.0**-digits


AREAS = ("docs/benchmarks/cluster.md",)
"""Pages that `python -m benchmarks` has written, with its results beside them."""


def kept_rows(page: str) -> dict[tuple[str, str], Any]:
    """Of the results beside a page by area and what they are of."""
    return {
        (area["title"], row["what"]): row
        for area in read(f"{Path(page).stem}.json")["areas"].values()
        for row in area["rows"]
    }


def page_rows(page: str) -> Iterator[tuple[tuple[str, str], dict[str, str]]]:
    """Rows of the page by area and what they are of, with their cells by column."""
    title, header = "", list[str]()
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            title, header = line.removeprefix("## "), []
        elif line.startswith("| what"):
            header = cells(line)
        elif line.startswith("| "):
            yield (title, cells(line)[0]), dict(zip(header, cells(line), strict=True))


@pytest.mark.parametrize("page", AREAS)
def test_tables_of_a_benchmark_are_those_of_the_kept_results(page: str) -> None:
    found, stored = dict(page_rows(page)), kept_rows(page)
    assert found.keys() == stored.keys()
    for key, shown in found.items():
        row = stored[key]
        for column in ("gridrpc", "peer"):
            cell = shown.get(f"{column}: median (spread)", "-")
            if row[column] is None:
                assert cell == "-", key
                continue
            assert agree(cell, row[column]["median"]), key
            low, high = re.search(r"\(([\d.]+)-([\d.]+)\)", cell).groups()  # type: ignore[union-attr]
            assert agree(low, min(row[column]["values"])), key
            assert agree(high, max(row[column]["values"])), key
        if row["limit"] is not None:
            assert agree(shown["limit"], row["limit"]["median"]), key
        reached = {True: "yes", False: "no", None: "-"}[row["reached"]]
        assert shown.get("reached", "-") == reached, key


def test_advice_for_ten_jobs_is_that_of_the_kept_results() -> None:
    page = {row[0]: row for row in rows("docs/advice-models.md")}
    works = read("advice.json")["works"]
    assert len(works) == 10
    for work in works:
        split, tried = work["advised"], work["tried"]
        advised, rival = tried["advised"], tried["rival"]
        assert (split["tasks"], split["cores"]) == (advised["tasks"], advised["cores"])
        ours, theirs = (one["again"] or one["totals"] for one in (advised, rival))
        bounds = ratio_bounds(ours, theirs)
        assert bounds is not None
        expected = [
            f"{advised['tasks']:,} tasks on {advised['cores']:,}",
            duration(median(ours)),
            f"{rival['tasks']:,} tasks on {rival['cores']:,}",
            duration(median(theirs)),
            f"{tried['ratio']:.3f} ({bounds[0]:.2f} to {bounds[1]:.2f})",
        ]
        assert page[work["name"]][1:6] == expected


def test_how_long_the_first_advice_takes_is_that_of_the_kept_results() -> None:
    jobs = read("first-advice.json")["jobs"]
    text = " ".join((ROOT / "docs/advice-models.md").read_text(encoding="utf-8").split())
    with_data = [job for job in jobs if "--input" in job["options"]]
    for what, some in (
        ("without data", [job for job in jobs if job not in with_data]),
        ("with", with_data),
    ):
        took = [one["seconds"] for job in some for one in job["answers"]]
        low, middle, high = (f"{value:.1f}" for value in (min(took), median(took), max(took)))
        assert re.search(rf"{middle} s \({low} to {high} in {len(took)}( calls)?\) {what}", text)
    overlapping = [
        max(one["low"] for one in job["answers"]) <= min(one["high"] for one in job["answers"])
        for job in jobs
    ]
    assert all(overlapping)
    assert f"the three intervals overlapped for all {len(jobs)}" in text


OLD_LOGS = read("old-logs.json")


def test_errors_of_models_of_old_logs_are_those_of_the_kept_results() -> None:
    page = {row[0]: row for row in rows("docs/advice-models.md")}
    for name, stored in (
        ("Symphony, simulated", OLD_LOGS["simulated"]["symphony"]),
        ("Ninf-G, simulated", OLD_LOGS["simulated"]["ninfg"]),
        ("gridrpc, real", OLD_LOGS["real"]),
    ):
        shown = [
            f"{percent(stored['held_out'][way]['overhead_median'])},"
            f" {percent(stored['held_out'][way]['overhead_90th_percentile'])}"
            for way in ("random", "cores", "size")
        ]
        assert page[name][1:] == [f"{stored['logs']}", *shown], name
    text = " ".join((ROOT / "docs/advice-models.md").read_text(encoding="utf-8").split())
    errors, others = (
        sorted(abs(one["error"]) for one in OLD_LOGS["simulated"][name]["published"])
        for name in ("symphony", "ninfg")
    )
    assert f"by {percent(median(errors))} in the median and {percent(errors[-1])} at most" in text
    assert f"by up to {percent(others[-2], 0)} and once by {percent(others[-1], 0)}" in text


def test_what_links_carry_is_that_of_the_kept_results() -> None:
    page = {row[0]: row[1:] for row in rows("docs/links.md")}
    rounds = read("links.json")["rounds"]
    trips = []
    for stored in zip(*rounds, strict=True):
        rate = stored[0]["rate"]
        single, together = [], []
        for one in (again["measured"] for again in stored):
            for node in one["nodes"]:
                single += node["rates"].values()
                trips.append(node["round_trip"])
            together += one["together"].values()
        assert page[bit_rate(rate)] == [
            between([value / rate for value in values]) for values in (single, together)
        ]
    text = " ".join((ROOT / "docs/links.md").read_text(encoding="utf-8").split())
    assert f"a round trip took {min(trips) * 1e6:.0f} to {max(trips) * 1e6:.0f} µs" in text


def between(shares: list[float]) -> str:
    """`80 to 96 %`."""
    ends = dict.fromkeys(f"{share * 100:.0f}" for share in (min(shares), max(shares)))
    return f"{' to '.join(ends)} %"


SLURM = {row[0]: row[1] for row in rows("docs/slurm.md") if len(row) == 3}


TASKS = "1,000 tasks of 0.1 s on 100 workers, emulated-slurm"
JOBS = "100 tasks of 1 s, with start-up; peer: emulated-slurm-jobs"


@pytest.mark.parametrize(
    ("cited", "area", "what"),
    [
        ("100 native workers, `request", "100 native workers", "one request, which Slurm begins"),
        ("the same, `request = ", "100 native workers", "one request, which waits"),
        ("the same, a request for each", "100 native workers", "a request for each worker"),
        (
            "24 Python workers",
            "100 native workers",
            "24 Python workers, emulated-slurm; peer: emulated-slurm-dask",
        ),
        ("1,000 tasks of 0.1 s", "1,000 tasks", f"{TASKS}, after"),
        ("the same with start-up", "1,000 tasks", f"{TASKS}, with"),
        ("100 tasks of 1 s", "100 tasks of 1 s as jobs", JOBS),
    ],
)
def test_figures_of_slurm_are_those_of_the_kept_results(cited: str, area: str, what: str) -> None:
    (shown,) = [cell for row, cell in SLURM.items() if row.startswith(cited)]
    found = [
        row
        for (title, name), row in kept_rows(AREAS[0]).items()
        if title.startswith(area) and name.startswith(what)
    ]
    (row,) = found
    assert agree(shown, row["gridrpc"]["median"])
