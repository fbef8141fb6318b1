"""What befalls any batch system and a grid's jobs there: calls end once, and nothing is left."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

import batches
import remote
from batches import GridEngineSite, HTCondorSite, QueueSite, Site, start_client
from gridrpc import StartError, WorkerLost
from grids import PROGRAM, opened
from processes import LONG, until

pytestmark = pytest.mark.usefixtures("no_jobs_are_left")
SLOTS = 20
SILENCE = {"slurm": 30.0, "gridengine": 12.0, "htcondor": 30.0}  # seconds
"""Longer than commands wait for an answer; those of Grid Engine wait for as long as they may."""


@pytest.fixture(
    scope="module",
    params=["slurm", "gridengine", pytest.param("htcondor", marks=pytest.mark.htcondor)],
)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[QueueSite]:
    """Each of the batch systems, with twenty processors."""
    shared = tmp_path_factory.mktemp("shared")
    match request.param:
        case "slurm":
            with batches.slurm_of(1, SLOTS) as slurm:
                yield Site(slurm, shared)
        case "gridengine":
            with batches.gridengine_of(SLOTS) as engine:
                yield GridEngineSite(engine, shared)
        case _:
            with batches.htcondor_of(SLOTS) as htcondor:
                yield HTCondorSite(htcondor, shared)


def worker_processes(site: QueueSite) -> list[psutil.Process]:
    """Those that run calls: agents have a process that forks them."""
    forks = [child for agent in site.agents() for child in agent.children()]
    return [worker for fork in forks for worker in fork.children()]


def test_a_scheduler_is_silent_for_some_time(site: QueueSite, tmp_path: Path) -> None:
    """Calls continue. Requested jobs come when it answers, and the rest is cancelled then."""
    folders = [tmp_path / name for name in ("working", "killed", "closed", "new")]
    for folder in folders:
        folder.mkdir()
    working, killed, closed, new = folders
    with site.full_grid(working, nodes=3, workers=1) as grid, ExitStack() as others:
        victim, *_ = site.agents()
        client = others.enter_context(start_client(killed, site.server(nodes=1, workers=1)))
        with site.full_grid(closed, nodes=1, workers=1, stop_timeout=1) as leaving:
            end = time.monotonic() + SILENCE[site.launcher]
            with site.frozen_scheduler():
                client.kill()
                client.communicate(timeout=LONG)
                leaving.close()
                (new / "grid.toml").write_text(site.server(nodes=1, workers=1))
                late = others.enter_context(opened(config=new / "grid.toml"))
                gate = working / "gate"
                held = grid.submit(remote.wait_for, str(gate), 8, idempotent=True)
                victim.kill()
                while time.monotonic() < end:
                    call = grid.submit(remote.nap, 0.1, 7, idempotent=True)
                    assert call.result(LONG) == 7
        grid.wait_until_ready(LONG)
        gate.touch()
        assert held.result(LONG) == 8
        late.wait_until_ready(LONG)
        assert late.submit(remote.add, 1, 1).result(LONG) == 2


def test_a_scheduler_that_does_not_answer_before_the_time_is_over_is_reported(
    site: QueueSite, tmp_path: Path
) -> None:
    keys = {"workers": 1, "start_timeout": 3, "stop_timeout": 1}
    with site.frozen_scheduler(), site.grid(tmp_path, **keys) as grid:
        with pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        assert "the batch system has not answered within 3 s" in str(caught.value)
        assert "it is being submitted" in str(caught.value)
        assert "firewall" not in str(caught.value)


def test_a_scheduler_is_started_again_while_jobs_run_and_wait(
    site: QueueSite, tmp_path: Path
) -> None:
    waiting = tmp_path / "waiting"
    waiting.mkdir()
    with site.full_grid(tmp_path, nodes=2, workers=1) as grid:
        site.hold()
        try:
            with site.grid(waiting, nodes=2, workers=1) as waits:
                assert until(lambda: len(site.queued()) == 2)
                site.stop_scheduler()
                try:
                    calls = [grid.submit(remote.add, n, n) for n in range(100)]
                    assert [call.result(LONG) for call in calls] == [2 * n for n in range(100)]
                finally:
                    site.start_scheduler()
                site.resume()
                # Grid Engine starts nothing for half a minute.
                waits.wait_until_ready(2 * LONG)
                assert len(site.running()) == 4
                assert waits.submit(remote.add, 1, 1).result(LONG) == 2
        finally:
            site.resume()


def test_a_requeued_job_rejoins_as_the_same_host(site: QueueSite, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=2, workers=1, requeue=True) as grid:
        gate = tmp_path / "gate"
        started = [tmp_path / f"started{n}" for n in range(2)]
        calls = [
            grid.submit(batches.tell_node_and_wait, str(file), str(gate), idempotent=n == 1)
            for n, file in enumerate(started)
        ]
        assert until(lambda: all(file.exists() for file in started))
        jobs = site.running()
        for job in jobs:
            site.requeue(job)
        loss = calls[0].exception(LONG)
        assert isinstance(loss, WorkerLost)
        assert "was requeued" in str(loss)
        for job in jobs:
            site.run_soon(job)
        gate.touch()
        assert calls[1].result(LONG)
        grid.wait_until_ready(LONG)
        assert sorted(site.running()) == sorted(jobs)
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2


PARTLY = """#!/bin/sh
if mkdir {folder}/broken 2>/dev/null; then
    echo "this node has no licence" >&2
    exit 3
fi
exec {program} "$@"
"""


def test_an_agent_that_fails_takes_no_other_with_it_and_comes_back(
    site: QueueSite, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text(PARTLY.format(folder=tmp_path, program=PROGRAM))
    program.chmod(0o755)
    with site.grid(tmp_path, nodes=3, workers=1, program=str(program)) as grid:
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2
        grid.wait_until_ready(LONG)
        assert (tmp_path / "broken").exists()
        assert grid.workers == 3


def test_a_shared_folder_that_is_full_is_reported(site: QueueSite, tmp_path: Path) -> None:
    folder = tmp_path / "full"
    with batches.full_disk(folder), site.grid(tmp_path, staging=str(folder)) as grid:
        with pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        assert f"cannot be kept in `{folder}" in str(caught.value)
        assert "No space left on device" in str(caught.value)


def test_results_are_whole_though_workers_are_killed_at_random(
    site: QueueSite, tmp_path: Path
) -> None:
    """A tenth of them, while 30,000 calls run."""
    items = range(30_000)
    chance = random.Random(22)
    with site.full_grid(tmp_path, nodes=4, workers=5, **site.for_several) as grid:
        # As results that nobody has taken are bounded, many calls are still to come.
        results = grid.map(remote.add, items, items, idempotent=True, chunk=1)
        whole = [next(results)]
        for _ in range(2):
            chance.choice(worker_processes(site)).kill()
            whole += itertools.islice(results, 2_000)
        whole += results
        assert whole == [2 * n for n in items]
        calls = grid.stats().calls
        # Each has ended, once, and well.
        assert (calls.submitted, calls.returned) == (len(items), len(items))
        grid.wait_until_ready(LONG)
        assert grid.workers == 20
