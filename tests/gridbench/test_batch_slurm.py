"""The rig of a Slurm of its own does what its tests rely on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gridbench_testbed.batch.slurm import Slurm, why_not


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    if why := why_not():
        pytest.skip(why)
    with Slurm(nodes=2, processors=8) as slurm:
        yield slurm


def until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def of_rig(folder: str) -> list[int]:
    """The processes that have a rig's folder in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if folder.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            pass
    return found


def submit(slurm: Slurm, *options: str) -> str:
    return slurm.run("sbatch", "--parsable", "--output=/dev/null", *options).strip()


def test_each_node_has_as_many_slots_as_it_declares(slurm: Slurm) -> None:
    said = slurm.run("srun", "--ntasks=16", "sh", "-c", "echo $SLURMD_NODENAME")
    assert sorted(said.split()) == ["n1"] * 8 + ["n2"] * 8


def test_nodes_can_be_held_failed_and_resumed(slurm: Slurm) -> None:
    slurm.hold("n2")
    job = submit(slurm, "--array=1-2", "--exclusive", "--wrap=sleep 60")
    assert until(lambda: f"{job}_1 RUNNING n1" in slurm.jobs())
    assert f"{job}_2 PENDING " in slurm.jobs()
    slurm.resume("n2")
    assert until(lambda: f"{job}_2 RUNNING n2" in slurm.jobs())
    slurm.fail("n1")
    assert until(lambda: not any(f"{job}_1 RUNNING" in line for line in slurm.jobs()))
    slurm.resume("n1")
    slurm.cancel_all()


def test_jobs_survive_a_controller_that_is_started_again(slurm: Slurm) -> None:
    job = submit(slurm, "--wrap=sleep 60")
    assert until(lambda: f"{job} RUNNING n1" in slurm.jobs())
    slurm.stop_controller()
    slurm.start_controller()
    assert f"{job} RUNNING n1" in slurm.jobs()
    slurm.cancel_all()


def test_nothing_is_left_when_it_is_closed(slurm: Slurm) -> None:
    with Slurm(nodes=1, processors=2) as other:
        assert other.folder != slurm.folder
        job = submit(other, "--wrap=sleep 60")
        assert until(lambda: f"{job} RUNNING n1" in other.jobs())
        assert of_rig(str(other.folder))
    assert not of_rig(str(other.folder))
    assert not other.folder.exists()
    assert slurm.jobs() == []


@pytest.mark.usefixtures("slurm")
def test_daemons_end_with_whoever_has_started_them() -> None:
    script = "import sys; from gridbench_testbed.batch.slurm import Slurm\n"
    script += "print(Slurm(nodes=1).folder, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        folder = process.stdout.readline().strip()
        assert of_rig(folder)
        process.send_signal(signal.SIGKILL)
    assert until(lambda: not of_rig(folder))
    shutil.rmtree(folder)
