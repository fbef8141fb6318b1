"""Grids of workers that `mpirun` starts, with no batch system and in an allocation of Slurm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import batches
import remote
from batches import BatchSite, slurm_of, start_client
from gridrpc import StartError, WorkerLost
from processes import LONG, environment, until

if shutil.which("mpirun") is None:
    pytest.skip("there is no mpirun: `make mpi` installs it", allow_module_level=True)

#: Places of this machine, as many as tests need.
HERE = {"options": ["--host localhost:3"], "workers": 1}

AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")


class Mpirun(BatchSite):
    """This machine, as `mpirun` uses it."""

    launcher = "mpi"

    def __init__(self, shared: Path) -> None:
        self.shared = shared

    def running(self) -> list[str]:
        """The agents' processes."""
        return [str(agent.pid) for agent in self.agents()]

    def queued(self) -> list[str]:
        """Nobody waits."""
        return []

    def is_empty(self) -> bool:
        """Whether no agent and no ticket is left, soon."""
        return until(lambda: not self.agents() and not [*self.shared.glob("jobs/*")])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mpirun]:
    # What other tests of this process have told Open MPI, such as that slots do not count.
    for name in [name for name in os.environ if name.startswith("OMPI_MCA_")]:
        monkeypatch.delenv(name)
    site = Mpirun(tmp_path / "a shared folder")
    yield site
    assert site.is_empty()


def test_one_mpirun_starts_all_agents(site: Mpirun, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=3, **HERE) as grid:
        assert grid.workers == 3
        assert len(site.agents()) == 3
        calls = [grid.submit(remote.nap, 0.2) for _ in range(3)]
        assert [call.result(LONG) for call in calls] == [None] * 3
        hosts = {call.profile.host for call in calls}
        assert hosts == {"lab-1", "lab-2", "lab-3"}


def test_an_agent_that_is_lost_takes_no_other_with_it(site: Mpirun, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=3, **HERE) as grid:
        started = [tmp_path / f"started{n}" for n in range(3)]
        gate = str(tmp_path / "gate")
        calls = [grid.submit(remote.tell_and_wait, str(file), gate) for file in started]
        assert until(lambda: all(file.exists() for file in started))
        site.agents()[0].kill()
        assert until(lambda: any(call.done() for call in calls))
        (lost,) = [call for call in calls if call.done()]
        assert isinstance(lost.exception(LONG), WorkerLost)
        (tmp_path / "gate").touch()
        assert [call.result(LONG) for call in calls if call is not lost] == [None] * 2
        # Another one takes its place.
        grid.wait_until_ready(LONG)
        assert len(site.agents()) == 3


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"nodes": 4, **HERE}, ["not enough slots", "fewer `nodes`", "--oversubscribe"]),
        ({"nodes": 1, "options": ["--bogus"]}, ["`mpirun` has started nothing", "bogus"]),
        ({"nodes": 1, "program": "/no/gridrpc", **HERE}, ["its `mpirun` ended with"]),
    ],
    ids=str,
)
def test_what_cannot_be_started_is_reported(
    site: Mpirun, tmp_path: Path, keys: dict[str, object], words: list[str]
) -> None:
    with site.grid(tmp_path, **keys) as grid, pytest.raises(StartError) as caught:
        grid.wait_until_ready(LONG)
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_client_that_is_a_rank_has_agents_started(site: Mpirun, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(site.server(nodes=2, **HERE))
    (tmp_path / "client.py").write_text(
        "import gridrpc\n"
        "with gridrpc.Grid(config='grid.toml') as grid:\n"
        f"    grid.wait_until_ready({LONG})\n"
        "    print(grid.submit(abs, -3).result())\n"
    )
    ran = subprocess.run(
        ["mpirun", "-n", "1", sys.executable, "client.py"],
        cwd=tmp_path,
        text=True,
        check=False,
        capture_output=True,
        timeout=2 * LONG,
        env=environment() | dict.fromkeys(AS_ROOT, "1"),
    )
    assert (ran.stdout, ran.returncode) == ("3\n", 0), ran.stderr


def test_that_mpirun_is_missing_is_reported(
    site: Mpirun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to("/bin/sh")
    (tmp_path / "bin/rm").symlink_to("/bin/rm")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with site.grid(tmp_path, nodes=1) as grid, pytest.raises(StartError) as caught:
        grid.wait_until_ready(LONG)
    assert "`mpirun` could not be started" in str(caught.value)
    assert "install Open MPI" in str(caught.value)


def test_a_killed_client_leaves_nothing(site: Mpirun, tmp_path: Path) -> None:
    with start_client(tmp_path, site.server(nodes=2, **HERE)):
        assert site.agents()
    assert site.is_empty()


def test_an_allocation_of_slurm_is_used_as_a_whole(tmp_path: Path) -> None:
    with slurm_of(3, 4) as slurm:
        site = Mpirun(tmp_path / "shared")
        (tmp_path / "grid.toml").write_text(site.server(workers=2))
        (tmp_path / "script.py").write_text(batches.STEPS)
        command = ["salloc", "--quiet", "--nodes=3", "--exclusive", sys.executable]
        command += ["script.py", "grid.toml", str(tmp_path)]
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=LONG,
            check=False,
        )  # fmt: skip
        assert ran.stdout.split() == sorted(["n1", "n2", "n3"] * 2), ran.stderr
        assert site.is_empty()
        assert slurm.jobs() == []
