"""Measuring shared data through compute grids and from a data grid, for real and small."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from crossover_results import MB
from gridbench.datagrid.crossover.experiment import ComputeSide, GridSide, plans_of, sharing_of
from gridbench.datagrid.crossover.options import CrossoverParameters
from gridbench.datagrid.crossover.record import FORM, PlannedSharing
from gridbench.datagrid.record import DataGridCase, Loading, TaskTimeline
from gridbench.errors import InputError
from gridbench.process.children import Leftovers
from gridbench.process.interrupt import Stopped
from running import Run


def side(folder: Path, leftovers: Leftovers, *, stopped: bool = False) -> ComputeSide:
    return ComputeSide(
        folder,
        leftovers=leftovers,
        limit=60.0,
        stopped=lambda: stopped,
        glance=lambda: None,
    )


def of(engine: str, readers: int = 2, size: int = 4 * MB) -> PlannedSharing:
    return PlannedSharing(side="compute grid", engine=engine, readers=readers, bytes=size, repeat=0)


@pytest.fixture
def leftovers() -> Iterator[Leftovers]:
    with Leftovers() as found:
        yield found


@pytest.mark.parametrize(
    ("engine", "with_each_task"), [("process-pool", True), ("gridrpc-python", False)]
)
def test_every_worker_gets_the_data_once(
    tmp_path: Path, leftovers: Leftovers, engine: str, with_each_task: bool
) -> None:
    found = side(tmp_path, leftovers).measure(of(engine))
    assert (found.status, found.why) == ("done", "")
    assert 0 < found.seconds < 30
    assert found.reading == found.seconds
    assert found.workers == 2
    assert found.with_each_task == with_each_task
    assert found.version
    assert found.load is not None
    assert found.load["judgement"] in {"undisturbed", "disturbed"}
    assert list(tmp_path.iterdir()) == []


def test_data_that_does_not_fit_into_memory_is_left_out(
    tmp_path: Path, leftovers: Leftovers
) -> None:
    found = side(tmp_path, leftovers).measure(of("process-pool", 16, 2**40))
    assert found.status == "skipped"
    assert "does not fit into memory" in found.why
    assert math.isclose(found.seconds, 0.0)


def test_an_engine_that_has_no_workers_is_reported_as_failed(
    tmp_path: Path, leftovers: Leftovers
) -> None:
    # The null engine does all tasks itself, as one worker, however long they are.
    found = side(tmp_path, leftovers).measure(of("null"))
    assert found.status == "failed"
    assert found.why


def test_a_run_that_the_user_ends_is_no_measurement(tmp_path: Path, leftovers: Leftovers) -> None:
    with pytest.raises(Stopped):
        side(tmp_path, leftovers, stopped=True).measure(of("process-pool"))


def request(**more: object) -> CrossoverParameters:
    values: dict[str, object] = {
        "sizes": (MB, 2 * MB),
        "cores": (1, 2),
        "warm": 0.5,
        "object_size": MB,
    }
    return CrossoverParameters(**(values | more))  # type: ignore[arg-type]


def from_grid(engine: str = "embedded", readers: int = 2, size: int = 2 * MB) -> PlannedSharing:
    return PlannedSharing(side="data grid", engine=engine, readers=readers, bytes=size, repeat=1)


def grid(requested: CrossoverParameters) -> GridSide:
    console = Console(quiet=True)
    return GridSide(requested, plans_of(requested, console), lambda: None, console)


def test_every_client_reads_all_of_the_data() -> None:
    with grid(request()) as data_grid:
        for readers in (1, 2):
            found = data_grid.measure(from_grid(readers=readers))
            assert (found.status, found.why) == ("done", "")
            assert 0 < found.reading < found.seconds < 60
            assert (found.members, found.processes) == (0, 1)
            assert found.object_size == MB
            assert found.repeat == 1
            assert found.title
            assert found.load is not None
            assert found.load["judgement"] in {"undisturbed", "disturbed"}


def test_an_unknown_data_grid_is_refused() -> None:
    with pytest.raises(InputError, match="unknown data grid"):
        grid(request(data_grids=("nosuch",)))


def test_data_that_the_machine_has_no_room_for_are_left_out() -> None:
    with grid(request(sizes=(MB, 999_999 * MB))) as data_grid:
        found = data_grid.measure(from_grid(size=999_999 * MB))
    assert found.status == "skipped"
    assert "is available" in found.why


def case(**more: object) -> DataGridCase:
    values: dict[str, object] = {
        "engine": "embedded",
        "title": "Embedded",
        "version": "1",
        "label": "shared",
        "scenario": None,
        "parameters": {},
        "repeat": 0,
        "processes": 1,
        "at": "2031-05-04T10:31:00+00:00",
        "status": "done",
        "loading": Loading(objects=2, bytes=2 * MB, seconds=3.0),
        "tasks": TaskTimeline(id=(0, 1), ended=(0.5, 2.0)),
    }
    return DataGridCase(**(values | more))  # type: ignore[arg-type]


def test_the_time_is_that_of_loading_and_to_the_latest_end() -> None:
    found = sharing_of(from_grid(), request(), case())
    assert (found.status, found.seconds, found.reading) == ("done", 5.0, 2.0)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"status": "failed", "why": "a member ended"}, "a member ended"),
        ({"wrong": 1}, "1 of its reads went wrong"),
        ({"missing": 2}, "2 of its reads went wrong"),
        ({"errors": {"timeout": 3}}, "3 of its reads went wrong"),
        ({"loading": None}, "it did not come to its end"),
    ],
)
def test_a_case_that_went_wrong_is_no_measurement(more: dict[str, object], text: str) -> None:
    found = sharing_of(from_grid(), request(), case(**more))
    assert (found.status, found.why) == ("failed", text)


def test_a_second_round_begins_with_the_compute_grid_again(gridbench: Run, tmp_path: Path) -> None:
    # The processes of the data grid of the first round are no leftovers of the runs of the second.
    done = gridbench(
        *("data", "crossover", "--engine", "process-pool", "--sizes", "1MB", "--cores", "1"),
        *("--warm", "0.5", "--rounds", "2", "--accept-load", "--out", "results"),
        env={"XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stderr
    _, found = FORM.read(tmp_path / "results")
    assert [(one.side, one.status) for one in found] == [
        ("compute grid", "done"),
        ("data grid", "done"),
    ] * 2


def test_the_command_measures_both_sides_and_continues(gridbench: Run, tmp_path: Path) -> None:
    command = (
        "data",
        "crossover",
        "--engine",
        "process-pool",
        "--sizes",
        "1MB,2MB",
        "--warm",
        "0.5",
    )
    options = ("--rounds", "1", "--accept-load", "--out", "results", "--json")
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = gridbench(*command, "--cores", "1", *options, env=cache)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert len(record["measurements"]) == 4
    assert {one["status"] for one in record["measurements"]} == {"done"}
    assert [one["there_already"] for one in record["crossings"]] == [False, True]
    page = (tmp_path / "results" / "report.html").read_text()
    assert "is in the readers&#39; own process" in page
    again = gridbench(*command, "--cores", "1,2", *options, env=cache)
    assert again.returncode == 0, again.stderr
    assert "4 of 8 measurements are there" in again.stderr
    _, found = FORM.read(tmp_path / "results")
    assert len(found) == 8
    assert {one.with_each_task for one in found if one.side == "compute grid"} == {True}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--engine", "nosuch"), "unknown engine `nosuch`"),
        (("--engine", "ray", "--engine", "ray"), "--engine: the engine `ray` occurs twice"),
        (("--data-grid", "nosuch"), "unknown data grid `nosuch`"),
        (("--sizes", "1.5MB"), "1.5 MB cannot be divided into objects of 1 MB"),
        (("--sizes", "0"), "cannot be divided"),
        (("--sizes", "x"), "is not a size"),
        (("--cores", "0"), "--cores: `0` is not a whole number from 1 to"),
        (("--object-size", "8B"), "--object-size: must be from 32 B to 512 MB, not 8B"),
        (("--sizes", "1GB", "--object-size", "512B"), "2,097,152 objects of 512 B"),
        (("--warm", "0"), "--warm: must be from 0.001 s to 3,600 s, not `0`"),
        (("--case-limit", "nan"), "--case-limit: `nan` is not a time"),
        (("--case-limit", "-1s"), "--case-limit: must be from 0.001 s to"),
    ],
)
def test_bad_input_is_reported_before_anything_is_measured(
    refused: Run, tmp_path: Path, options: tuple[str, ...], text: str
) -> None:
    done = refused("data", "crossover", *options, "--accept-load")
    assert done.returncode == 2, done.stderr
    assert text in done.stderr
    assert done.stderr.count("\n") <= 2
    assert not (tmp_path / "runs").exists()
