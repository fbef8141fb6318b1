"""The first sentences of pages: who won, by how much, how sure; or a provisional answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import timelines
from gridbench.report.prose import verdict as of_runs
from gridbench.report.run_analysis import Study, study
from gridbench.report.source import Run
from gridbench.scenario.cases import cells_of
from gridbench.scenario.conclusions import verdict as of_cells
from scenario_results import all_done


def runs_of(*totals: tuple[str, float], ntasks: int = 1, record: dict | None = None) -> list[Study]:
    """Studies of runs of one task of 1 s that was back at each total."""
    studies = []
    for engine, total in totals:
        stamps = {"submit": 0.0, "calc_in": 0.5, "calc_out": 1.5, "retrieve": total, "sleep": 1.0}
        known = {"engine": {"name": engine}} | (record or {})
        table = timelines.table_of([stamps])
        studies.append(study(Run(engine, Path(engine), table, ntasks, 1, True, known, ())))
    return studies


def test_two_undisturbed_runs_of_each_engine_can_be_claimed() -> None:
    reported = of_runs(
        runs_of(("ray", 4.0), ("loky", 2.0), ("ray", 4.2), ("loky", 2.1), ("mpi", 9.0))
    )
    assert reported == (
        "loky won, 2.050 s against 4.100 s of ray, 2 times in the medians; its slowest run of 2"
        " was faster than the fastest of 2. Behind them: mpi 9.000 s (4.39 times)."
    )


def test_runs_that_overlap_or_stand_alone_cannot() -> None:
    reported = of_runs(runs_of(("ray", 3.0), ("loky", 2.0), ("ray", 5.0), ("loky", 3.5)))
    assert reported.startswith("Provisional: loky 2.75 s, ray 4.00 s (1.45 times); rounds scatter")
    assert "takes 2 undisturbed rounds" in of_runs(runs_of(("ray", 3.0), ("loky", 2.0)))
    assert of_runs(runs_of(("ray", 3.0))) == ""
    assert of_runs(runs_of(("ray", 3.0), ("ray", 2.0))) == "ray ran 2 times, in 2.000 s to 3.000 s."


def test_runs_that_do_not_count_or_differ_are_not_compared() -> None:
    both = (("ray", 4.0), ("loky", 2.0), ("ray", 4.2), ("loky", 2.1))
    invalid = runs_of(*both, record={"invalid_because": ["the machine was busy"]})
    unsound = "not all runs of ray and loky are complete and valid"
    assert unsound in of_runs(invalid)
    assert unsound in of_runs(runs_of(*both, ntasks=2))
    busy = {"invalid_because": ["others"], "load": {"judgement": "disturbed"}}
    assert of_runs(runs_of(*both, record=busy)) == (
        "Provisional: loky 2.05 s, ray 4.10 s (2 times); the machine was busy in 4 of 4 rounds."
    )
    assert of_runs(runs_of(both[0], record=busy)).startswith("Provisional: ray 4.00 s; ")
    ours, other = runs_of(*both[:2])
    cold = replace(other, run=replace(other.run, cold=False))
    assert "differ in their tasks, workers or start" in of_runs([ours, cold])


def test_scenarios_are_won_by_repeated_cases_only() -> None:
    fast, slow = all_done(3), all_done(3, "process-pool", slower=3.0)
    assert of_cells(cells_of([*fast, *slow])) == (
        "Provisional: gridrpc-native added less to the time of the tasks in 5 of 5 cases, and"
        " process-pool 3 times as much in the median; each case ran once, and a claim takes 2 runs."
    )
    again = [replace(one, round=one.round + 1) for one in (*fast, *slow)]
    reported = of_cells(cells_of([*fast, *slow, *again]))
    assert reported == (
        "gridrpc-native won: it added less to the time of the tasks in 5 of 5 cases, and"
        " process-pool 3 times as much in the median; clearly less in 5 of 5 repeated cases."
    )
    # Equal engines cannot be told apart, however often they ran.
    equal = [*fast, *all_done(3, "process-pool")]
    twice = [*equal, *(replace(one, round=one.round + 1) for one in equal)]
    assert of_cells(cells_of(twice)).startswith("Provisional: ")
    assert of_cells(cells_of(fast)) == "No engine won: cases of gridrpc-native alone count."
    busy = [replace(one, status="invalid", reason="disturbed: 2 of 2") for one in (*fast, *slow)]
    assert of_cells(cells_of(busy)) == (
        "Provisional: gridrpc-native added less to the time of the tasks in 5 of 5 cases, and"
        " process-pool 3 times as much in the median; the machine was busy in 10 of 10 cases."
    )
    assert of_cells(cells_of(busy[:5])).startswith("Provisional: gridrpc-native added ")
    invalid = [replace(one, status="invalid") for one in (*fast, *slow)]
    assert of_cells(cells_of(invalid)) == "Nothing can be claimed: no case counts."
