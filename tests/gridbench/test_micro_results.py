"""From points to results: what is compared with what, and what is claimed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gridbench.bench.points import DataPoint
from gridbench.jsonl_store import Header
from gridbench.micro.catalogue import GOALS
from gridbench.micro.record import FigureEntry, Lead, MicroFigure, Results, load_results
from gridbench.micro.results import results_of
from gridbench.micro.workloads import AGAIN, EMPTY, INHERITED, POOL, PYTHON, C
from gridbench.statistics.series import Histogram

HEADER = Header(machine={}, versions={}, options={}, started="2031-01-01", seed=1)


def _points(
    workload: str, engine: str, quantity: str, values: list[float], **more: Any
) -> list[DataPoint]:
    return [
        DataPoint(workload=workload, engine=engine, round=number, values={quantity: value}, **more)
        for number, value in enumerate(values)
    ]


def _results(*points: list[DataPoint]) -> Results:
    return results_of(HEADER, [point for group in points for point in group], "2031-01-02")


def _figure(results: Results, name: str) -> MicroFigure:
    return next(figure for figure in results.figures if figure.id == name)


def _entry(figure: MicroFigure, engine: str) -> FigureEntry:
    return next(entry for entry in figure.entries if entry.engine == engine)


def _lead(results: Results, what: str) -> Lead:
    return next(lead for lead in results.lead if lead.what == what)


CALLS = (
    _points("null_call", PYTHON, "us", [20, 22, 24]),
    _points("null_call", PYTHON + AGAIN, "us", [21, 22, 24]),
    _points("null_call", POOL, "us", [200, 220, 360]),
    _points("null_call", POOL + AGAIN, "us", [220, 242, 300]),
    _points("null_call", "ray", "us", [2000, 2100, 2200]),
    _points("null_call", C, "us", [9, 9, 9]),
    _points("limit", "pickled_call_unix", "us", [40, 40, 40]),
    _points("limit", "ping_pong_unix", "us", [10, 10, 5]),
)


def test_ratios_are_to_the_best_peer_and_the_first_limit_by_rounds() -> None:
    figure = _figure(_results(*CALLS), "null_call")
    assert figure.best_peer == POOL
    assert {entry.engine for entry in figure.entries} == {PYTHON, POOL, "ray", C}
    assert figure.ratios[PYTHON].to_peer == pytest.approx(0.1)
    assert figure.ratios[PYTHON].to_limit == pytest.approx(2.2)
    assert figure.noise == pytest.approx(1.1)
    assert figure.ratios[PYTHON].claim == "faster"
    assert figure.ratios["ray"].claim == "slower"
    assert figure.ratios[POOL].claim == "no difference"
    entry = _entry(figure, PYTHON)
    assert (entry.median, entry.low, entry.high, entry.runs) == (22, 20, 24, 3)


def test_no_claim_is_made_below_what_lies_between_equals() -> None:
    results = _results(
        _points("null_call", PYTHON, "us", [100, 100, 100]),
        _points("null_call", PYTHON + AGAIN, "us", [130, 130, 130]),
        _points("null_call", POOL, "us", [120, 120, 120]),
    )
    figure = _figure(results, "null_call")
    assert figure.noise == pytest.approx(1.3)
    assert figure.ratios[PYTHON].to_peer == pytest.approx(1 / 1.2)
    assert figure.ratios[PYTHON].claim == "no difference"


def test_claims_rest_on_two_undisturbed_rounds_that_agree() -> None:
    pool = _points("null_call", POOL, "us", [200, 200, 200])

    def claim(values: list[float], *disturbed: int) -> str:
        ours = _points("null_call", PYTHON, "us", values)
        ours = [replace(one, disturbed=one.round in disturbed) for one in ours]
        return _figure(_results(ours, pool), "null_call").ratios[PYTHON].claim

    assert claim([20, 22, 24]) == claim([20, 22, 24], 0) == "faster"
    # What a disturbed round tells does not count, for a claim or against it.
    assert claim([20, 22, 900], 2) == "faster"
    assert claim([20, 22, 24], 0, 1) == "no difference"
    assert claim([20, 22, 900]) == "no difference"
    assert claim([20]) == "no difference"


def test_the_lead_is_judged_against_peer_limit_and_bound() -> None:
    results = _results(*CALLS, _points("solve", EMPTY, "ratio", [1.06, 1.04, 1.07]))
    peer = _lead(results, "null call, Python function, by the fastest engine")
    assert (peer.value, peer.reached) == (pytest.approx(0.1), True)
    assert peer.against == f"best peer: {POOL}"
    limit = _lead(results, "null call, native function, from C, by raw ping-pong")
    assert (limit.value, limit.reached) == (pytest.approx(0.9), True)
    bound = _lead(results, "the same from gridrpc.empty")
    assert (bound.value, bound.reached, bound.against) == (1.06, False, "")
    missing = _lead(results, "100 MB argument, by Ray")
    assert (missing.value, missing.reached) == (None, None)
    assert missing.why == f"{PYTHON} was not measured"
    assert len(results.lead) == len(GOALS)


def test_a_rate_by_map_is_that_of_the_best_chunk_and_compared_with_single_submits() -> None:
    results = _results(
        _points("map_rate", PYTHON, "per_second", [1e6, 2e6], parameters={"chunk": 10}),
        _points("map_rate", PYTHON, "per_second", [3e6, 4e6], parameters={"chunk": "auto"}),
        _points("map_rate", POOL, "per_second", [7e5, 7e5], parameters={"chunk": 1000}),
        _points("null_rate", POOL, "per_second", [1e4, 1e4]),
        _points("null_rate", "ray", "per_second", [1e3, 1e3]),
        _points("null_rate", PYTHON, "per_second", [2e5, 2e5]),
    )
    figure = _figure(results, "map_rate")
    entry = _entry(figure, PYTHON)
    assert (entry.values, entry.note) == ((3e6, 4e6), "chunk auto")
    lead = _lead(results, "the same by map, by the fastest engine's single submits")
    assert (lead.value, lead.reached) == (pytest.approx(350), True)
    pool = _lead(results, "the same by map, by the pool's map at its best chunk size")
    assert (pool.value, pool.reached) == (pytest.approx(5), True)
    curve = next(curve for curve in results.curves if curve.id == "map_rate")
    assert {line.engine: line.x for line in curve.lines} == {PYTHON: (10.0,), POOL: (1000.0,)}


def test_what_has_no_value_says_why() -> None:
    results = _results(
        _points("null_call", PYTHON, "us", [20]),
        [
            DataPoint(
                workload="null_call", engine="hyperqueue", round=0, status="cannot", why="late"
            ),
            DataPoint(
                workload="null_call", engine="dask", round=0, status="missing", why="install it"
            ),
            DataPoint(workload="null_call", engine="ray", round=0, status="failed", why="stuck"),
        ],
    )
    figure = _figure(results, "null_call")
    reported = {entry.engine: (entry.status, entry.why) for entry in figure.entries}
    assert reported == {
        PYTHON: ("ok", ""),
        "hyperqueue": ("cannot", "late"),
        "dask": ("missing", "install it"),
        "ray": ("failed", "stuck"),
    }
    assert figure.best_peer is None
    assert _entry(figure, PYTHON).low is None


def test_aims_are_held_against_undisturbed_rounds_alone() -> None:
    def lead(*disturbed: int) -> Lead:
        ours = _points("null_call", PYTHON, "us", [20, 20, 90])
        peers = _points("null_call", POOL, "us", [200, 200, 200])
        ours = [replace(one, disturbed=one.round in disturbed) for one in ours]
        return _lead(_results(ours, peers), "null call, Python function, by the fastest engine")

    assert lead(2).value == pytest.approx(0.1)
    assert lead(0, 1).value == pytest.approx(0.45)
    assert lead(0, 1).reached is False
    none = lead(0, 1, 2)
    assert (none.value, none.reached) == (None, None)
    assert none.why == "other programs disturbed all its rounds"


def test_of_repeated_points_the_least_disturbed_counts() -> None:
    def point(value: float, load: float, status: Any = "ok") -> DataPoint:
        return DataPoint(
            workload="null_call", engine=PYTHON, round=0, values={"us": value}, status=status,
            disturbed=load > 0.15, load={"others_cpu": load},
        )  # fmt: skip

    results = _results([point(90, 1.5), point(30, 0.2), point(60, 0.9), point(0, 0, "failed")])
    entry = _entry(_figure(results, "null_call"), PYTHON)
    assert (entry.values, entry.disturbed_runs) == ((30.0,), 1)


def test_percentiles_come_from_all_rounds_together() -> None:
    slow, fast = Histogram.of([1000.0] * 10).to_record(), Histogram.of([10.0] * 990).to_record()
    results = _results(
        _points("null_call", PYTHON, "us", [1000], samples={"us": slow}),
        [DataPoint(workload="null_call", engine=PYTHON, round=1, values={"us": 10},
               samples={"us": fast})],
    )  # fmt: skip
    percentiles = _entry(_figure(results, "null_call"), PYTHON).percentiles
    assert percentiles is not None
    assert percentiles["50"] == pytest.approx(10, rel=0.01)
    assert percentiles["99"] == pytest.approx(10, rel=0.01)
    assert percentiles["99.9"] == pytest.approx(1000, rel=0.01)


def test_data_that_a_pool_inherits_are_shown_and_are_no_peer() -> None:
    shared = {"parameters": {"bytes": 100_000_000}}
    results = _results(
        _points("shared_100MB", PYTHON, "first", [0.1], **shared),
        _points("shared_100MB", INHERITED, "first", [0.01], **shared),
        _points("shared_100MB", POOL, "first", [8.0], **shared),
        _points("limit", "memcpy", "new_ms", [80.0], **shared),
    )
    figure = _figure(results, "shared_100MB_first")
    assert _entry(figure, INHERITED).median == 0.01
    assert figure.best_peer == POOL
    assert figure.limits[0].engine == "memcpy, new memory"
    assert figure.limits[0].median == pytest.approx(0.08)


def test_a_million_calls_count_only_if_there_were_a_million() -> None:
    what = "1,000,000 calls: the client's peak memory"
    for count, expected in ((1_000_000, 300.0), (50_000, None)):
        values = {"peak": 3e8, "count": float(count), "per_second": 1e5}
        results = _results([DataPoint(workload="million", engine=PYTHON, round=0, values=values)])
        assert _lead(results, what).value == expected
    assert _lead(results, what).why == "only 50,000 calls fitted into the time"


def test_curves_go_over_sizes_workers_and_task_times() -> None:
    results = _results(
        *(
            _points("argument", PYTHON, "ms", [size / 1e6], parameters={"bytes": size})
            for size in (1000, 1_000_000)
        ),
        [
            DataPoint(workload="start", engine=PYTHON, round=0,
                  parameters={"workers": workers, "client": client},
                  values={"first": 0.1, "all": 0.5 * workers})
            for workers in (2, 16) for client in ("bare", "numpy")
        ],
        _points("metg", PYTHON, "us_50", [10.0, 12.0], parameters={"by": "submit"},
                samples={"task_us": [1.0, 100.0], "efficiency": [0.1, 0.9]}),
    )  # fmt: skip
    lines = {curve.id: curve.lines for curve in results.curves}
    assert set(lines) == {"argument", "start_first", "start_all", "metg"}
    assert lines["argument"][0].x == (1000.0, 1_000_000.0)
    assert lines["argument"][0].y == (0.001, 1.0)
    assert lines["start_all"][0].x == (2.0, 16.0)
    assert lines["start_all"][0].y == (1.0, 8.0)
    assert lines["metg"][0].y == (0.1, 0.9)


def test_results_survive_their_file(tmp_path: Path) -> None:
    results = _results(*CALLS)
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results.to_record()))
    assert load_results(path) == results
