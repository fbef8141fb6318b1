"""Nodes of a real Slurm that come and go with the work, and reach their wall time."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import batches
import remote
from batches import Site, slurm_of
from gridrpc import TooFewResources
from processes import LONG, environment, until, write_script

pytestmark = pytest.mark.usefixtures("no_jobs_are_left")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Three nodes of four processors."""
    with slurm_of(3, 4) as slurm:
        yield Site(slurm, tmp_path_factory.mktemp("shared"))


def test_exclusive_nodes_are_others_for_each_call(site: Site, tmp_path: Path) -> None:
    """All that there can be are requested, each a whole node."""
    keys = {"nodes": "0-3", "workers": 1, "exclusive": True, "idle": 1}
    with site.grid(tmp_path, **keys) as grid:
        gate = tmp_path / "gate"
        started = [tmp_path / f"started{n}" for n in range(7)]
        calls = [grid.submit(batches.tell_node_and_wait, str(file), str(gate)) for file in started]
        assert until(lambda: sum(file.exists() for file in started) == 3)
        gate.touch()
        assert {call.result(LONG) for call in calls} == {"n1", "n2", "n3"}
        assert until(lambda: not site.slurm.jobs())


def test_a_call_that_would_not_be_done_waits_for_another_job(site: Site, tmp_path: Path) -> None:
    """Its function's time is known: it is not given to a job that ends before."""
    keys = {"nodes": 1, "workers": 1, "wall_time": 60}
    with site.full_grid(tmp_path, **keys) as grid:
        (first,) = site.running()
        # Wall times are whole minutes.
        site.slurm.run("scontrol", "update", f"jobid={first}", "endtime=now+9")
        assert grid.submit(time.sleep, 3).exception(LONG) is None
        assert until(lambda: _seconds_left(site, first) <= 3)
        assert grid.submit(time.sleep, 3).exception(LONG) is None
        assert site.running() != [first]


def test_a_call_that_says_how_long_it_takes_waits_for_another_job(
    site: Site, tmp_path: Path
) -> None:
    """Nothing is known of its function, and the job would have time for most."""
    keys = {"nodes": 1, "workers": 1, "wall_time": 60}
    with site.full_grid(tmp_path, **keys) as grid:
        (first,) = site.running()
        assert until(lambda: _seconds_left(site, first) <= 45)
        assert grid.submit(remote.add, 1, 1, expected=10).result(LONG) == 2
        assert site.running() == [first]
        assert grid.submit(remote.add, 1, 2, expected=45).result(LONG) == 3
        assert site.running() != [first]
        with pytest.raises(TooFewResources, match=r"asks for 120 s of time.* has jobs of \d"):
            grid.submit(remote.add, 1, 3, expected=120)


def _seconds_left(site: Site, job: str) -> int:
    left = site.slurm.run("squeue", "--noheader", f"--jobs={job}", "--format=%L").strip()
    minutes, _, seconds = left.rpartition(":")
    return 60 * int(minutes or 0) + int(seconds or 0)


WAITS = """
import gridrpc, remote, sys
with gridrpc.Grid(config="grid.toml") as grid:
    print(grid.submit(remote.add, 1, 1).result(60))
"""


def test_a_start_that_takes_long_is_reported(site: Site, tmp_path: Path) -> None:
    """In a line on a terminal, which is gone at the end; in lines of a log; or not at all."""
    for node in site.slurm.nodes:
        site.slurm.hold(node)
    (tmp_path / "grid.toml").write_text(site.server(nodes=1))
    script = write_script(tmp_path, WAITS)
    try:
        clients = {word: _Watched(script, word) for word in ("", "log", "off")}
        assert until(lambda: len(site.queued()) == len(clients))
        time.sleep(3)
    finally:
        for node in site.slurm.nodes:
            site.slurm.resume(node)
    reported = {word: client.end() for word, client in clients.items()}
    assert reported["off"] == ""
    for word in ("", "log"):
        queued = r"gridrpc: (\d+ s: )?lab: 1 queued \(\w+ .+"
        assert re.search(queued, reported[word]), reported
    assert reported["log"].count("\n") == reported["log"].count("gridrpc: lab:")
    # Nothing stays.
    assert reported[""].endswith("\r\x1b[K")
    assert "\n" not in reported[""]


class _Watched:
    """A script whose standard error is a terminal."""

    def __init__(self, script: Path, progress: str) -> None:
        self.terminal, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, str(script)], cwd=script.parent, stdout=subprocess.PIPE, stderr=theirs,
            env={**environment(), "GRIDRPC_PROGRESS": progress}, text=True,
        )  # fmt: skip
        os.close(theirs)

    def end(self) -> str:
        """What it has told, when it has ended."""
        assert self.process.communicate(timeout=LONG)[0] == "2\n"
        return _read_all(self.terminal)


def _read_all(terminal: int) -> str:
    reported = b""
    try:
        while piece := os.read(terminal, 4096):
            reported += piece
    except OSError:
        pass  # the other side is closed
    finally:
        os.close(terminal)
    return reported.decode()
