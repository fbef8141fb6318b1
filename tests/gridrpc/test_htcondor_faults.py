"""What befalls a real HTCondor and a grid's jobs there: calls end once, and nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import remote
from batches import Everywhere, HTCondorSite, htcondor_of
from gridrpc import Grid, StartError, WorkerLost
from processes import LONG, until

pytestmark = [pytest.mark.htcondor, pytest.mark.usefixtures("no_jobs_are_left")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HTCondorSite]:
    """One machine of eight processors."""
    with htcondor_of(8) as htcondor:
        yield HTCondorSite(htcondor, tmp_path_factory.mktemp("shared"))


def loses_its_call(work: Everywhere) -> str:
    """Message about a grid's one call, which is lost."""
    loss = work.calls[0].exception(LONG)
    assert isinstance(loss, WorkerLost)
    return str(loss)


def works_again(grid: Grid) -> bool:
    grid.wait_until_ready(LONG)
    return bool(grid.submit(remote.add, 1, 1).result(LONG) == 2)


def test_a_job_that_somebody_holds_is_reported_so_and_comes_back(
    site: HTCondorSite, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=1, workers=1) as grid:
        work = Everywhere(grid, tmp_path)
        (job,) = site.running()
        site.htcondor.run("condor_hold", "-reason", "too much of it", job)
        assert f"HTCondor holds its job {job}: too much of it" in loses_its_call(work)
        assert works_again(grid)


def test_a_job_that_has_to_leave_its_machine_is_reported_so_and_another_comes(
    site: HTCondorSite, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=1, workers=1) as grid:
        work = Everywhere(grid, tmp_path)
        (job,) = site.running()
        site.requeue(job)
        assert "had to leave its" in loses_its_call(work)
        assert works_again(grid)
        assert job not in site.running()


def test_a_job_that_reaches_its_wall_time_is_reported_so(
    site: HTCondorSite, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=1, workers=1, wall_time=8) as grid:
        work = Everywhere(grid, tmp_path)
        assert "has reached its wall time" in loses_its_call(work)
        assert works_again(grid)


def test_a_machine_that_is_given_up_at_once_is_reported(site: HTCondorSite, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=1, workers=1) as grid:
        work = Everywhere(grid, tmp_path)
        site.htcondor.stop_machine("-fast")
        try:
            assert loses_its_call(work)
        finally:
            site.htcondor.start_machine()
        assert works_again(grid)


def test_a_machine_that_is_given_up_in_peace_lets_its_jobs_end(
    site: HTCondorSite, tmp_path: Path
) -> None:
    try:
        with site.full_grid(tmp_path, nodes=1, workers=1) as grid:
            (job,) = site.running()
            site.htcondor.stop_machine("-peaceful")
            for n in range(100):
                assert grid.submit(remote.add, n, n).result(LONG) == 2 * n
            assert site.running() == [job]
        assert site.nothing_is_left()
    finally:
        site.htcondor.start_machine()


def test_that_machines_take_no_jobs_is_told_to_who_waits(
    site: HTCondorSite, tmp_path: Path
) -> None:
    site.hold()
    try:
        with site.grid(tmp_path, nodes=1, workers=1) as grid:
            reason = "(no machine that is free has what it wants"
            assert until(lambda: reason in grid.hosts()[0].detail)
            site.resume()
            assert works_again(grid)
    finally:
        site.resume()


@pytest.mark.parametrize("limit", ["MAX_JOBS_PER_OWNER", "MAX_JOBS_PER_SUBMISSION"])
def test_a_request_beyond_a_limit_is_reported_with_a_remedy(
    site: HTCondorSite, tmp_path: Path, limit: str
) -> None:
    with (
        site.htcondor.policy(limit, "2"),
        site.grid(tmp_path, nodes=3, workers=1) as grid,
        pytest.raises(StartError) as caught,
    ):
        grid.wait_until_ready(LONG)
    assert "HTCondor has refused the job: " in str(caught.value)
    assert "the limit on jobs is reached: ask for fewer `nodes`" in str(caught.value)
