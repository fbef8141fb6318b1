"""Figures of scenarios worked out by hand: what counts, the additive sum, the rate of a task."""

from __future__ import annotations

import pytest

import timelines
from gridbench.analysis.summary import summarise
from gridbench.analysis.transfer import SYMPHONY
from gridbench.quantities import MB
from gridbench.scenario.cases import cells_of
from gridbench.scenario.figures import measured, why_invalid
from gridbench.scenario.plots import plots_of
from scenario_results import RATE, all_done

ROW = {"submit": 0.12345, "calc_in": 1.1, "calc_out": 2.2, "retrieve": 3.3}


@pytest.mark.parametrize(("stamped", "text"), [(10, ""), (9, "9 of 10 tasks")])
def test_all_tasks_must_have_all_stamps(stamped: int, text: str) -> None:
    whole = [{**ROW, "worker": f"w{n}"} for n in range(stamped)]
    without = [{"submit": 0.12345, "retrieve": 3.3}] * (10 - stamped)
    table = timelines.table_of([*whole, *without])
    run = measured(table, 10, cold=True, same_clock=True)
    why = why_invalid(run, summarise(table, 10, 10, 2))
    assert why.startswith("incomplete") == bool(text)
    assert text in why


def test_the_sum_takes_all_output_at_the_rate_of_results() -> None:
    total = SYMPHONY.total(tasks=200, cores=100, sleep=2.0, output_mb=3.0)
    assert total == pytest.approx(5.6 + 2.0 + 200 * 3 * 8 / 570)


def test_the_rate_of_one_task_is_its_data_by_what_it_adds_to_a_step() -> None:
    plots = {one.id: one for one in plots_of(4, cells_of(all_done(4)))}
    (line,) = [one for one in plots["input-rate-0"].lines if one.name == "100 cores, one task"]
    found = {point.place.text: point.value.value for point in line.points}
    # In Mbit/s; 8 are 1 MB in a second.
    assert found["1MB"] == pytest.approx(8 * RATE / MB)
