"""Nodes of any batch system that come and go with the work."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import batches
import remote
from batches import GridEngineSite, QueueSite, Site
from gridrpc import Grid
from processes import LONG, until

pytestmark = pytest.mark.usefixtures("no_jobs_are_left")


@pytest.fixture(scope="module", params=["slurm", "gridengine"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[QueueSite]:
    """Twelve processors."""
    shared = tmp_path_factory.mktemp("shared")
    if request.param == "slurm":
        with batches.slurm_of(3, 4) as slurm:
            yield Site(slurm, shared)
    else:
        with batches.gridengine_of(12) as engine:
            yield GridEngineSite(engine, shared)


def states(grid: Grid) -> list[str]:
    return [host.state for host in grid.hosts()]


def test_nodes_are_requested_while_calls_wait_and_given_back(
    site: QueueSite, tmp_path: Path
) -> None:
    with site.grid(tmp_path, nodes="0-3", workers=1, idle=1) as grid:
        grid.wait_until_ready(LONG)
        assert (grid.workers, states(grid), site.rig.jobs()) == (3, ["unwanted"] * 3, [])
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2
        assert grid.hosts()[0].state == "ready"
        assert until(lambda: states(grid) == ["unwanted"] * 3 and not site.rig.jobs())
        # More than there can be.
        gate = tmp_path / "gate"
        started = [tmp_path / f"started{n}" for n in range(7)]
        calls = [grid.submit(batches.tell_node_and_wait, str(file), str(gate)) for file in started]
        assert until(lambda: sum(file.exists() for file in started) == 3)
        assert states(grid) == ["ready"] * 3
        assert len(site.running()) == 3
        gate.touch()
        assert all(call.result(LONG) for call in calls)
        assert until(lambda: not site.rig.jobs())


def test_what_waits_and_is_of_no_use_any_longer_is_cancelled(
    site: QueueSite, tmp_path: Path
) -> None:
    site.hold()
    try:
        with site.grid(tmp_path, nodes="0-2", workers=1, idle=1) as grid:
            call = grid.submit(remote.add, 1, 1)
            assert until(lambda: states(grid) == ["queued", "unwanted"])
            assert until(lambda: len(site.queued()) == 1)
            assert call.cancel()
            assert until(lambda: states(grid) == ["unwanted"] * 2 and not site.rig.jobs())
    finally:
        site.resume()


def test_an_object_keeps_its_node(site: QueueSite, tmp_path: Path) -> None:
    with site.grid(tmp_path, nodes="0-2", workers=1, idle=0) as grid:
        with grid.object(Counter, "aab") as letters:
            assert letters.total() == 3
            # It is looked each second whether a node is of use.
            time.sleep(2.5)
            letters.update("b")
            assert letters.total() == 4
            assert states(grid) == ["ready", "unwanted"]
        assert until(lambda: states(grid) == ["unwanted"] * 2)
