"""`gridbench ensemble`: figures, documents and rules of recorded runs, and what is refused."""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import linking
from golden import same_as_golden
from gridbench.ensemble.document import answer_values, document_of
from gridbench.ensemble.farm import expected
from gridbench.ensemble.figures import cases_of, published_pairs
from gridbench.ensemble.layouts import GRAINS, LayoutName, clusters, divisions, told_shares
from gridbench.ensemble.record import FORM, OURS, EnsembleRun, PlannedEnsembleRun, Sample
from gridbench.ensemble.simulation import (
    SimulatedCluster,
    SimulatedFarm,
    farm_of,
    shortest_elapsed,
    simulated_elapsed,
)
from gridbench.formats import size
from gridbench.jsonl_store import Header
from gridbench.pages.document import markdown
from gridbench.process.children import processor_time
from judging import DISTURBED, QUIET, outcomes
from running import REPOSITORY, Run

HEADER = Header(
    machine={"host": "bench", "processor": "a processor", "cores": 4, "memory": 2**34},
    versions={"python": "3.11", "gridrpc": "0.1.0"},
    options={"time_scale": 0.1, "links": "scaled", "model": "sleep", "batch_systems": "both"},
    started="2031-05-04T10:30:00+00:00",
    seed=1,
)


def run_of(
    layout: LayoutName = "presto3", shares: str = "presto3 2", *, rest: float = 0.1, **planned: Any
) -> EnsembleRun:
    """Processors run five samples each, one after the other: 1 s of work, and `rest` on the way."""
    processors = sum(int(word) for word in shares.split() if word.isdecimal())
    samples = 5 * processors
    rows = []
    for number in range(samples):
        begin = number // processors * (1 + rest)
        stamps = begin, begin + rest / 2, begin + 1 + rest / 2, begin + 1 + rest
        rows.append(Sample("presto3", *(round(one, 5) for one in stamps)))
    case: dict[str, Any] = {
        "engine": OURS, "grain": "10-days", "request": "together", "ahead": 0, "repeat": 0,
        **planned,
    }  # fmt: skip
    found = PlannedEnsembleRun(
        layout=layout, shares=shares, processors=processors, samples=samples, **case
    )
    return found.recorded_as(EnsembleRun,
        status="done", start=0.5, memory=50 << 20, runs=tuple(rows), load=QUIET,
    )  # fmt: skip


RUNS = [
    run
    for repeat, rest in enumerate((0.1, 0.12, 0.11))
    for run in (
        run_of(rest=rest, repeat=repeat),
        run_of(shares="presto3 10", rest=2 * rest, repeat=repeat),
        run_of(shares="presto3 10", rest=2 * rest, repeat=repeat, request="one by one"),
        run_of(shares="presto3 10", rest=3 * rest, repeat=repeat, engine="dask"),
        run_of(shares="presto3 10", rest=rest / 2, repeat=repeat, ahead=1),
        run_of("pairs", "ume 50 + presto3 50", rest=rest, repeat=repeat, grain="month"),
        run_of("pairs", "ume 50 + presto3 200", rest=2 * rest, repeat=repeat, grain="month"),
        run_of("ninf-g", "ume 3 + venus 3 + jupiter 3 + amata 1", repeat=repeat, grain="100-days"),
    )
]


def test_figures_follow_from_stamps() -> None:
    one = run_of(rest=0.25)
    assert one.run_time == pytest.approx(1.0)
    assert one.call_time == pytest.approx(1.25)
    assert one.transfer_time == pytest.approx(0.125)
    assert one.elapsed == pytest.approx(6.25)
    assert one.call_efficiency == pytest.approx(0.8)
    assert one.efficiency == pytest.approx(0.8)


def test_repeats_are_together_and_disturbed_ones_left_out() -> None:
    busy = replace(run_of(rest=1.0, repeat=1), load=DISTURBED)
    (case,) = cases_of([run_of(rest=0.25), busy])
    assert case.counts
    assert case.efficiency.value == pytest.approx(0.8)
    (case,) = cases_of([busy])
    assert not case.counts
    assert case.efficiency.value == pytest.approx(0.5)
    assert cases_of([replace(busy, status="failed")]) == []


def test_no_engine_can_be_faster_than_links_and_samples() -> None:
    output = GRAINS["10-days"].output

    def least(run: EnsembleRun, scaled_links: float) -> float:
        return shortest_elapsed(farm_of(run, scaled_links, 4))

    near = run_of("ume", "ume 2")
    assert least(near, 1.0) == pytest.approx(5 + 2 * output / 122.1e6, rel=2e-4)
    # The link is the limit: its first sample, and then all ten results.
    far = run_of("amata", "amata 2")
    assert least(far, 1.0) == pytest.approx(1 + 10 * output / 0.09e6, rel=2e-4)
    # The results of the last round come together.
    assert least(far, 0.1) == pytest.approx(5 + 2 * output / 0.9e6, rel=2e-4)
    # Nobody else can run the samples of the slow cluster in that time.
    both = run_of("pairs", "ume 2 + amata 2")
    assert least(both, 0.1) == pytest.approx(5 + 2 * output / 0.9e6, rel=2e-4)


def farm(*clusters: tuple[int, float, float], **other: Any) -> SimulatedFarm:
    """Clusters as processors, bytes per second, latency; calls of 1 s, results of 1,000 bytes."""
    all_processors = sum(one[0] for one in clusters)
    given: dict[str, Any] = {
        "samples": 5 * all_processors, "calls": all_processors, "run_time": 1.0, "input": 0,
        "output": 1000, "work": 0.0, **other,
    }  # fmt: skip
    return SimulatedFarm(tuple(SimulatedCluster(*one) for one in clusters), **given)


def test_simulations_of_farms() -> None:
    # A single processor: five times a call with its result, and the way there and back.
    assert simulated_elapsed(farm((1, 1e4, 0.05))) == pytest.approx(5 * (1 + 0.1 + 0.1))
    # Of ten processors the last one waits for all results of the first round, and of no other.
    assert simulated_elapsed(farm((10, 2e4, 0.0))) == pytest.approx(5 + 10 * 0.05 + 4 * 0.05)
    # This machine is busy with 50 calls before and after their samples, but for the first one.
    assert simulated_elapsed(farm((10, 1e9, 0.0), work=0.2)) == pytest.approx(10.4, rel=1e-3)
    # The faster cluster runs six of eight samples.
    halves = farm((1, 1e9, 0.0), (1, 500.0, 0.0), samples=8)
    assert simulated_elapsed(halves) == pytest.approx(6.0, rel=1e-4)


@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("rate", [500.0, 5e3, 1e5])
def test_no_simulation_is_below_the_bound(rate: float, ahead: int) -> None:
    one = farm((7, rate, 0.02), (3, 10 * rate, 0.0), calls=10 * (1 + ahead), work=0.01)
    assert shortest_elapsed(one) <= simulated_elapsed(one)


def test_layouts_are_the_papers() -> None:
    assert [told_shares(one.shares) for one in divisions("pairs", ())] == [
        one.shares for one in published_pairs()
    ]
    for layout, processors, samples in (("ninf-g", 10, 50), ("sc2003", 500, 1000)):
        (one,) = divisions(layout, ())  # type: ignore[arg-type]
        assert (one.processors, one.processors * one.samples) == (processors, samples)
        assert {name for name, _ in one.shares} <= set(clusters())
    assert clusters()["venus"].delay == pytest.approx(0.0172)
    # 225 s for the samples that take 208 s with 50 + 50, so 92 % of its efficiency.
    pairs = {one.shares: one.efficiency for one in published_pairs()}
    ratio = pairs["ume 50 + presto3 150"] / pairs["ume 50 + presto3 50"]
    assert ratio == pytest.approx(0.92, abs=0.01)


def test_the_page_has_the_papers_links() -> None:
    """docs/ensemble-benchmark.md."""
    page = (REPOSITORY / "docs/ensemble-benchmark.md").read_text(encoding="utf-8")
    shown = {}
    for line in page.splitlines():
        if found := re.fullmatch(r"\| (`.*`) \| one, .* \| ([\d.]+) MB/s \| ([\d.]+) ms \|", line):
            for name in re.findall(r"`(\w+)`", found[1]):
                shown[name] = (float(found[2]), float(found[3]))
    assert shown == {
        name: pytest.approx((one.throughput / 1e6, one.delay * 1e3))
        for name, one in clusters().items()
    }
    assert all(size(one.output) in page for one in GRAINS.values())


def test_processor_time_of_processes() -> None:
    own = time.process_time()
    found = processor_time([os.getpid(), 1 << 22])
    assert own <= found <= time.process_time()


def test_results_belong_to_their_states() -> None:
    import numpy as np

    state = np.array([255, 1, 0, 7] * 20, dtype=np.uint8)
    other = state.copy()
    other[3] += 1
    assert expected(state) != expected(other)
    assert 0 <= expected(state) < 1 << 64


def test_the_document_shows_the_papers_tables_beside_ours() -> None:
    same_as_golden(markdown(document_of(HEADER, RUNS)), "ensemble/all.md")


def test_a_single_disturbed_run_and_a_failed_one() -> None:
    failed = replace(RUNS[1], status="failed", why="the client ended with signal 9")
    options = {"time_scale": 0.1, "links": "paper"}
    found = document_of(
        replace(HEADER, options=options), [replace(RUNS[0], load=DISTURBED), failed]
    )
    same_as_golden(markdown(found), "ensemble/one run.md")
    assert "Nothing was measured yet" in markdown(document_of(HEADER, [failed]))
    assert answer_values([failed])["cases"] == []


def test_rules(tmp_path: Path) -> None:
    def judged(runs: list[EnsembleRun], header: Header = HEADER) -> dict[str, str]:
        folder = tmp_path / f"runs-{len(list(tmp_path.iterdir()))}"
        store = FORM.open(folder, header, fresh=False)
        for one in runs:
            store.add(one)
        store.close()
        return outcomes(folder)

    assert set(judged(RUNS).values()) == {"kept"}
    rows = RUNS[0].rows
    backwards = (rows[0]._replace(started=5.0), *rows[1:])
    at_once = (*rows[:-1], rows[-1]._replace(submitted=0.0))
    for runs, rule in (
        ([*RUNS, replace(RUNS[0], repeat=3, status="failed", why="lost")], "complete"),
        ([replace(RUNS[0], runs=RUNS[0].runs[1:]), *RUNS[1:]], "all samples"),
        ([replace(RUNS[0], wrong=1), *RUNS[1:]], "all samples"),
        ([replace(RUNS[0], runs=backwards), *RUNS[1:]], "times in order"),
        ([replace(RUNS[0], runs=at_once), *RUNS[1:]], "calls for each processor"),
        (RUNS[:8], "repeated"),
        ([replace(one, load=DISTURBED) for one in RUNS], "nothing else was at work"),
    ):
        assert judged(runs)[rule] == "broken", rule
    assert judged(RUNS, replace(HEADER, options={}))["who measured what, where"] == "broken"


@pytest.mark.skipif(bool(linking.why_not()), reason=linking.why_not())
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "compute"], "--module"),
        (["--module", "ensemble.so"], "--model compute"),
        (["--engines", "daks"], "unknown engine"),
        (["--layouts", "tsubame"], "presto3"),
        (["--processors", "0"], "number of processors"),
        (["--processors", "5001"], "5,000"),
        (["--time-scale", "0"], "has to take some time"),
        (["--time-scale", "-1"], "from 0"),
        (["--requests", "twice"], "one-by-one"),
        (
            ["--model", "compute", "--module", "x.so", "--engines", "dask"],
            "which dask cannot call",
        ),
        (["--model", "compute", "--module", "no such file.so"], "no such file"),
    ],
)
def test_options_that_cannot_be_followed(gridbench: Run, words: list[str], message: str) -> None:
    refused = gridbench("ensemble", *words, "--accept-load", "--batch-systems", "none")
    assert refused.returncode == 2
    assert message in refused.stderr
