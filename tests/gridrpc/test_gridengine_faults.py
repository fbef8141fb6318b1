"""What befalls a real Grid Engine and a grid's jobs there: calls end once, and nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import batches
import remote
from batches import Everywhere, GridEngineSite, gridengine_of
from gridrpc import Grid, StartError, WorkerLost
from processes import LONG, until

pytestmark = pytest.mark.usefixtures("no_jobs_are_left")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GridEngineSite]:
    """One host of eight slots."""
    with gridengine_of(8) as engine:
        yield GridEngineSite(engine, tmp_path_factory.mktemp("shared"))


def details(grid: Grid) -> str:
    """Messages about hosts that are not there."""
    return "\n".join(host.detail for host in grid.hosts())


def test_a_job_that_reaches_its_wall_time_is_reported_so(
    site: GridEngineSite, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=1, workers=1, wall_time=15) as grid:
        work = Everywhere(grid, tmp_path)
        (job,) = site.running()
        loss = work.calls[0].exception(LONG)
        assert isinstance(loss, WorkerLost)
        assert f"its job {job} on " in str(loss)
        assert "has reached its wall time" in str(loss)
        # Another job takes its place.
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2


def test_calls_of_a_job_that_is_suspended_run_elsewhere_if_they_may(
    site: GridEngineSite, tmp_path: Path
) -> None:
    """As when a queue that goes before its own fills up."""
    with site.full_grid(tmp_path, nodes=2, workers=1) as grid:
        work = Everywhere(grid, tmp_path, idempotent=True)
        first, second = site.running()
        site.engine.run("qmod", "-sj", first)
        assert until(lambda: first not in site.running())
        assert len(work.let_go()) == 2
        grid.wait_until_ready(LONG)
        assert second in site.running()


def test_a_quota_is_told_to_who_waits(site: GridEngineSite, tmp_path: Path) -> None:
    with (
        site.engine.quota("users * to slots=1"),
        site.grid(tmp_path, nodes=2, workers=1) as grid,
    ):
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2
        assert until(lambda: "(a resource quota is reached, which `qquota` shows" in details(grid))


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("max_u_jobs", "the limit on jobs is reached"),
        ("max_aj_tasks", "the site does not take arrays as large as that"),
    ],
)
def test_a_request_beyond_a_limit_is_reported_with_a_remedy(
    site: GridEngineSite, tmp_path: Path, limit: str, words: str
) -> None:
    with site.full_grid(tmp_path, nodes=1, workers=1), site.engine.setting(limit, "1"):
        other = tmp_path / "other"
        other.mkdir()
        with site.grid(other, nodes=3, workers=1) as grid, pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        assert words in str(caught.value)


def test_a_hosts_daemon_is_started_again_while_its_job_runs(
    site: GridEngineSite, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=1, workers=1) as grid:
        pid = grid.submit(remote.pid).result(LONG)
        site.engine.stop_host()
        try:
            assert grid.submit(remote.pid).result(LONG) == pid
        finally:
            site.engine.start_host()
        assert grid.submit(remote.pid).result(LONG) == pid
    # A new daemon sees a minute later that what it has not started itself has ended.
    site.engine.cancel_all()


def test_a_host_that_is_switched_off_loses_its_calls_and_works_again(
    site: GridEngineSite, tmp_path: Path
) -> None:
    # Grid Engine sends a job to a host that it does not yet know to be off, where that one stays.
    with site.full_grid(tmp_path, nodes=2, workers=1, start_timeout=30) as grid:
        gate = tmp_path / "gate"
        started = [tmp_path / f"started{n}" for n in range(2)]
        lost, again = [
            grid.submit(batches.tell_node_and_wait, str(file), str(gate), idempotent=n == 1)
            for n, file in enumerate(started)
        ]
        assert until(lambda: all(file.exists() for file in started))
        waits = grid.submit(remote.add, 1, 1)
        site.engine.fail_host()
        try:
            loss = lost.exception(LONG)
        finally:
            site.engine.start_host()
        assert isinstance(loss, WorkerLost)
        assert "its agent is gone" in str(loss)
        gate.touch()
        assert waits.result(2 * LONG) == 2
        assert again.result(2 * LONG)
