"""Rates of transfers: those that follow from the stamps, and those that cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gridbench.quantities import MB
from gridbench.scenario.cases import cells_of
from gridbench.scenario.figures import results_of_runs
from gridbench.scenario.plots import plots_of
from gridbench.scenario.results import CaseResult
from gridbench.simulate.profiles import system
from gridbench.simulate.simulation import SimulatedWorkload, simulate
from gridbench.simulate.timeline import table_of, write_folder
from gridbench.statistics.interval import Interval
from scenario_results import all_done

Points = dict[tuple[str, str], Interval]


def drawn(scenario: int, results: list[CaseResult]) -> tuple[Points, str]:
    """The rates of a scenario by line and size, and the sentences about them."""
    plots = plots_of(scenario, cells_of(results))
    (found,) = (one for one in plots if one.id.split("-")[1] == "rate")
    points = {
        (line.name, point.place.text): point.value
        for line in found.lines
        if not line.dash
        for point in line.points
    }
    return points, found.about


def with_figures(results: list[CaseResult], **figures: float) -> list[CaseResult]:
    """The same, where those with input have these figures."""
    return [replace(one, figures=one.figures | figures) if one.bytes_in else one for one in results]


@pytest.mark.parametrize("scenario", [4, 5])
def test_rates_are_those_of_what_data_adds(scenario: int) -> None:
    points, about = drawn(scenario, all_done(scenario))
    for what in ("block", "one task"):
        rate = points[f"100 cores, {what}", "1MB"]
        assert rate.value == pytest.approx(800)  # 100 MB/s, at 8 Mbit each
        assert rate.low < 800 <= rate.high
    assert "Left out" not in about
    assert not any("submitted" in name for name, _ in points)


def test_submit_times_of_a_queue_tell_no_rate() -> None:
    results = with_figures(all_done(4), submit_step=1e-4)
    points, _ = drawn(4, results)
    assert not any("submitted" in name for name, _ in points)
    points, _ = drawn(4, [replace(one, engine="log") for one in results])
    assert points["100 cores, submitted", "1MB"].value == pytest.approx(80_000)


def test_submit_times_of_a_log_tell_nothing_that_data_did_not_add() -> None:
    points, _ = drawn(4, [replace(one, engine="log") for one in all_done(4)])
    assert not any("submitted" in name for name, _ in points)


def test_what_exceeds_the_link_is_refused_with_words() -> None:
    linked = [replace(one, transport="links", nodes=2, link_rate=400e6) for one in all_done(4)]
    points, about = drawn(4, linked)
    assert not points
    assert "Left out, as the client's link is not so fast" in about
    assert "gridrpc-native, 100 cores, 1MB, block (727 Mbit/s)" in about
    assert "gridrpc-native, 400 cores, 100MB, one task (799 Mbit/s)" in about


def test_time_without_data_may_go_on_during_a_transfer() -> None:
    # At 838 Mbit/s the link is a little faster than 10 MB by all the time, less than by the added.
    limit = 800 * 2**20 / 1e6
    linked = [
        replace(one, transport="links", link_rate=limit * 0.9999 * 1e6) for one in all_done(4)
    ]
    points, about = drawn(4, linked)
    rate = points["100 cores, block", "10MB"]
    assert rate.value == pytest.approx(10 * 8 / 0.101)
    assert rate.high <= 800
    assert "Left out" not in about


def test_faster_than_memory_is_refused() -> None:
    results = with_figures(
        all_done(4), start_pace_step=2e-3, start_pace_noise=0.0, start_pace_span=1.0,
        start_pace_tasks=500.0,
    )  # fmt: skip
    points, about = drawn(4, results)
    assert ("100 cores, one task", "100MB") not in points
    assert "as memory is not so fast" in about
    assert "100MB, one task (400 Gbit/s)" in about


def test_less_than_the_scatter_tells_no_rate() -> None:
    results = all_done(4)
    assert ("100 cores, one task", "1MB") in drawn(4, results)[0]
    noisy = [replace(one, figures=one.figures | {"start_pace_noise": 0.02}) for one in results]
    points, _ = drawn(4, noisy)
    assert ("100 cores, one task", "1MB") not in points
    assert ("100 cores, one task", "10MB") in points


@pytest.mark.parametrize("cores", [10, 100])
def test_logs_of_symphony_show_the_rate_of_its_manager(tmp_path: Path, cores: int) -> None:
    logs = []
    for size in (0, MB // 10, MB):
        done = simulate(
            SimulatedWorkload(cores=cores, tasks=cores, sleep=30.0, bytes_in=size),
            system("symphony"),
        )
        (folder := tmp_path / f"{size}").mkdir()
        write_folder(folder, done, table_of(done))
        logs.append(folder / "tasks.log")
    _, results = results_of_runs(logs, 4)
    points, about = drawn(4, results)
    for what in ("block", "one task"):
        rate = points[f"{cores} cores, {what}", "1MB"]
        assert rate.value == pytest.approx(830, rel=2e-3)
        assert rate.low < 830 < rate.high < 900
    assert points[f"{cores} cores, submitted", "1MB"].value == pytest.approx(513, rel=1e-3)
    assert "waits of 0.5 s between waves" in about
