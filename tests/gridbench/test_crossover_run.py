"""Measuring shared data through compute grids and from a data grid, for real and small."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossover_results import MB
from gridbench.datagrid.crossover.compute import ComputeSide
from gridbench.datagrid.crossover.plan import Wanted
from gridbench.process.interrupt import Stopped
from gridbench.process.leftovers import Leftovers


def side(folder: Path, leftovers: Leftovers, *, stopped: bool = False) -> ComputeSide:
    return ComputeSide(
        folder,
        leftovers=leftovers,
        limit=60.0,
        stopped=lambda: stopped,
        glance=lambda: None,
    )


def of(engine: str, readers: int = 2, size: int = 4 * MB) -> Wanted:
    return Wanted(side="compute grid", engine=engine, readers=readers, bytes=size, repeat=0)


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


def test_an_engine_that_has_no_workers_is_told_as_failed(
    tmp_path: Path, leftovers: Leftovers
) -> None:
    # The null engine does all tasks itself, as one worker, however long they are.
    found = side(tmp_path, leftovers).measure(of("null"))
    assert found.status == "failed"
    assert found.why


def test_a_run_that_the_user_ends_is_no_measurement(tmp_path: Path, leftovers: Leftovers) -> None:
    with pytest.raises(Stopped):
        side(tmp_path, leftovers, stopped=True).measure(of("process-pool"))
