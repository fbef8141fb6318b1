"""Where a data grid becomes faster than shared data of a compute grid: by hand, and by models."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from crossover_results import (
    DISTURBED,
    EACH,
    ENGINES,
    GRID,
    MB,
    ONCE,
    READERS,
    SIZES,
    from_grid,
    measured,
    sharing_of,
)
from gridbench.datagrid.crossover.answer import answer_of, curves_of
from gridbench.datagrid.crossover.experiment import CrossoverExperiment
from gridbench.datagrid.crossover.models import (
    ComputeModel,
    GridModel,
    crossing_readers,
    crossing_size,
    fit_compute,
    fit_grid,
    hold_out,
)
from gridbench.datagrid.crossover.options import CrossoverParameters
from gridbench.jsonl_store import failed_before, missing
from gridbench.statistics.crossing import crossing
from gridbench.statistics.interval import Interval


def exact(**times: float) -> dict[int, Interval]:
    """`_4=0.5`: 0.5 s at 4, without spread."""
    return {int(name[1:]): Interval(one, one, one) for name, one in times.items()}


def test_lines_cross_in_the_middle_of_a_decade() -> None:
    # The compute grid takes ten times as long for ten times the size, the data grid always as
    # long: at 10 it is ahead by the factor by which it is behind at 100, so they meet between,
    # which on a logarithmic scale is at the root of 10 times 100.
    found = crossing(exact(_10=1.0, _100=10.0), exact(_10=10.0**0.5, _100=10.0**0.5))
    assert found is not None
    assert found.kind == "from"
    assert found.at == pytest.approx(1000**0.5)
    assert (found.low, found.high) == pytest.approx((found.at, found.at))
    assert not found.several


def test_lines_meet_at_a_measured_place() -> None:
    found = crossing(exact(_1=1.0, _2=2.0, _4=4.0), exact(_1=2.0, _2=2.0, _4=2.0))
    assert found is not None
    assert found.at == pytest.approx(2.0)


def test_a_data_grid_that_is_always_or_never_faster() -> None:
    slow, fast = exact(_1=2.0, _4=3.0), exact(_1=1.0, _4=2.9)
    always, never = crossing(slow, fast), crossing(fast, slow)
    assert always is not None
    assert never is not None
    assert (always.kind, never.kind) == ("always", "never")
    assert math.isnan(always.at)
    assert math.isnan(never.at)


def test_a_data_grid_that_is_faster_for_little_data_alone() -> None:
    compute = {place: Interval(1.0, 0.5, 2.0) for place in (1, 100, 10_000)}
    found = crossing(compute, exact(_1=0.1, _100=10.0, _10000=10.0))
    assert found is not None
    assert (found.kind, found.several) == ("up to", False)
    # The data grid takes 1 s at 10; 0.5 s, the fastest run of the compute grid, at 5, and 2 s, the
    # slowest, at 20.
    assert (found.low, found.at, found.high) == pytest.approx((5.0, 10.0, 20.0))
    assert found.certain


def test_a_data_grid_that_is_faster_in_the_middle_alone_is_not_at_the_largest() -> None:
    found = crossing(exact(_1=1.0, _2=3.0, _4=1.0), exact(_1=2.0, _2=2.0, _4=2.0))
    assert found is not None
    assert (found.kind, found.several) == ("never", True)


def test_the_last_of_several_crossings_counts() -> None:
    found = crossing(exact(_1=2.0, _10=1.0, _100=2.0), exact(_1=1.0, _10=2.0, _100=1.0))
    assert found is not None
    assert found.kind == "from"
    assert found.several
    assert found.at == pytest.approx(10 * 10**0.5)


def test_where_times_spread_the_crossing_is_between_two_places() -> None:
    compute = {1: Interval(1.0, 0.5, 2.0), 100: Interval(100.0, 50.0, 200.0)}
    found = crossing(compute, exact(_1=10.0, _100=10.0))
    assert found is not None
    # The slowest runs of the compute grid take 10 s at 5, the fastest at 20.
    assert (found.low, found.at, found.high) == pytest.approx((5.0, 10.0, 20.0))


def test_spread_may_leave_open_whether_they_cross() -> None:
    compute = {1: Interval(1.0, 0.1, 5.0), 100: Interval(3.0, 1.0, 5.0)}
    found = crossing(compute, exact(_1=2.0, _100=2.0))
    assert found is not None
    assert found.kind == "from"
    assert (found.low, found.high) == (0.0, math.inf)
    assert not found.certain


def test_only_places_that_both_were_measured_at_count() -> None:
    assert crossing(exact(_1=1.0, _2=1.0), exact(_2=2.0, _4=2.0)) is None
    found = crossing(exact(_1=1.0, _2=1.0, _4=9.0), exact(_1=2.0, _4=2.0, _8=2.0))
    assert found is not None
    assert found.kind == "from"


TIMES = {(n, size): ONCE.line(n).at(size) for n in READERS for size in SIZES}


def test_costs_of_a_compute_grid_are_recovered() -> None:
    for model in (ONCE, EACH):
        times = {(n, size): model.line(n).at(size) for n in READERS for size in SIZES}
        found = fit_compute(times)
        assert found is not None
        for name in ("start", "each", "once", "reader"):
            expected = getattr(model, name)
            assert getattr(found, name) == pytest.approx(expected, rel=1e-6, abs=1e-15), name


def test_rates_of_a_data_grid_are_recovered() -> None:
    # 4,000 MB/s for all and 500 MB/s for one: from 8 readers on all is used.
    reading = {(n, size): GRID.reading(n).at(size) for n in READERS for size in SIZES}
    loading = {
        (n, size): GRID.line(n).at(size) - GRID.reading(n).at(size)
        for n in READERS
        for size in SIZES
    }
    found = fit_grid(loading, reading)
    assert found is not None
    assert found.put_start == pytest.approx(50e-3, rel=1e-6)
    assert 1 / found.put == pytest.approx(100 * MB, rel=1e-6)
    # The number of readers that fill it is one of 60 places between 1 and 16.
    assert found.read_start == pytest.approx(2e-3, rel=0.05)
    assert 1 / found.all == pytest.approx(4000 * MB, rel=0.05)
    assert 1 / found.one == pytest.approx(500 * MB, rel=0.05)


def test_what_does_not_vary_has_no_cost_of_its_own() -> None:
    one_count = {key: value for key, value in TIMES.items() if key[0] == 4}
    found = fit_compute(one_count)
    assert found is not None
    assert (found.each, found.reader) == (0.0, 0.0)
    assert found.line(4).at(8 * MB) == pytest.approx(ONCE.line(4).at(8 * MB))
    reading = {key: GRID.reading(4).at(key[1]) for key in one_count}
    grid = fit_grid(reading, reading)
    assert grid is not None
    assert grid.reading(4).at(8 * MB) == pytest.approx(GRID.reading(4).at(8 * MB))


def test_too_few_cases_give_no_model() -> None:
    few = dict(list(TIMES.items())[:2])
    assert fit_compute(few) is None
    assert fit_grid(few, few) is None
    one_size = {key: value for key, value in TIMES.items() if key[1] == MB}
    assert fit_grid(one_size, one_size) is None


def test_held_out_cases_are_predicted_by_the_others() -> None:
    exactly = hold_out(TIMES, fit_compute)
    assert [one.what for one in exactly] == ["each case in turn", "all of the largest size"]
    assert [len(one.errors) for one in exactly] == [25, 5]
    assert max(one.largest for one in exactly) < 1e-6
    # One case that is twice as long as the rest says is off by half, and so told.
    odd = TIMES | {(16, 256 * MB): 2 * TIMES[16, 256 * MB]}
    in_turn, largest = hold_out(odd, fit_compute)
    assert in_turn.largest == pytest.approx(0.5, rel=1e-3)
    assert largest.errors[-1] == pytest.approx(-0.5, rel=1e-3)


def test_models_cross_where_their_lines_do() -> None:
    # 2 ms + n ms + n S / (1e9 byte/s), against 52 ms + S/100 MB/s + max(n S/4000, S/500) MB/s.
    found = crossing_size(EACH, GRID, 16)
    assert found.kind == "from"
    assert EACH.line(16).at(found.at) == pytest.approx(GRID.line(16).at(found.at))
    assert EACH.line(16).at(2 * found.at) > GRID.line(16).at(2 * found.at)
    # What is handed over at 2 GB/s is never overtaken by what is put at 100 MB/s.
    assert crossing_size(ONCE, GRID, 16).kind == "never"
    # Reading what is there begins sooner, 2 ms against 4.5 ms, but one reader gets 500 MB/s.
    up_to = crossing_size(ONCE, GRID.there, 1)
    assert up_to.kind == "up to"
    assert ONCE.line(1).at(up_to.at) == pytest.approx(GRID.there.line(1).at(up_to.at))
    # Without any costs of its own the data grid is always faster.
    free = GridModel(put_start=0.0, put=0.0, read_start=0.0, all=0.0, one=1e-12)
    assert crossing_size(EACH, free, 1).kind == "always"


def test_the_fewest_readers_for_which_a_data_grid_is_faster() -> None:
    size = 256 * MB
    found = crossing_readers(EACH, GRID, size)
    assert found.kind == "from"
    assert 1 < found.at < 16
    assert GRID.line(found.at).at(size) < EACH.line(found.at).at(size)
    assert GRID.line(found.at - 1).at(size) >= EACH.line(found.at - 1).at(size)
    assert crossing_readers(ONCE, GRID, size).kind == "never"
    assert crossing_readers(EACH, GRID.there, size).kind == "from"


def test_tasks_that_outnumber_their_cores_read_more_than_once() -> None:
    # 40 tasks on 16 cores: 40 S at 4,000 MB/s are 0.01 s for each MB, and three turns of one
    # reader at 500 MB/s are 0.006 s.
    assert GRID.reading(16, 40).at(100 * MB) == pytest.approx(2e-3 + 1.0)
    assert GRID.reading(2, 5).at(100 * MB) == pytest.approx(2e-3 + 0.6)


def test_an_answer_has_measured_and_predicted_crossings() -> None:
    answer = answer_of(measured(ENGINES))
    assert [one.name for one in answer.curves] == [
        "gridrpc-python",
        "process-pool",
        "Hazelcast (put and read)",
        "Hazelcast (there already)",
    ]
    assert answer.readers == list(READERS)
    assert answer.sizes == list(SIZES)
    assert set(answer.compute) == {"gridrpc-python", "process-pool"}
    assert set(answer.grids) == {"hazelcast"}
    pairs = {(one.compute.engine, one.grid.there): one for one in answer.pairs}
    assert len(pairs) == 4
    never = pairs["gridrpc-python", False]
    assert {one.kind for one in never.over_size.values()} == {"never"}
    assert {one.kind for one in never.predicted_sizes.values()} == {"never"}
    found = pairs["process-pool", False]
    assert found.over_size[1].kind == "never"
    assert found.over_size[16].kind == "from"
    true = crossing_size(EACH, GRID, 16).at
    assert found.over_size[16].at == pytest.approx(true, rel=0.35)
    assert found.predicted_sizes[16].at == pytest.approx(true, rel=0.05)
    fewest = crossing_readers(EACH, GRID, 256 * MB).at
    assert found.predicted_readers[256 * MB].at == pytest.approx(fewest, abs=1)
    assert found.over_readers[256 * MB].at == pytest.approx(fewest, rel=0.2)
    there = pairs["process-pool", True]
    assert there.over_size[16].kind == "always"
    assert there.predicted_sizes[16].kind == "always"


def test_disturbed_repeats_do_not_count_where_others_do() -> None:
    quiet = sharing_of("ray", 1, MB, 1.0)
    noisy = sharing_of("ray", 1, MB, 9.0, repeat=1, load=DISTURBED)
    (curve,) = curves_of([quiet, noisy])
    assert curve.times() == {(1, MB): Interval(1.0, 1.0, 1.0)}
    assert curve.cases[0].counts
    (curve,) = curves_of([noisy])
    assert curve.times() == {(1, MB): Interval(9.0, 9.0, 9.0)}
    assert not curve.cases[0].counts


def test_what_was_not_done_is_in_no_curve() -> None:
    failed = sharing_of("ray", 1, MB, 1.0, status="failed", why="it ended")
    assert curves_of([failed]) == []
    assert answer_of([failed]).pairs == []


def test_of_a_data_grid_there_are_two_curves() -> None:
    put, there = curves_of([from_grid(2, MB, 3.0, 1.0)])
    assert put.times() == {(2, MB): Interval(4.0, 4.0, 4.0)}
    assert there.times() == {(2, MB): Interval(1.0, 1.0, 1.0)}


def test_what_is_missing_is_measured_again_and_no_more() -> None:
    parameters = CrossoverParameters(
        engines=("process-pool",), sizes=(MB, 4 * MB), cores=(1, 2), rounds=2
    )
    experiment = CrossoverExperiment(parameters)
    wanted = experiment.planned()
    assert len(wanted) == len({one.identity for one in wanted}) == 16
    assert [one.repeat for one in wanted] == [0] * 8 + [1] * 8
    assert wanted == experiment.planned()
    records = [one.done(seconds=1.0, reading=1.0) for one in wanted]
    assert missing(wanted, records) == []
    records[3] = replace(records[3], status="failed")
    records[4] = replace(records[4], status="failed", load={"judgement": "disturbed"})
    records[5] = replace(records[5], status="skipped")
    assert missing(wanted, records) == wanted[3:6]
    assert failed_before(wanted, records) == [wanted[3]]


def test_a_compute_model_is_one_line_for_each_number_of_readers() -> None:
    model = ComputeModel(start=1.0, each=0.5, once=2.0, reader=0.25)
    assert model.line(4).at(3.0) == 1.0 + 2.0 + 3.0 * (2.0 + 1.0)
