"""Pages of tables that are made of kept measurements, and pages that cite them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from blocks import ROOT

from benchmarks.figures import Extent
from benchmarks.runner import AREAS
from benchmarks.table import markdown_of
from gridbench.bench.points import DataPoint, Points
from gridbench.formats import amount, percent
from gridbench.records import from_record
from gridbench.result_kind import report_markdown

KEPT = ROOT / "docs" / "benchmarks"


def read(name: str) -> Any:
    return json.loads((KEPT / name).read_text(encoding="utf-8"))


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["hosts", "sync", "data", "server"])
def test_tables_of_bench_are_those_of_the_kept_points(name: str) -> None:
    """docs/benchmarks/hosts.md, sync.md, data.md and server.md."""
    record = read(f"{name}.json")
    points = Points(from_record(DataPoint, one) for one in record["points"])
    shown = page(f"benchmarks/{name}.md")
    areas = [make(Extent(record["extent"])) for make in AREAS[name].values()]
    measured = [area for area in areas if area.name in record["areas"]]
    assert measured
    for area in measured:
        assert markdown_of(area.title, area.rows(points)) in shown, area.name


FOLDERS = {
    "crossover.md": ["crossover"],
    "sync-storage.md": [f"sync-storage/{name}" for name in ("1-files", "2-directories", "3-fuse")],
    "ensemble.md": [f"ensemble/{one.name}" for one in sorted((KEPT / "ensemble").iterdir())],
}


@pytest.mark.parametrize("name", FOLDERS)
def test_tables_of_a_page_are_made_of_its_folders(name: str) -> None:
    """docs/benchmarks/crossover.md, ensemble.md and sync-storage.md."""
    shown = page(f"benchmarks/{name}")
    for folder in FOLDERS[name]:
        sources = [KEPT / folder]
        assert report_markdown(sources) in shown, folder


def test_the_answers_of_the_page_on_shared_data_are_those_of_the_measurement() -> None:
    """docs/shared-data-or-data-grid.md."""
    section = page("shared-data-or-data-grid.md").split("\n## On two cores\n")[1].split("\n## ")[0]
    answers = [" ".join(one.split()) for one in re.findall(r"^- (.*(?:\n  .*)*)", section, re.M)]
    assert len(answers) == 6
    assert not set(answers) - set(page("benchmarks/crossover.md").splitlines())


def simulated() -> Iterator[str]:
    """The rows of docs/simulate-accuracy.md on large grids."""
    for name, took in read("simulate.json")["profiles"].items():
        with_report = ", with timeline, log and report" if took["written"] else ""
        memory = f"{took['memory'] / 1024:.2g} GB"
        times = f"{took['processor']:.0f} s | {took['elapsed']:.0f} s"
        yield f"| {name}{with_report} | {times} | {memory} |"


def test_what_large_grids_take_is_what_was_kept() -> None:
    lines = page("simulate-accuracy.md").splitlines()
    made = list(simulated())
    assert len(made) == 3
    assert all(line in lines for line in made)


def simulated_runs() -> Iterator[str]:
    """What docs/simulate-accuracy.md says of real runs: rows of a table, and three sentences."""
    stored = read("simulated-runs.json")
    built_in, fitted = stored["built in"], stored["fitted"]
    every, others = len(built_in["rows"]), len(fitted["rows"])
    most = stored["fitted to at most"]
    for cells, errors in (
        (f"gridrpc, as it is built in | {every}, of 1 to 400 workers", built_in["errors"]),
        (
            f"fitted by `gridbench model` to the {every - others} runs with up to {most} workers"
            f" | {others} others, with 400 workers",
            fitted["errors"],
        ),
    ):
        ends = (percent(errors[f"total, {which}"]) for which in ("median", "90th percentile"))
        yield f"| {cells} | {' | '.join(ends)} |"
    off = {
        (way, one["what"].rpartition("/")[2]): one["error"]
        for way, against in (("built in", built_in), ("fitted", fitted))
        for one in against["rows"]
    }
    brief = ", each 100 x 0.01 s, "
    few, many, unseen = (
        next(error for (how, what), error in off.items() if how == way and what.startswith(case))
        for way, case in (
            ("built in", f"200 workers{brief}"),
            ("built in", f"400 workers{brief}"),
            ("fitted", f"400 workers{brief}"),
        )
    )
    near = sum(one["overhead_error"] is None for one in built_in["rows"])
    yield f"In {near} of them the time beyond the ideal is less than a fifth of the total"
    yield f"{percent(-few, 0)} too short with 200 workers, and {percent(-many, 0)} with 400"
    yield f"of the fitted model is {percent(unseen)} too long with 400"


def test_how_far_simulated_runs_are_off_is_what_was_kept() -> None:
    *rows, first, second, third = simulated_runs()
    text = page("simulate-accuracy.md")
    assert not set(rows) - set(text.splitlines())
    assert all(sentence in " ".join(text.split()) for sentence in (first, second, third))


NULL, HOSTS = "sync/null", "sync/hosts"
CITED = [
    ("56 null tasks, held at entry: first instruction to last exit",
     "10 ms (paper: 50 ms on 56 cores)", NULL, "first instruction to last exit, held", "gridrpc"),
    ("the same: skew", "1 ms", NULL, "start skew, held at", "gridrpc"),
    ("56 null tasks, exec inside: first start to last exit", "beside it", NULL,
     "first instruction to last exit, exec", "gridrpc"),
    ("the same: skew", "beside it", NULL, "start skew, exec", "gridrpc"),
    ("8 hosts of 7 workers by ssh: skew on corrected clocks", "1 ms and the clocks' error", HOSTS,
     "start skew of null tasks", "gridrpc"),
    ("the same on the one clock that they all have", "", HOSTS, "the same on the one", "gridrpc"),
    ("`date` on these hosts, skew of what it prints: gridbench", "", HOSTS,
     "skew of what `date` prints; peer: pssh", "gridrpc"),
    ("`date` by parallel ssh (`pssh`)", "beside it", HOSTS,
     "skew of what `date` prints; peer: pssh", "peer"),
    ("`date` by `xargs -P 56 ssh`", "beside it", HOSTS,
     "skew of what `date` prints; peer: xargs", "peer"),
    ("56 ranks of `mpirun` behind a barrier, on one host: skew", "beside it", HOSTS,
     "start skew on the one clock; peer: mpirun", "peer"),
    ("56 tasks of 1 s: share in which all run", "99 %", "sync/simultaneity",
     "share of the span", "gridrpc"),
]  # fmt: skip


def series(area: str, what: str, column: str = "gridrpc") -> dict[str, Any]:
    """A series of docs/benchmarks/sync.json, by how its row begins."""
    rows = read("sync.json")["areas"][area]["rows"]
    (found,) = [row for row in rows if re.match(rf"{re.escape(what)}(?!\d)", row["what"])]
    assert found[column] is not None
    return dict(found[column])


def sync_table() -> Iterator[str]:
    """The rows of docs/sync-method.md."""
    for message, aim, area, what, column in CITED:
        found = series(area, what, column)
        ends = (found["median"], min(found["values"]), max(found["values"]))
        show = percent if area.endswith("simultaneity") else lambda value: amount(value, "s")
        middle, low, high = map(show, ends)
        yield f"| {message} |{f' {aim}' if aim else ''} | {middle} ({low} to {high}) |"


def gfarm_table() -> Iterator[str]:
    """Directories per second in Gfarm, and the time of one, by the workers."""
    for workers in (1, 2, 4, 8, 16, 28, 56):
        cells = []
        for stored in ("no database, no journal", "PostgreSQL, synchronous journal"):
            rate = series("sync/gfarm", f"mkdir, workers: {workers}; {stored}")
            took = series("sync/gfarm", f"time of one (median), workers: {workers}; {stored}")
            cells += [f"{rate['median']:,.0f}", amount(took["median"] / 1e6, "s")]
        yield f"   | {workers} | {' | '.join(cells)} |"


def redis_sentence() -> str:
    """How many requests Redis answers."""
    counts = (1, 2, 4, 8, 16)
    found = (series("sync/redis", f"requests, workers: {n}")["median"] for n in counts)
    rates = {n: f"{float(f'{one:.3g}'):,.0f}" for n, one in zip(counts, found, strict=True)}
    return (
        f"answers {rates[1]} requests a second with 1 worker, {rates[2]} with 2, {rates[4]} with 4,"
        f" {rates[8]} with 8 and {rates[16]} with 16."
    )


def test_figures_of_the_page_on_rounds_are_those_of_the_kept_results() -> None:
    """docs/sync-method.md."""
    text = page("sync-method.md")
    lines = text.splitlines()
    for line in (*sync_table(), *gfarm_table()):
        assert line in lines
    assert redis_sentence() in " ".join(text.split())
