"""Results of each kind are judged by rules of their own: good ones keep all, and what a rule is
against breaks it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import crossover_results
import datagrid_cases
import micro_results
import sync_rounds
from gridbench.bench.areas.figures import Row
from gridbench.bench.areas.runner import as_record
from gridbench.bench.micro.figures import RESULTS, Extent, Figure, Ratio, Results
from gridbench.bench.micro.results import results_of
from gridbench.bench.points import POINTS, Point, PointsFile, open_points
from gridbench.datagrid.record import Case as DataCase
from gridbench.datagrid.record import WarmUp, Windows
from gridbench.record_file import Header
from gridbench.results.kinds import RUNS, all_kinds, module_of, rules_for, rules_of
from gridbench.rules import Finding, Rules
from gridbench.statistics.series import Series
from gridbench.sync.record import ERRORS, KEPT, Phase, Round, Task
from running import REPOSITORY, Run

QUIET = {"judgement": "undisturbed", "told": ""}
DISTURBED = {"judgement": "disturbed", "told": "disturbed: other programs used 1.9 processors"}


def judged(source: Path) -> dict[str, Finding]:
    rules = rules_for(source)
    assert rules is not None
    (place,) = rules.places(source)
    return {one.rule: one for one in rules.judge(rules.read(place))}


def outcomes(source: Path) -> dict[str, str]:
    return {name: one.outcome for name, one in judged(source).items()}


# ---- Synchronised rounds


def tasks_of(count: int = 2) -> list[Task]:
    phases = [Phase(name="write", seconds=0.5, bytes=1000)]
    return [
        sync_rounds.task_of(number, 0.0, 1.0, phases=phases, exit=0, output=f"output/{number}.txt")
        for number in range(count)
    ]


def rounds_of(repeats: int = 2) -> list[Round]:
    return [sync_rounds.round_of(tasks_of(), repeat=n, load=QUIET) for n in range(repeats)]


def printed(seconds: float = 0.5) -> bytes:
    line = {"phases": [{"name": "write", "seconds": seconds, "bytes": 1000}]}
    return json.dumps(line).encode()


def sync_folder(folder: Path, rounds: list[Round], output: bytes | None = None) -> Path:
    sync_rounds.write_folder(folder, rounds)
    (folder / "output").mkdir()
    for number in range(2):
        (folder / "output" / f"{number}.txt").write_bytes(printed() if output is None else output)
    return folder


def changed(one: Round, **changes: Any) -> Round:
    """With the first task changed."""
    return replace(one, tasks=(replace(one.tasks[0], **changes), *one.tasks[1:]))


def test_good_rounds_keep_all_rules(tmp_path: Path) -> None:
    found = judged(sync_folder(tmp_path, rounds_of()))
    assert {one.outcome for one in found.values()} == {"kept"}, found
    told = found["figures follow from what tasks printed"].told
    assert told == "phases of 4 tasks, read again from what they printed"


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("complete", lambda one: replace(one, status="failed")),
        # The round says of itself that all is well.
        ("complete", lambda one: changed(one, status="failed")),
        ("complete", lambda one: changed(one, exit=1)),
        ("complete", lambda one: changed(one, ended=None)),
        ("complete", lambda one: replace(one, tasks=one.tasks[1:])),
        ("complete", lambda one: replace(one, tasks=(one.tasks[0], one.tasks[0]))),
        ("stamps are in order", lambda one: changed(one, began=-0.01)),
        ("stamps are in order", lambda one: changed(one, began=2.0)),
        ("phases fit into their tasks", lambda one: changed(one, ended=0.4)),
        (
            "figures follow from what tasks printed",
            lambda one: changed(one, phases=(Phase(name="write", seconds=0.25, bytes=1000),)),
        ),
        ("nothing else was at work", lambda one: replace(one, load=DISTURBED)),
        ("repeated", lambda one: replace(one, load=DISTURBED)),
        ("repeated", lambda one: replace(one, parameter=f"{one.repeat}")),
    ],
)
def test_what_a_rule_of_rounds_is_against_breaks_it(
    rule: str, change: Callable[[Round], Round], tmp_path: Path
) -> None:
    folder = sync_folder(tmp_path, [change(one) for one in rounds_of()])
    assert outcomes(folder)[rule] == "broken"


def test_rounds_that_do_not_count_are_left_out(tmp_path: Path) -> None:
    three = rounds_of(3)
    three[1] = replace(three[1], load=DISTURBED)
    found = judged(sync_folder(tmp_path, three))
    assert {one.outcome for one in found.values()} == {"kept"}
    told = found["nothing else was at work"].told
    assert told == "nothing disturbed 2 rounds; 1 more do not count, and are left out"


def test_the_clocks_allow_for_what_they_do_not_know(tmp_path: Path) -> None:
    early = [changed(one, began=-0.01, clock_error=0.02) for one in rounds_of()]
    assert outcomes(sync_folder(tmp_path, early))["stamps are in order"] == "kept"


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        (printed() + ERRORS + printed(9.0), "kept"),
        (printed(0.25), "broken"),
        (b"", "broken"),
        (b"x" * KEPT, "not known"),
    ],
)
def test_what_tasks_printed_is_read_again(output: bytes, outcome: str, tmp_path: Path) -> None:
    folder = sync_folder(tmp_path, rounds_of(), output)
    assert outcomes(folder)["figures follow from what tasks printed"] == outcome


@pytest.mark.parametrize("output", ["", "output/none.txt", "../outside.txt"])
def test_what_is_not_kept_of_rounds_is_not_known(output: str, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_bytes(printed())
    rounds = [replace(changed(one, output=output), load=None) for one in rounds_of()]
    found = outcomes(sync_folder(tmp_path / "rounds", rounds))
    assert found.pop("figures follow from what tasks printed") == "not known"
    assert found.pop("nothing else was at work") == "not known"
    assert set(found.values()) == {"kept"}


def test_no_rounds_are_not_complete(tmp_path: Path) -> None:
    assert outcomes(sync_folder(tmp_path, []))["complete"] == "broken"


# ---- Data grids


def data_case(**changes: Any) -> DataCase:
    return replace(datagrid_cases.four(), seconds=1.9, load=QUIET, **changes)


def data_folder(folder: Path, change: Callable[[DataCase], DataCase] = lambda one: one) -> Path:
    cases = [change(data_case(repeat=n)) for n in range(2)]
    return datagrid_cases.write_folder(folder, cases)


def test_good_cases_keep_all_rules(tmp_path: Path) -> None:
    found = judged(data_folder(tmp_path))
    assert {one.outcome for one in found.values()} == {"kept"}, found


def lost(case: DataCase) -> DataCase:
    assert case.checked is not None
    return replace(case, checked=replace(case.checked, found=999, missing=1))


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("complete", lambda one: replace(one, status="failed", why="no member joined")),
        ("data were right", lost),
        ("data were right", lambda one: replace(one, wrong=1)),
        ("figures follow from the stamps", lambda one: replace(one, seconds=1.0)),
        (
            "figures follow from the stamps",
            lambda one: replace(one, counts=replace(one.counts, reads=80)),
        ),
        (
            "figures follow from the stamps",
            lambda one: replace(one, windows=Windows(operations=(3,) * 20, errors=(0,) * 20)),
        ),
        ("figures follow from the stamps", lambda one: replace(one, latencies=())),
        ("nothing else was at work", lambda one: replace(one, load=DISTURBED)),
        ("warm and steady", lambda one: replace(one, warm_up=None)),
        ("warm and steady", lambda one: replace(one, warm_up=WarmUp(seconds=1.0, steady=False))),
        ("long enough to judge", lambda one: replace(one, windows=Windows(operations=(40,)))),
        ("repeated", lambda one: replace(one, warm_up=None)),
        ("who measured what, where", lambda one: replace(one, version="")),
    ],
)
def test_what_a_rule_of_data_grids_is_against_breaks_it(
    rule: str, change: Callable[[DataCase], DataCase], tmp_path: Path
) -> None:
    assert outcomes(data_folder(tmp_path, change))[rule] == "broken"


def test_what_is_not_recorded_of_a_data_grid_is_not_known(tmp_path: Path) -> None:
    found = outcomes(data_folder(tmp_path, lambda one: replace(one, load=None, checked=None)))
    assert found.pop("data were right") == "not known"
    assert found.pop("nothing else was at work") == "not known"
    assert set(found.values()) == {"kept"}


def test_wrong_data_of_a_run_that_does_not_count_are_told(tmp_path: Path) -> None:
    cases = [data_case(repeat=n) for n in range(3)]
    cases[2] = lost(cases[2])
    found = outcomes(datagrid_cases.write_folder(tmp_path, cases))
    assert found.pop("data were right") == "broken"
    assert set(found.values()) == {"kept"}


def test_a_loss_that_had_to_be_is_no_wrong(tmp_path: Path) -> None:
    cases = [
        lost(datagrid_cases.killed((2,) * 20, repeat=n, load=QUIET, backups=0)) for n in range(2)
    ]
    found = judged(datagrid_cases.write_folder(tmp_path, cases))
    assert found["data were right"].outcome == "kept"
    assert found["data were right"].told.endswith("what was lost is what had to be")
    assert found["long enough to judge"].outcome == "kept"


# ---- The crossover


def crossover_folder(folder: Path, **changes: Any) -> Path:
    found = crossover_results.measured(
        crossover_results.ENGINES, sizes=(crossover_results.MB,), readers=(1, 2), repeats=2
    )
    return crossover_results.write_folder(folder, [replace(one, **changes) for one in found])


def test_a_good_crossover_keeps_all_rules(tmp_path: Path) -> None:
    assert set(outcomes(crossover_folder(tmp_path)).values()) == {"kept"}


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("complete", {"status": "failed", "why": "no memory"}),
        ("complete", {"status": "skipped", "why": "no memory"}),
        ("nothing else was at work", {"load": DISTURBED}),
        ("repeated", {"load": DISTURBED}),
        ("repeated", {"repeat": 0}),
        ("who measured what, where", {"version": ""}),
    ],
)
def test_what_a_rule_of_the_crossover_is_against_breaks_it(
    rule: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    assert outcomes(crossover_folder(tmp_path, **changes))[rule] == "broken"


# ---- Micro benchmarks

ENGINES = {"gridrpc-python": 10.0, "gridrpc-python, again": 11.0, "ray": 1000.0}
HEADER = Header(
    machine={"host": "bench", "processor": "a processor", "cores": 2},
    versions={"python": "3.11", "gridrpc": "0.1.0"},
    options={"sizes": "quick"},
    started="2031-05-04T10:30:00+0200",
    seed=1,
)


def points_of(rounds: int = 2, **changes: Any) -> list[Point]:
    """Of null calls; `changes` are those of the points of Ray in the last round."""
    found = [
        Point(
            workload="null_call",
            engine=engine,
            round=number,
            values={"us": value + number},
            at="2031-05-04T10:31:00+0200",
            version="1.0",
        )
        for number in range(rounds)
        for engine, value in ENGINES.items()
    ]
    found[-1] = replace(found[-1], **changes)
    return found


def micro_folder(
    folder: Path, points: list[Point], change: Callable[[Results], Results] = lambda one: one
) -> Path:
    """As `gridbench micro` leaves it, but for the change."""
    file: PointsFile = open_points(folder, HEADER, fresh=True)
    for point in points:
        file.add(point)
    file.close()
    results = results_of(HEADER, points, "2031-05-04T11:15:00+0200")
    count = len(points)
    extent = Extent(points=count, planned=count, round=2, rounds=2)
    record = change(replace(results, extent=extent)).to_record()
    (folder / RESULTS).write_text(json.dumps(record))
    return folder


def with_figure(**changes: Any) -> Callable[[Results], Results]:
    return lambda one: replace(one, figures=(replace(one.figures[0], **changes),))


def with_first_entry(**changes: Any) -> Callable[[Results], Results]:
    def change(one: Results) -> Results:
        first, *others = one.figures[0].entries
        return replace(
            one,
            figures=(replace(one.figures[0], entries=(replace(first, **changes), *others)),),
        )

    return change


def test_good_micro_benchmarks_keep_all_rules(tmp_path: Path) -> None:
    found = judged(micro_folder(tmp_path, points_of()))
    assert {one.outcome for one in found.values()} == {"kept"}, found
    assert found["equals were measured too"].told.startswith("in 1 figure with claims")


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        (
            "complete",
            lambda one: replace(one, extent=Extent(points=4, planned=6, round=2, rounds=2)),
        ),
        ("figures follow from the values", with_first_entry(median=1.0)),
        ("figures follow from the values", with_first_entry(runs=3)),
        ("figures follow from the values", with_first_entry(values=(5.0, 5.0), median=5.0)),
        ("figures follow from the values", with_figure(noise=1.0)),
        ("figures follow from the values", with_figure(ratios={"ray": Ratio(claim="faster")})),
        ("equals were measured too", with_figure(noise=1.0)),
        ("who measured what, where", lambda one: replace(one, machine={})),
        ("who measured what, where", lambda one: replace(one, versions=HEADER.versions)),
        ("who measured what, where", lambda one: replace(one, ended="")),
    ],
)
def test_what_a_rule_of_micro_benchmarks_is_against_breaks_it(
    rule: str, change: Callable[[Results], Results], tmp_path: Path
) -> None:
    assert outcomes(micro_folder(tmp_path, points_of(), change))[rule] == "broken"


def test_a_round_that_failed_may_not_be_hidden(tmp_path: Path) -> None:
    failed = points_of(rounds=3, status="failed", why="it crashed", values={})
    found = judged(micro_folder(tmp_path / "one", failed))
    assert found["no failure is hidden"].outcome == "broken"
    assert found["no failure is hidden"].told.endswith("ray in null_call")
    # An engine that failed in all rounds is shown as failed.
    all_failed = [
        replace(point, status="failed", why="it crashed", values={})
        if point.engine == "ray"
        else point
        for point in points_of()
    ]
    shown = judged(micro_folder(tmp_path / "all", all_failed))["no failure is hidden"]
    assert (shown.outcome, shown.told) == ("kept", "1 value failed, and the figures say so")
    # And one that is left out is hidden.
    left_out = micro_folder(
        tmp_path / "none",
        all_failed,
        lambda one: with_figure(entries=one.figures[0].entries[:1])(one),
    )
    assert outcomes(left_out)["no failure is hidden"] == "broken"


def test_claims_need_two_undisturbed_rounds(tmp_path: Path) -> None:
    points = points_of(rounds=2, disturbed=True)
    claimed = with_figure(ratios={"gridrpc-python": Ratio(claim="faster")})
    found = judged(micro_folder(tmp_path, points, claimed))["claims were repeated undisturbed"]
    assert found.outcome == "broken"
    assert found.told == "undisturbed less than 2 times: ray in null_call 1 time"


def test_results_without_their_points_are_judged_as_far_as_that_goes(tmp_path: Path) -> None:
    folder = micro_folder(tmp_path, points_of())
    (folder / POINTS).unlink()
    found = outcomes(folder / RESULTS)
    assert found.pop("no failure is hidden") == "not known"
    assert set(found.values()) == {"kept"}
    micro_folder(tmp_path / "other", points_of(), with_first_entry(median=1.0))
    (tmp_path / "other" / POINTS).unlink()
    assert outcomes(tmp_path / "other")["figures follow from the values"] == "broken"


def test_what_older_results_do_not_say_is_not_known(tmp_path: Path) -> None:
    figures: tuple[Figure, ...] = (
        micro_results.latency(),
        replace(micro_results.rate(), noise=1.0),
    )
    file = tmp_path / "old.json"
    file.write_text(json.dumps(micro_results.made(figures=figures, extent=None).to_record()))
    found = judged(file)
    assert found["complete"].outcome == "not known"
    assert found["equals were measured too"].outcome == "not known"
    assert found["equals were measured too"].told.endswith("no twin: map_rate")


# ---- Areas


def area_file(file: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> Path:
    """As `gridbench bench` leaves it, but for the change."""
    row = Row(
        what="null calls",
        unit="us",
        ours=Series({0: 2.0, 1: 3.0}),
        peer=Series({0: 4.0, 1: 9.0}),
        limit=Series({0: 1.0, 1: 1.0}),
    )
    points = [
        Point(workload=name, round=number, values={"us": 1.0}, at="2031-05-04T10:31:00+0200")
        for name in ("calls", "peer")
        for number in range(2)
    ]
    record = {
        "machine": HEADER.machine,
        "versions": HEADER.versions,
        "extent": "usual",
        "complete": True,
        "areas": {"modules": {"title": "Modules", "rows": [as_record(row)]}},
        "points": [asdict(point) for point in points],
    }
    record = json.loads(json.dumps(record))
    change(record)
    file.write_text(json.dumps(record))
    return file


def first_row(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda record: record["areas"]["modules"]["rows"][0].update(changes)


def first_point(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda record: record["points"][0].update(changes)


def test_good_areas_keep_all_rules(tmp_path: Path) -> None:
    assert set(outcomes(area_file(tmp_path / "figures.json")).values()) == {"kept"}


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("complete", lambda record: record.update(complete=False)),
        ("no failure is hidden", first_point(status="failed", why="it crashed")),
        ("figures follow from the values", first_row(gridrpc={"median": 1.0, "values": [2.0]})),
        ("figures follow from the values", first_row(ratio_to_peer=0.1)),
        ("figures follow from the values", first_row(ratio_to_limit=1.0)),
        ("repeated", first_point(disturbed=True)),
        ("repeated", first_point(status="failed", why="it crashed")),
        ("who measured what, where", lambda record: record.update(versions={})),
    ],
)
def test_what_a_rule_of_areas_is_against_breaks_it(
    rule: str, change: Callable[[dict[str, Any]], object], tmp_path: Path
) -> None:
    assert outcomes(area_file(tmp_path / "figures.json", change))[rule] == "broken"


def test_a_failure_that_the_tables_tell_is_not_hidden(tmp_path: Path) -> None:
    def failed(record: dict[str, Any]) -> None:
        first_point(status="failed", why="it crashed")(record)
        first_row(problems=["calls, round 1: it crashed"])(record)

    found = judged(area_file(tmp_path / "figures.json", failed))["no failure is hidden"]
    assert (found.outcome, found.told) == ("kept", "1 run failed, and the tables say so")


def test_of_older_files_of_areas_less_is_known(tmp_path: Path) -> None:
    found = outcomes(area_file(tmp_path / "old.json", lambda record: record.pop("points")))
    assert found.pop("no failure is hidden") == "not known"
    assert found.pop("repeated") == "not known"
    assert set(found.values()) == {"kept"}


def test_a_damaged_file_of_areas_is_told(gridbench: Run, tmp_path: Path) -> None:
    area_file(tmp_path / "figures.json", lambda record: record.update(complete="yes"))
    done = gridbench("check", "figures.json")
    assert done.returncode == 2
    assert "is no file of `gridbench bench`, or it is damaged: complete" in done.stderr


# ---- The command


def test_all_results_below_a_folder_are_judged(gridbench: Run, tmp_path: Path) -> None:
    sync_folder(tmp_path / "all" / "rounds", rounds_of())
    data_folder(tmp_path / "all" / "deep" / "data")
    micro_folder(tmp_path / "all" / "micro", points_of())
    done = gridbench("check", "all")
    assert done.returncode == 0, done.stdout
    assert "All rules are kept." in done.stdout
    crossover_folder(tmp_path / "all" / "crossover", version="")
    found = gridbench("check", "all", "all/rounds", "--json")
    assert found.returncode == 1
    document = json.loads(found.stdout)
    assert {key: list(own) for key, own in document.items() if own} == {
        "crossovers": ["all/crossover"],
        "cases": ["all/deep/data"],
        "micro": ["all/micro"],
        "rounds": ["all/rounds"],
    }
    assert document["all"] == []
    last = document["crossovers"]["all/crossover"][-1]
    assert (last["rule"], last["outcome"]) == ("who measured what, where", "broken")


def test_text_from_outside_is_shown_as_it_is(gridbench: Run, tmp_path: Path) -> None:
    rounds = [
        replace(one, parameter="[red]\x1b[31m", load=DISTURBED) for one in rounds_of(repeats=1)
    ]
    sync_folder(tmp_path / "rounds", rounds)
    told = gridbench("check", "rounds", env={"COLUMNS": "300"}).stdout
    assert "programs disturbed: 2 workers, [red]?[31m, round 1" in told


# ---- The page


def all_rules() -> dict[str, Rules[Any]]:
    """By the heading of the page."""
    areas = rules_for(REPOSITORY / "docs/benchmarks/cluster.json")
    assert areas is not None
    kinds = {kind.title: rules_of(kind) for kind in all_kinds()}
    return {
        "Runs of tasks and scenarios": rules_of(module_of(RUNS)),
        "Micro benchmarks": kinds["gridbench micro"],
        "Synchronised rounds": kinds["gridbench sync"],
        "Data grids": kinds["gridbench data"],
        "Crossover": kinds["gridbench data crossover"],
        "Areas of gridbench bench": areas,
    }


def test_all_rules_have_their_reasons() -> None:
    page = (REPOSITORY / "docs/rules.md").read_text(encoding="utf-8")
    told = {}
    for section in page.split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        rows = [row.split("|")[1].strip() for row in text.splitlines() if row.startswith("| ")]
        told[heading] = rows[1:]
    known = all_rules()
    assert told == {name: [*rules.each, *rules.across] for name, rules in known.items()}
    keys = [rules.key for rules in known.values()]
    assert f"({', '.join(f'`{key}`' for key in keys)})" in " ".join(page.split())


def test_scenarios_are_judged_by_their_runs() -> None:
    titles = {kind.title: rules_of(kind).key for kind in all_kinds()}
    assert titles["gridbench scenario"] == titles["gridbench run"] == "runs"
