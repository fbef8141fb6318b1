"""The daemon that has the queue of a batch system finds no room on its disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import batches
import remote
from batches import Disk, Everywhere, GridEngineSite, HTCondorSite, QueueSite, Site
from gridrpc import StartError
from processes import LONG, until

pytestmark = pytest.mark.usefixtures("no_jobs_are_left")
REPORTED = {
    "slurm": ["the disk on which its controller keeps jobs (`StateSaveLocation`"],
    "gridengine": ["No space left on device; the disk on which its master keeps jobs is full"],
    "htcondor": ["HTCondor does not answer", "its scheduler could not keep it"],
}
"""HTCondor's daemon ends when it cannot write, and then takes some time to start again."""
LARGE: dict[str, dict[str, object]] = {
    "slurm": {},
    "gridengine": {},
    "htcondor": {
        "options": [
            f"A = {'x' * 1000}",
            f"B = {'$(A)' * 16}",
            f'+Padding = "{"$(B)" * 4}"',
        ]
    },
}
"""What makes jobs larger than the room that HTCondor's daemon finds in its own files."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Where the daemon keeps jobs; all that it runs as may write there."""
    with batches.small_disk(tmp_path / "spool", "8m") as disk:
        disk.folder.chmod(0o755)
        yield disk


@pytest.fixture(
    params=["slurm", "gridengine", pytest.param("htcondor", marks=pytest.mark.htcondor)]
)
def site(request: pytest.FixtureRequest, tmp_path: Path, disk: Disk) -> Iterator[QueueSite]:
    shared = tmp_path / "shared"
    shared.mkdir()
    if request.param == "slurm":
        with batches.slurm_of(1, 8, disk.folder) as slurm:
            yield Site(slurm, shared)
    elif request.param == "gridengine":
        with batches.gridengine_of(8, disk.folder) as engine:
            yield GridEngineSite(engine, shared)
    else:
        with batches.htcondor_of(8, disk.folder) as htcondor:
            yield HTCondorSite(htcondor, shared)


def answers(site: QueueSite) -> bool:
    """Whether the daemon tells what is in its queue."""
    try:
        site.rig.jobs()
    except RuntimeError:
        return False
    return True


def test_a_queue_that_cannot_be_kept_is_reported_and_jobs_continue(
    site: QueueSite, disk: Disk, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with site.full_grid(tmp_path, nodes=1, workers=1) as grid:
        work = Everywhere(grid, tmp_path)
        disk.fill()
        with site.grid(other, nodes=1, workers=1, **LARGE[site.launcher]) as refused:
            reported = refused.submit(remote.add, 1, 1).exception(LONG)
        assert isinstance(reported, StartError)
        assert any(words in str(reported) for words in REPORTED[site.launcher])
        calls = [grid.submit(remote.add, n, n) for n in range(100)]
        assert len(work.let_go()) == 1
        assert [call.result(LONG) for call in calls] == [2 * n for n in range(100)]
    disk.empty()
    assert until(lambda: answers(site))
    with site.full_grid(other, nodes=2, workers=1) as grid:
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2
