"""What befalls a real Slurm and the jobs of a grid there: calls end once, and nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import batches
import remote
from batches import Everywhere, Site, slurm_of
from gridrpc import StartError, WorkerLost
from processes import LONG, until
from sessions import command

pytestmark = pytest.mark.usefixtures("no_jobs_are_left")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Four nodes of eight processors."""
    with slurm_of(4, 8) as slurm:
        yield Site(slurm, tmp_path_factory.mktemp("shared"))


def test_a_nodes_daemon_is_started_again_while_its_job_runs(site: Site, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=1, options=["--nodelist=n2"]) as grid:
        pids = {grid.submit(remote.pid).result(LONG) for _ in range(20)}
        site.slurm.stop_node("n2")
        assert grid.submit(remote.pid).result(LONG) in pids
        site.slurm.start_node("n2")
        assert grid.submit(remote.pid).result(LONG) in pids


def test_a_node_whose_spool_is_full_is_reported(site: Site, tmp_path: Path) -> None:
    keys = {"nodes": 1, "options": ["--nodelist=n3"], "start_timeout": 5}
    with batches.full_disk(site.slurm.spool("n3")):
        with site.grid(tmp_path, **keys) as grid, pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        # Slurm has taken the node out of use.
        assert "nodes that it needs are down, drained" in str(caught.value)
        assert "UnavailableNodes:n3" in str(caught.value)
    site.slurm.resume("n3")


def test_a_partition_that_takes_no_jobs_is_reported_with_a_remedy(
    site: Site, tmp_path: Path
) -> None:
    closed = ("scontrol", "update", "partitionname=closed")
    site.slurm.run(*closed, "state=inactive")
    try:
        with (
            site.grid(tmp_path, partition="closed") as grid,
            pytest.raises(StartError) as caught,
        ):
            grid.wait_until_ready(LONG)
        assert "Required partition not available (inactive or drain)" in str(caught.value)
        assert "which partitions are up, and name one of these by `partition`" in str(caught.value)
    finally:
        site.slurm.run(*closed, "state=down")


@contextmanager
def full(site: Site) -> Iterator[None]:
    """Slurm takes no more jobs."""
    site.hold()
    try:
        job = site.slurm.run("sbatch", "--parsable", "--output=/dev/null", "--wrap=true").strip()
        try:
            with site.slurm.changed("MaxJobCount", "1"):
                yield
        finally:
            site.slurm.run("scancel", job)
    finally:
        site.resume()


def test_a_session_whose_jobs_are_refused_says_so_at_its_start(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "grid.toml").write_text(site.server(partition="nowhere"))
    said = command("start", "refused", "--config", "grid.toml", cwd=tmp_path, status=1)
    assert "session `refused` could not be started" in said
    assert "invalid partition specified: nowhere" in said
    # A job that waits is none that is refused.
    site.hold()
    try:
        (tmp_path / "grid.toml").write_text(site.server())
        command("start", "waiting", "--config", "grid.toml", cwd=tmp_path)
        assert site.queued()
    finally:
        command("stop", "waiting", "--forget", cwd=tmp_path)
        site.resume()


@pytest.mark.parametrize(
    ("request_form", "said"),
    [
        ("array", "Slurm temporarily unable to accept job"),
        ("direct", "Slurm controller not responding, sleeping"),
    ],
)
def test_a_slurm_that_takes_no_more_jobs_is_reported(
    site: Site, tmp_path: Path, request_form: str, said: str
) -> None:
    keys = {"nodes": 2, "request": request_form, "start_timeout": 5, "stop_timeout": 1}
    with full(site), site.grid(tmp_path, **keys) as grid:
        with pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        assert "the batch system has not answered within 5 s" in str(caught.value)
        assert "it is being submitted" in str(caught.value)
        assert said in str(caught.value)
        assert "firewall" not in str(caught.value)


@contextmanager
def preempting(site: Site, work: Everywhere) -> Iterator[None]:
    """A job of another partition takes the node of a grid's one job."""
    (node,) = set(work.nodes)
    command = ["sbatch", "--parsable", "--partition=urgent", "--exclusive", f"--nodelist={node}"]
    job = site.slurm.run(*command, "--output=/dev/null", "--wrap=sleep 600").strip()
    try:
        yield
    finally:
        site.slurm.run("scancel", job)


def test_a_job_that_has_to_make_room_is_reported_so_and_another_comes(
    site: Site, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=1, workers=1) as grid:
        work = Everywhere(grid, tmp_path)
        (job,) = site.running()
        with preempting(site, work):
            loss = work.calls[0].exception(LONG)
            assert isinstance(loss, WorkerLost)
            how = f"its job {job} on {work.nodes[0]} had to make room for a job that goes before it"
            assert how in str(loss)
            assert grid.submit(batches.node).result(LONG) != work.nodes[0]


def test_a_job_that_has_to_make_room_rejoins_if_it_may(site: Site, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=1, workers=1, requeue=True) as grid:
        work = Everywhere(grid, tmp_path, idempotent=True)
        (job,) = site.running()
        with preempting(site, work):
            site.run_soon(job)
            work.gate.touch()
            assert work.calls[0].result(LONG) != work.nodes[0]
            assert job in site.running()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"nodes": 2, "request": "job"}, "more nodes than its partition gives a job, or has up"),
        ({"wall_time": 3600}, "more time than its partition gives a job: see `wall_time`"),
    ],
    ids=["nodes", "time"],
)
def test_what_a_partition_does_not_give_is_reported(
    site: Site, tmp_path: Path, keys: dict[str, object], words: str
) -> None:
    with site.grid(tmp_path, partition="small", **keys) as grid:
        assert until(lambda: words in grid.hosts()[0].detail)
