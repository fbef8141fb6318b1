"""The rig of a pool of HTCondor does what its tests rely on: `make test-htcondor` runs this."""

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

from gridbench_testbed.batch.htcondor import HTCondor, why_not

pytestmark = pytest.mark.htcondor


@pytest.fixture(scope="module")
def htcondor() -> Iterator[HTCondor]:
    if why := why_not():
        pytest.fail(why)
    with HTCondor(slots=20) as htcondor:
        yield htcondor


def until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def of_rig(folder: Path) -> list[int]:
    """The processes that have a rig's folder in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(folder) in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            pass
    return found


def submit(htcondor: HTCondor, count: int, script: str, *settings: str) -> str:
    """Ask for so many jobs of a shell's script; the number of their cluster."""
    said = htcondor.run(
        "condor_submit", "-terse", "executable=/bin/sh", f"arguments=\"-c '{script}'\"",
        "should_transfer_files=no", *settings, "-queue", str(count),
    )  # fmt: skip
    return said.partition(".")[0]


def test_as_many_jobs_run_as_there_are_slots(htcondor: HTCondor) -> None:
    cluster = submit(htcondor, 22, "sleep 60")
    running = {f"{cluster}.{number} running" for number in range(20)}
    waiting = {f"{cluster}.{number} idle" for number in (20, 21)}
    assert until(lambda: set(htcondor.jobs()) == running | waiting)
    htcondor.cancel_all()
    assert htcondor.jobs() == []


def test_a_job_may_ask_for_several_processors(htcondor: HTCondor) -> None:
    cluster = submit(htcondor, 3, "sleep 60", "request_cpus=10")
    states = [f"{cluster}.0 running", f"{cluster}.1 running", f"{cluster}.2 idle"]
    assert until(lambda: htcondor.jobs() == states)
    htcondor.cancel_all()


def test_jobs_see_this_system_and_write_files_of_whoever_submits(
    htcondor: HTCondor, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    said.touch(0o600)
    submit(htcondor, 1, f"{sys.executable} --version >{said}")
    assert until(lambda: not htcondor.jobs())
    assert said.read_text().startswith("Python 3")
    made = tmp_path / "made"
    submit(htcondor, 1, f"touch {made}")
    assert until(made.exists)
    assert made.stat().st_uid == os.geteuid()


def test_the_machine_can_be_held(htcondor: HTCondor) -> None:
    htcondor.hold()
    cluster = submit(htcondor, 1, "sleep 60")
    time.sleep(3)
    assert htcondor.jobs() == [f"{cluster}.0 idle"]
    htcondor.resume()
    assert until(lambda: htcondor.jobs() == [f"{cluster}.0 running"])
    htcondor.cancel_all()


def test_jobs_survive_a_scheduler_that_is_started_again(htcondor: HTCondor, tmp_path: Path) -> None:
    started, ended = tmp_path / "started", tmp_path / "ended"
    go = tmp_path / "go"
    script = f"echo >>{started}; while [ ! -e {go} ]; do sleep 0.1; done; touch {ended}"
    submit(htcondor, 1, script)
    assert until(started.exists)
    htcondor.stop_scheduler()
    htcondor.start_scheduler()
    go.touch()
    assert until(lambda: ended.exists() and not htcondor.jobs())
    assert started.read_text() == "\n"


def test_nothing_is_left_when_it_is_closed(htcondor: HTCondor, tmp_path: Path) -> None:
    said = tmp_path / "said"
    with HTCondor(slots=2) as other:
        cluster = submit(other, 1, f"echo $$ >{said}; sleep 60")
        assert until(lambda: other.jobs() == [f"{cluster}.0 running"])
        assert until(lambda: said.exists() and said.read_text() != "")
        assert htcondor.jobs() == []
        assert of_rig(other.folder)
    assert not of_rig(other.folder)
    assert not Path("/proc", said.read_text().strip()).exists()
    assert not other.folder.exists()


@pytest.mark.usefixtures("htcondor")
def test_daemons_end_with_whoever_has_started_them() -> None:
    script = "import sys; from gridbench_testbed.batch.htcondor import HTCondor\n"
    script += "print(HTCondor(slots=1).folder, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert of_rig(folder)
        process.send_signal(signal.SIGKILL)
    assert until(lambda: not of_rig(folder))
    shutil.rmtree(folder)
