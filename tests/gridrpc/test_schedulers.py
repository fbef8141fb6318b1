"""Grids of workers that jobs of PBS, Torque, LSF and Flux start, by documented commands.

The commands are those of recorded_batch.py: no test has a real one of these systems.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import recorded_batch
import remote
from batches import BatchSite, Everywhere, start_client
from gridrpc import StartError, WorkerLost
from grids import PROGRAM
from processes import LONG, until

SLOTS = 3


class RecordedSite(BatchSite):
    """This machine, and the commands of one system."""

    def __init__(self, launcher: str, folder: Path) -> None:
        self.launcher = launcher
        self.folder, self.shared = folder, folder / "a shared folder"
        self.system = recorded_batch.SYSTEMS[launcher](folder)

    def _with(self, status: str) -> list[str]:
        return [one.identifier for one in self.system.members() if one.status() == status]

    def running(self) -> list[str]:
        """The jobs that run."""
        return self._with("runs")

    def queued(self) -> list[str]:
        """The jobs that wait."""
        return self._with("waits")

    def is_empty(self) -> bool:
        """Whether no job, no agent and no ticket is left, soon."""
        return until(
            lambda: (
                not (
                    self.running()
                    or self.queued()
                    or self.agents()
                    or [*self.shared.glob("jobs/*")]
                )
            )
        )


@pytest.fixture(params=list(recorded_batch.SYSTEMS))
def site(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RecordedSite]:
    folder = tmp_path / "system"
    recorded_batch.install(request.param, folder)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("SLOTS", str(SLOTS))
    site = RecordedSite(request.param, folder)
    yield site
    assert site.is_empty()


def test_one_request_has_an_agent_for_each_job(site: RecordedSite, tmp_path: Path) -> None:
    keys = {"nodes": 2, "workers": 2, "memory": "2G", "wall_time": 300, "exclusive": True}
    with site.full_grid(tmp_path, **keys) as grid:
        assert grid.workers == 4
        assert len(site.running()) == 2
        assert list(grid.map(remote.add, range(8), range(8))) == list(range(0, 16, 2))


def test_what_has_started_is_used_while_the_rest_is_queued(
    site: RecordedSite, tmp_path: Path
) -> None:
    with site.grid(tmp_path, nodes=SLOTS + 1, workers=1) as grid:
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2

        def describe() -> str:
            with pytest.raises(TimeoutError) as caught:
                grid.wait_until_ready(0.1)
            return str(caught.value)

        words = {"pbs": "Insufficient amount of resource: ncpus (R: 1 A: 0 T: 8)"}
        words |= {"torque": words["pbs"], "lsf": "Job slot limit reached", "flux": "insufficient"}
        assert until(lambda: words[site.launcher] in describe()), describe()
        assert len(site.queued()) == 1


def test_a_refusal_is_reported_with_a_remedy(site: RecordedSite, tmp_path: Path) -> None:
    with site.grid(tmp_path, workers=1, queue="nope") as grid, pytest.raises(StartError) as caught:
        grid.wait_until_ready(LONG)
    assert "has refused the job: " in str(caught.value)
    assert "name one by `queue`" in str(caught.value)


def test_a_job_that_somebody_cancels_is_replaced(site: RecordedSite, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=2, workers=1) as grid:
        work = Everywhere(grid, tmp_path)
        victim = site.running()[0]
        next(one for one in site.system.members() if one.identifier == victim).cancel()
        assert until(lambda: any(call.done() for call in work.calls))
        (lost,) = [call for call in work.calls if call.done()]
        loss = lost.exception(LONG)
        assert isinstance(loss, WorkerLost)
        assert "its agent is gone" in str(loss)
        work.gate.touch()
        grid.wait_until_ready(LONG)
        assert len(site.running()) == 2


def test_a_killed_client_leaves_no_jobs(site: RecordedSite, tmp_path: Path) -> None:
    """Neither those that run nor those that wait, nor tickets: the fixture looks."""
    with start_client(tmp_path, site.server(nodes=SLOTS + 1, workers=1)):
        assert until(lambda: len(site.running()) == SLOTS)
        assert len(site.queued()) == 1
        assert site.tickets()


def test_the_script_can_be_printed_and_submitted_by_hand(
    site: RecordedSite, tmp_path: Path
) -> None:
    (tmp_path / "grid.toml").write_text(site.server(nodes=2, memory="1G", queue="nope"))
    ran = subprocess.run(
        [PROGRAM, "script"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    dialect = {"lsf": "#BSUB -q nope", "flux": "#flux: --queue=nope"}
    assert dialect.get(site.launcher, "#PBS -q nope") in ran.stdout.splitlines()
    assert not site.running()
