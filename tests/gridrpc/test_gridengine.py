"""Grids of workers that a real Grid Engine starts: one request, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import remote
from batches import (
    STEPS,
    Everywhere,
    GridEngineSite,
    gridengine_of,
    home_with_venv,
    printed_script,
    start_client,
)
from gridrpc import Grid, StartError, WorkerLost
from grids import PROGRAM
from processes import LONG, environment, until

SLOTS = 8

pytestmark = pytest.mark.usefixtures("no_jobs_are_left")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GridEngineSite]:
    """One host of eight slots."""
    with gridengine_of(SLOTS) as engine:
        yield GridEngineSite(engine, tmp_path_factory.mktemp("a shared folder"))


def test_an_array_has_an_agent_for_each_task(site: GridEngineSite, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=4, workers=1) as grid:
        assert grid.workers == 4
        assert len(Everywhere(grid, tmp_path).let_go()) == 4
        running = site.running()
        assert len(running) == 4
        # One request: all are tasks of one job.
        assert len({task.split(".")[0] for task in running}) == 1


def test_a_parallel_environment_gives_a_task_several_slots(
    site: GridEngineSite, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=2, workers=3, parallel_environment="mp") as grid:
        assert len(Everywhere(grid, tmp_path).let_go()) == 6
        assert len(site.running()) == 2


QRSH = """#!/bin/bash
{{options}}
[[ -n $BASH_VERSION ]] || exit 9
# So the hosts of the parallel environment are others than this one.
HOSTNAME=elsewhere
{{agent}}
"""


@pytest.mark.parametrize("template", [None, QRSH], ids=["here", "by qrsh"])
def test_one_job_has_all_agents(site: GridEngineSite, tmp_path: Path, template: str | None) -> None:
    keys: dict[str, object] = {"request": "job", "parallel_environment": "mp"}
    if template:
        (tmp_path / "job.sh").write_text(template)
        keys["template"] = str(tmp_path / "job.sh")
    with site.full_grid(tmp_path, nodes=3, workers=2, **keys) as grid:
        assert grid.workers == 6
        assert len(Everywhere(grid, tmp_path).let_go()) == 6
        assert len(site.running()) == 1


def test_workers_follow_the_slots_of_a_job(site: GridEngineSite, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, workers=0, cores=2, options=["-pe mp 4"]) as grid:
        assert grid.workers == 2
        assert grid.submit(os.getenv, "OMP_NUM_THREADS").result(LONG) == "2"


@pytest.mark.parametrize("host", ["$HOSTNAME", "elsewhere"], ids=["here", "by qrsh"])
def test_in_a_job_its_own_slots_are_used(site: GridEngineSite, tmp_path: Path, host: str) -> None:
    (tmp_path / "grid.toml").write_text(site.server(workers=0))
    (tmp_path / "script.py").write_text(STEPS)
    script = f"HOSTNAME={host} exec {sys.executable} script.py grid.toml {tmp_path}\n"
    (tmp_path / "job.sh").write_text(script)
    command = ["qsub", "-sync", "y", "-cwd", "-V", "-S", "/bin/sh", "-pe", "mp", "3"]
    command += ["-o", "out", "-e", "errors", "job.sh"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=LONG,
        check=False,
    )  # fmt: skip
    errors = (tmp_path / "errors").read_text()
    assert ran.returncode == 0, errors + ran.stdout + ran.stderr
    assert len((tmp_path / "out").read_text().split()) == 3, errors


@pytest.mark.usefixtures("site")
def test_the_job_script_runs_as_it_is_printed(tmp_path: Path) -> None:
    printed = printed_script("gridengine.md", "#$ -pe mp 64")
    # There are not as many slots here, and homes are those of the system.
    printed = printed.replace("-pe mp 64", f"-pe mp {SLOTS}").replace("$HOME", str(tmp_path))
    (tmp_path / "program.sge").write_text(printed)
    (tmp_path / "program.py").write_text(
        "import gridrpc\n"
        'with gridrpc.Grid(servers=["gridengine:"]) as grid:\n'
        "    grid.wait_until_ready(60)\n"
        "    print(grid.workers)\n"
    )
    ran = subprocess.run(
        ["qsub", "-sync", "y", "-V", "-o", "out", "-e", "errors", "program.sge"], cwd=tmp_path,
        env=home_with_venv(tmp_path), capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip
    errors = (tmp_path / "errors").read_text()
    assert ran.returncode == 0, errors + ran.stdout + ran.stderr
    assert (tmp_path / "out").read_text() == f"{SLOTS}\n", errors


def waits_for(grid: Grid) -> str:
    """Message to a user who waits for all workers."""
    with pytest.raises(TimeoutError) as caught:
        grid.wait_until_ready(0.1)
    return str(caught.value)


def test_what_has_started_is_used_while_the_rest_is_queued(
    site: GridEngineSite, tmp_path: Path
) -> None:
    with site.grid(tmp_path, nodes=SLOTS + 1, workers=1) as grid:
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2
        assert until(lambda: len(site.running()) == SLOTS)
        (waits,) = site.queued()
        # Where the job waits, and why, in words and in Grid Engine's own.
        reason = f"is queued as job {waits.split('.')[0]} (waiting for a free slot: "
        assert until(lambda: reason in waits_for(grid))
        assert "because it is full" in waits_for(grid)
        site.engine.run("qconf", "-mattr", "queue", "slots", str(SLOTS + 1), "all.q")
        try:
            grid.wait_until_ready(LONG)
            assert grid.workers == SLOTS + 1
        finally:
            site.engine.run("qconf", "-mattr", "queue", "slots", str(SLOTS), "all.q")


def test_what_does_not_start_in_time_is_cancelled(site: GridEngineSite, tmp_path: Path) -> None:
    with site.grid(tmp_path, queue="closed.q", nodes=2, workers=1, start_timeout=5) as grid:
        with pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        assert "did not start its agent within 5 s" in str(caught.value)
        assert "last heard: it is queued as job" in str(caught.value)
        assert until(lambda: not site.engine.jobs())


def test_why_a_job_waits_is_reported(site: GridEngineSite, tmp_path: Path) -> None:
    with site.grid(tmp_path, queue="closed.q", nodes=2, workers=1) as grid:
        assert until(lambda: "(its queue is disabled: " in waits_for(grid))


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"queue": "nope"}, ['unknown queue "nope"', "`qconf -sql`", "`queue`"]),
        ({"parallel_environment": "nope"}, ["nope", "`parallel_environment`", "`qconf -spl`"]),
        ({"project": "nope"}, ["nope", "`project`"]),
        ({"exclusive": True}, ["unknown resource", "leave out `exclusive`"]),
        ({"constraint": "arch=pdp11"}, ["no suitable queues", "`gridrpc script`"]),
        ({"options": ["-pe mp 99"]}, ["no suitable queues", "fewer `workers`"]),
        ({"options": ["-bogus"]}, ["`options`"]),
        ({"workers": 2}, ["2 are needed", "`parallel_environment`", "`qconf -spl`"]),
        ({"template": "/no/script"}, ["`/no/script` cannot be read", "`template`"]),
        ({"program": "/no/gridrpc"}, ["ended with status 127", "`staging`"]),
        ({"options": ["-o /no/folder/file"]}, ["could not start its job", "can't open output"]),
    ],
    ids=str,
)
def test_requests_that_cannot_be_are_reported_with_a_remedy(
    site: GridEngineSite, tmp_path: Path, keys: dict[str, object], words: list[str]
) -> None:
    with site.grid(tmp_path, **{"workers": 1, **keys}) as grid:
        with pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        assert all(word in str(caught.value) for word in words), caught.value
        # One that could not be started does not stay in the queue.
        assert until(lambda: not site.engine.jobs())


def test_a_job_that_somebody_ends_is_reported_so_and_comes_back(
    site: GridEngineSite, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=2, workers=1) as grid:
        work = Everywhere(grid, tmp_path)
        victim = site.running()[0]
        site.engine.run("qdel", victim)
        assert until(lambda: any(call.done() for call in work.calls))
        lost, other = sorted(work.calls, key=lambda call: not call.done())
        loss = lost.exception(LONG)
        assert isinstance(loss, WorkerLost)
        job, task = victim.split(".")
        assert f"its agent is gone: its job {victim} on " in str(loss)
        assert f"`qacct -j {job} -t {task}` tells which" in str(loss)
        work.gate.touch()
        assert other.result(LONG)
        grid.wait_until_ready(LONG)
        assert grid.workers == 2
        assert len(Everywhere(grid, tmp_path / "again").let_go()) == 2


def test_calls_of_a_job_that_ends_run_elsewhere_if_they_may(
    site: GridEngineSite, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=2, workers=1) as grid:
        work = Everywhere(grid, tmp_path, idempotent=True)
        agent, *_ = site.agents()
        agent.kill()
        assert len(work.let_go()) == 2


def test_how_an_agent_has_ended_is_reported(site: GridEngineSite, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=2, workers=1) as grid:
        work = Everywhere(grid, tmp_path)
        agent, *_ = site.agents()
        agent.kill()
        assert until(lambda: any(call.done() for call in work.calls))
        work.gate.touch()
        (loss,) = [call.exception(LONG) for call in work.calls if call.exception(LONG)]
        assert "was ended by signal 9" in str(loss)


def test_a_killed_client_leaves_no_jobs(site: GridEngineSite, tmp_path: Path) -> None:
    """Neither those that run nor those that wait, nor its tickets."""
    with start_client(tmp_path, site.server(nodes=SLOTS + 2, workers=1)):
        assert until(lambda: len(site.running()) == SLOTS)
        assert len(site.queued()) == 2
        assert site.tickets()
    assert site.nothing_is_left()


def test_ctrl_c_leaves_no_jobs(site: GridEngineSite, tmp_path: Path) -> None:
    with start_client(tmp_path, site.server(nodes=2, workers=1)) as process:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=LONG)
    assert site.nothing_is_left()


TEMPLATE = """#!/bin/bash
# The site's own.
{{options}}
#$ -ac hello=yes
set -e
export COLOUR=${BASH_VERSION:+red}
{{agent}}
"""


def test_a_script_of_the_users_is_used_by_the_shell_that_it_names(
    site: GridEngineSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHAPE", "round")
    (tmp_path / "job.sh").write_text(TEMPLATE)
    keys = {"workers": 1, "template": str(tmp_path / "job.sh"), "skip": ["-V"]}
    with site.full_grid(tmp_path, options=["-p -7"], **keys) as grid:
        assert grid.submit(os.getenv, "COLOUR").result(LONG) == "red"
        # Nothing of this process's environment is there.
        assert grid.submit(os.getenv, "SHAPE").result(LONG) is None
        (job,) = site.running()
        reported = site.engine.run("qstat", "-j", job)
        assert "hello=yes" in reported
        assert "-7" in reported


def test_the_script_can_be_printed_and_submitted_by_hand(
    site: GridEngineSite, tmp_path: Path
) -> None:
    keys = {"nodes": 3, "queue": "all.q", "wall_time": 300, "parallel_environment": "mp"}
    (tmp_path / "grid.toml").write_text(site.server(**keys))
    ran = subprocess.run(
        [PROGRAM, "script"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = ran.stdout.splitlines()
    assert lines[0] == "#!/bin/sh"
    for line in ("-t 1-3", "-q all.q", "-l h_rt=300", "-pe mp 2"):
        assert f"#$ {line}" in lines
    assert site.engine.jobs() == []
    (tmp_path / "script").write_text(ran.stdout)
    # Grid Engine takes it, as a test of what it would do.
    said = site.engine.run("qsub", "-w", "v", str(tmp_path / "script"))
    assert "found suitable queue" in said


def test_calls_continue_while_grid_engine_does_not_answer(
    site: GridEngineSite, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=2, workers=1) as grid:
        site.engine.stop_master()
        try:
            assert grid.submit(remote.add, 1, 1).result(LONG) == 2
        finally:
            site.engine.start_master()
        assert grid.submit(remote.add, 2, 2).result(LONG) == 4
        # A new master hears of jobs that have ended half a minute later.
        site.engine.cancel_all()


def test_what_could_not_be_cancelled_when_it_was_closed_is_so_later(
    site: GridEngineSite, tmp_path: Path
) -> None:
    with site.grid(tmp_path, nodes=2, workers=1, queue="closed.q", stop_timeout=1):
        assert until(lambda: len(site.queued()) == 2)
        site.engine.stop_master()
    site.engine.start_master()
    assert site.nothing_is_left()
