"""What befalls a real Slurm and the jobs of a grid there: calls end once, and nothing is left."""

from __future__ import annotations

import itertools
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

import remote
from batches import Site, slurm_of
from gridrpc import StartError
from processes import LONG, until

pytestmark = pytest.mark.usefixtures("no_jobs_are_left")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Four nodes of eight processors."""
    with slurm_of(4, 8) as slurm:
        yield Site(slurm, tmp_path_factory.mktemp("shared"))


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """A file system without room in the place of a folder."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        (folder / "filler").write_bytes(bytes(4096))
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def worker_processes(site: Site) -> list[psutil.Process]:
    """Those that run calls: agents have a process that forks them."""
    forks = [child for agent in site.agents() for child in agent.children()]
    return [worker for fork in forks for worker in fork.children()]


def test_a_controller_is_started_anew_while_jobs_run_and_wait(site: Site, tmp_path: Path) -> None:
    site.slurm.hold("n4")
    try:
        with site.grid(tmp_path, nodes=4, exclusive=True) as grid:
            assert until(lambda: len(site.running()) == 3 and len(site.queued()) == 1)
            site.slurm.stop_controller()
            try:
                calls = [grid.submit(remote.add, n, n) for n in range(100)]
                assert [call.result(LONG) for call in calls] == [2 * n for n in range(100)]
            finally:
                site.slurm.start_controller()
            site.slurm.resume("n4")
            grid.wait_until_ready(LONG)
            assert len(site.running()) == 4
    finally:
        site.slurm.resume("n4")


def test_a_controller_that_hangs_keeps_no_call_waiting(site: Site, tmp_path: Path) -> None:
    """Nor the end of the grid: its jobs are cancelled when the controller answers."""
    with site.full_grid(tmp_path, nodes=2, stop_timeout=1) as grid, site.slurm.frozen_controller():
        assert list(grid.map(abs, range(1000))) == [*range(1000)]
        grid.close()
    assert site.nothing_is_left()


def test_a_nodes_daemon_is_started_anew_while_its_job_runs(site: Site, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=1, options=["--nodelist=n2"]) as grid:
        pids = {grid.submit(remote.pid).result(LONG) for _ in range(20)}
        site.slurm.stop_node("n2")
        assert grid.submit(remote.pid).result(LONG) in pids
        site.slurm.start_node("n2")
        assert grid.submit(remote.pid).result(LONG) in pids


PARTLY = """#!/bin/sh
{{options}}
if [ "$SLURM_ARRAY_TASK_ID" = 1 ] && [ ! -e "$BROKEN" ]; then
    touch "$BROKEN"
    echo "this node has no licence" >&2
    exit 3
fi
{{agent}}
"""


def test_a_task_that_fails_takes_no_other_with_it_and_comes_back(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "job.sh").write_text(PARTLY.replace("$BROKEN", str(tmp_path / "broken")))
    keys = {"nodes": 3, "exclusive": True, "template": str(tmp_path / "job.sh")}
    with site.grid(tmp_path, **keys) as grid:
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2
        grid.wait_until_ready(LONG)
        assert (tmp_path / "broken").exists()
        assert grid.workers == 6


def test_a_shared_folder_that_is_full_is_told(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "full"
    with full_disk(folder), site.grid(tmp_path, staging=str(folder)) as grid:
        with pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        assert f"cannot be kept in `{folder}" in str(caught.value)
        assert "No space left on device" in str(caught.value)


def test_a_node_whose_spool_is_full_is_told(site: Site, tmp_path: Path) -> None:
    keys = {"nodes": 1, "options": ["--nodelist=n3"], "start_timeout": 5}
    with full_disk(site.slurm.spool("n3")):
        with site.grid(tmp_path, **keys) as grid, pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        # Slurm has taken the node out of use.
        assert "nodes that it needs are down, drained" in str(caught.value)
        assert "UnavailableNodes:n3" in str(caught.value)
    site.slurm.resume("n3")


def test_results_are_whole_though_workers_are_killed_at_random(site: Site, tmp_path: Path) -> None:
    """A tenth of them, while 100,000 calls run."""
    items = range(100_000)
    chance = random.Random(22)
    with site.full_grid(tmp_path, nodes=4, exclusive=True, workers=5) as grid:
        # As results that nobody has taken are bounded, many calls are still to come.
        results = grid.map(remote.add, items, items, idempotent=True, chunk=50)
        whole = [next(results)]
        for _ in range(2):
            chance.choice(worker_processes(site)).kill()
            whole += itertools.islice(results, 10_000)
        whole += results
        assert whole == [2 * n for n in items]
        grid.wait_until_ready(LONG)
        assert grid.workers == 20
