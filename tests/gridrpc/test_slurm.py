"""Grids of workers that a real Slurm starts: one request, and nothing is left."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import remote
from batches import (
    STEPS,
    Everywhere,
    Site,
    home_with_venv,
    printed_script,
    slurm_of,
    start_client,
)
from gridbench_testbed.batch.slurm import Slurm
from gridrpc import StartError, TooFewCores, WorkerLost, attach
from grids import PROGRAM
from processes import LONG, environment, run_script, start_script, until

pytestmark = pytest.mark.usefixtures("no_jobs_are_left")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Four nodes of eight processors."""
    with slurm_of(4, 8) as slurm:
        yield Site(slurm, tmp_path_factory.mktemp("a shared folder"))


def test_an_array_has_an_agent_for_each_node(site: Site, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=4, exclusive=True) as grid:
        assert grid.workers == 8
        nodes = Everywhere(grid, tmp_path).let_go()
        assert sorted(nodes) == sorted(["n1", "n2", "n3", "n4"] * 2)
        running = site.running()
        assert len(running) == 4
        # One request: all are tasks of one job.
        assert len({task.split("_")[0] for task in running}) == 1


def test_a_sweep_runs_on_the_nodes_and_resumes(site: Site, tmp_path: Path) -> None:
    rows = [{"value": n} for n in range(40)]
    out = site.shared / "swept.csv"
    for limit in (30, 40):
        with site.full_grid(tmp_path, nodes=2) as grid:
            made = grid.sweep(
                remote.nap_on_host, rows[:limit], constants={"scale": 2}, output=out, resume=True,
                chunk=1,
            )  # fmt: skip
            assert [row["result"] for row in made] == [2 * n for n in range(limit)]
            assert {row["host"] for row in made} <= {"n1", "n2", "n3", "n4"}
            assert grid.stats().calls.submitted == (30 if limit == 30 else 10)
    assert len(out.read_text().splitlines()) == 41


def test_one_job_has_an_agent_for_each_node(site: Site, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=3, request="job") as grid:
        nodes = Everywhere(grid, tmp_path).let_go()
        assert sorted(nodes) == sorted(["n1", "n2", "n3"] * 2)
        assert len(site.running()) == 1


def test_a_direct_request_has_an_agent_for_each_node(site: Site, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=3, request="direct", options=["--comment='so so'"]) as grid:
        nodes = Everywhere(grid, tmp_path).let_go()
        assert sorted(nodes) == sorted(["n1", "n2", "n3"] * 2)
        (job,) = site.running()
        assert "Comment=so so" in site.slurm.run("scontrol", "show", "job", job)
        # One that is lost comes back, in a job of its own.
        site.agents()[0].kill()
        assert until(lambda: len(site.running()) == 2)
        grid.wait_until_ready(LONG)


def test_a_direct_request_tells_why_it_waits(site: Site, tmp_path: Path) -> None:
    site.slurm.hold("n4")
    try:
        with site.grid(tmp_path, nodes=4, request="direct", start_timeout=2) as grid:
            with pytest.raises(StartError) as caught:
                grid.wait_until_ready(LONG)
            assert "did not start its agent within 2 s" in str(caught.value)
            # One node is drained.
            assert "is queued as job" in str(caught.value)
            assert "DRAINED" in str(caught.value) or "Resources" in str(caught.value)
    finally:
        site.slurm.resume("n4")


def test_workers_follow_the_processors_that_a_node_gives(site: Site, tmp_path: Path) -> None:
    keys = {"nodes": 1, "workers": 0, "cores": 4, "exclusive": True}
    with site.full_grid(tmp_path, **keys) as grid:
        assert grid.workers == 2
        assert grid.submit(os.getenv, "OMP_NUM_THREADS").result(LONG) == "4"
        # One worker has four cores, and so eight are two places. OpenBLAS starts no more threads
        # than this machine has processors, if it is loaded in the call.
        assert grid.submit(remote.threads, cores=8).result(LONG)["omp"] == 8
        assert grid.submit(remote.threads, cores=3).result(LONG)["omp"] == 3
        with pytest.raises(TooFewCores, match="has workers for 8"):
            grid.submit(remote.threads, cores=9)


@pytest.mark.parametrize("prefix", [[], ["srun", "--ntasks=1", "--nodes=1"]], ids=["job", "step"])
def test_in_an_allocation_agents_are_steps(site: Site, tmp_path: Path, prefix: list[str]) -> None:
    (tmp_path / "grid.toml").write_text(site.server())
    (tmp_path / "script.py").write_text(STEPS)
    command = ["salloc", "--quiet", "--nodes=3", "--exclusive", *prefix, sys.executable]
    command += ["script.py", "grid.toml", str(tmp_path)]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=LONG,
        check=False,
    )  # fmt: skip
    assert ran.stdout.split() == sorted(["n1", "n2", "n3"] * 2), ran.stderr


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("page", ["slurm.md", "mpi.md"])
def test_job_scripts_run_as_they_are_printed(tmp_path: Path, page: str) -> None:
    (tmp_path / "program.sbatch").write_text(printed_script(page, "#SBATCH --nodes=4"))
    (tmp_path / "program.py").write_text(
        "import gridrpc\n"
        'with gridrpc.Grid(servers=["slurm:"]) as grid:\n'
        "    grid.wait_until_ready(60)\n"
        "    print(*sorted(host.host for host in grid.hosts()))\n"
    )
    ran = subprocess.run(
        ["sbatch", "--wait", "--output=out", "program.sbatch"], cwd=tmp_path,
        env=home_with_venv(tmp_path), capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr + (tmp_path / "out").read_text()
    assert (tmp_path / "out").read_text().splitlines()[-1].split() == ["n1", "n2", "n3", "n4"]


def test_what_has_started_is_used_while_the_rest_is_queued(site: Site, tmp_path: Path) -> None:
    site.slurm.hold("n4")
    try:
        with site.grid(tmp_path, nodes=4, exclusive=True) as grid:
            assert grid.submit(remote.add, 1, 1).result(LONG) == 2
            assert until(lambda: len(site.running()) == 3)
            (waits,) = site.queued()

            def describe() -> str:
                with pytest.raises(TimeoutError) as caught:
                    grid.wait_until_ready(0.1)
                return str(caught.value)

            # Where the job waits, and why, in words and in Slurm's own.
            assert until(lambda: f"{waits.split('_')[0]} (" in describe())
            assert until(lambda: "is queued as job" in describe() and ": Resources)" in describe())
            site.slurm.resume("n4")
            grid.wait_until_ready(LONG)
            assert grid.workers == 8
    finally:
        site.slurm.resume("n4")


def test_what_does_not_start_in_time_is_cancelled_and_told_with_the_reason(
    site: Site, tmp_path: Path
) -> None:
    with site.grid(tmp_path, partition="closed", nodes=2, start_timeout=2) as grid:
        with pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        assert "did not start its agent within 2 s" in str(caught.value)
        assert "its partition is down: PartitionDown" in str(caught.value)


def test_hosts_that_wait_for_the_same_are_reported_in_one_line(site: Site, tmp_path: Path) -> None:
    keys = {"partition": "closed", "nodes": 30}
    reason = "its partition is down: PartitionDown"
    with site.grid(tmp_path, **keys) as grid:
        assert until(lambda: all(reason in host.detail for host in grid.hosts()))
        with pytest.raises(TimeoutError) as late:
            grid.wait_until_ready(0.1)
    _, line = str(late.value).splitlines()
    assert re.fullmatch(
        rf"  hosts lab-1 ... lab-30 \(30 hosts\): is queued as job .*{reason}\)", line
    )
    with (
        site.grid(tmp_path, start_timeout=2, **keys) as grid,
        pytest.raises(StartError) as caught,
    ):
        grid.wait_until_ready(LONG)
    assert str(caught.value).count("\n") == 1
    assert "(29 hosts): failed: the batch system did not start its agent" in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"partition": "nope"}, ["invalid partition specified: nope", "`sinfo`", "`partition`"]),
        (
            {"request": "direct", "partition": "nope"},
            ["invalid partition specified: nope", "`sinfo`"],
        ),
        ({"workers": 9}, ["Requested node configuration is not available", "fewer `workers`"]),
        ({"options": ["--bogus=9"]}, ["unrecognized option '--bogus=9'", "`options`"]),
        ({"options": ["--gres=gpu:1"]}, ["Invalid generic resource", "`sinfo --format='%N %G'`"]),
        ({"options": ["--time=never"]}, ["Invalid --time specification", "`wall_time`"]),
        ({"template": "/no/script"}, ["`/no/script` cannot be read", "`template`"]),
        ({"program": "/no/gridrpc"}, ["ended with status 127", "`staging`"]),
        ({"staging": "/proc/gridrpc"}, ["cannot be kept in `/proc/gridrpc", "`staging`"]),
    ],
    ids=str,
)
def test_requests_that_cannot_be_are_reported_with_a_remedy(
    site: Site, tmp_path: Path, keys: dict[str, object], words: list[str]
) -> None:
    with site.grid(tmp_path, **keys) as grid, pytest.raises(StartError) as caught:
        grid.wait_until_ready(LONG)
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_job_that_somebody_cancels_is_reported_so_and_comes_back(
    site: Site, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=2, exclusive=True, workers=1) as grid:
        work = Everywhere(grid, tmp_path)
        (victim,) = [task for task in site.slurm.jobs() if task.endswith(work.nodes[0])]
        site.slurm.run("scancel", victim.split()[0])
        loss = work.calls[0].exception(LONG)
        assert isinstance(loss, WorkerLost)
        how = f"its job {victim.split()[0]} on {work.nodes[0]} was cancelled"
        assert f"its agent is gone: {how}" in str(loss)
        work.gate.touch()
        assert work.calls[1].result(LONG) == work.nodes[1]
        grid.wait_until_ready(LONG)
        assert grid.workers == 2
        assert len(Everywhere(grid, tmp_path / "again").let_go()) == 2


def test_a_node_that_fails_is_reported_so(site: Site, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=1, workers=1) as grid:
        work = Everywhere(grid, tmp_path)
        site.slurm.fail(work.nodes[0])
        try:
            loss = work.calls[0].exception(LONG)
            assert isinstance(loss, WorkerLost)
            assert f"on {work.nodes[0]} ended since its node failed" in str(loss)
            # Another job takes its place.
            assert grid.submit(remote.add, 1, 1).result(LONG) == 2
        finally:
            site.slurm.resume(work.nodes[0])


def test_no_call_is_sent_to_an_agent_that_is_gone_while_it_is_asked_why(
    site: Site, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=2, exclusive=True, workers=1) as grid:
        # Slurm cannot say how the agent has ended.
        site.slurm.stop_controller()
        try:
            agent, *_ = site.agents()
            agent.kill()
            assert until(lambda: "1 of 2 python workers ready" in repr(grid))
            calls = [grid.submit(remote.add, n, n) for n in range(20)]
            assert [call.result(LONG) for call in calls] == list(range(0, 40, 2))
        finally:
            site.slurm.start_controller()
        grid.wait_until_ready(LONG)
        assert len(Everywhere(grid, tmp_path).let_go()) == 2


@pytest.mark.parametrize("partition", ["batch", "closed"])
def test_a_killed_client_leaves_no_direct_request(
    site: Site, tmp_path: Path, partition: str
) -> None:
    table = site.server(name="small", nodes=1, request="direct")
    other = site.server(name="other", nodes=2, request="direct", partition=partition)
    with start_client(tmp_path, table, other):
        assert until(lambda: len(site.slurm.jobs()) == 2)
    assert site.nothing_is_left()


def test_a_killed_client_leaves_no_jobs(site: Site, tmp_path: Path) -> None:
    """Neither those that run nor those that wait, nor its tickets."""
    with start_client(tmp_path, site.server(nodes=5, exclusive=True)):
        assert until(lambda: len(site.running()) == 4)
        assert len(site.queued()) == 1
        assert site.tickets()
    assert site.nothing_is_left()


def test_tickets_are_for_nobody_else(site: Site, tmp_path: Path) -> None:
    """They are in files that only their owner reads, and in no script and no command line."""
    with site.grid(tmp_path, nodes=2, partition="closed"):
        assert until(lambda: len(site.queued()) == 2)
        tickets = site.tickets()
        assert len(tickets) == 2
        secrets = [file.read_text().strip() for file in tickets]
        assert all(secret.startswith("gridrpc1.") for secret in secrets)
        for file in tickets:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert all(stat.S_IMODE(up.stat().st_mode) == 0o700 for up in file.parents[:2])
        job = site.queued()[0].split("_")[0]
        script = site.slurm.run("scontrol", "write", "batch_script", job, "-")
        shown = [script, site.slurm.run("scontrol", "show", "job", job)]
        shown += [
            " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])
        ]
        assert not any("gridrpc1." in text for text in shown)


def test_a_ticket_is_gone_when_its_agent_is_there(site: Site, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=1):
        assert site.tickets() == []


TEMPLATE = """#!/bin/bash
# The site's own.
{{options}}
#SBATCH --comment=hello
export COLOUR=red
{{agent}}
"""


def test_a_script_of_the_users_is_used(site: Site, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(TEMPLATE)
    keys = {"nodes": 1, "template": str(tmp_path / "job.sh")}
    with site.full_grid(tmp_path, **keys) as grid:
        assert grid.submit(os.getenv, "COLOUR").result(LONG) == "red"
        (job,) = site.running()
        assert "Comment=hello" in site.slurm.run("scontrol", "show", "job", job)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("#!/bin/sh\n{{agent}}\n", "write {{options}} in a line of its own, before {{agent}}"),
        ("#!/bin/sh\n{{agent}}\n{{options}}\n", "has {{options}} in line 3, behind {{agent}}"),
        ("#!/bin/sh\ndate\n{{options}}\n{{agent}}\n", "has a command in line 2"),
    ],
    ids=["missing", "behind", "late"],
)
def test_a_script_of_the_users_without_options_where_slurm_reads_them_is_refused(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.sh").write_text(template)
    keys = {"nodes": 1, "template": str(tmp_path / "job.sh")}
    with site.grid(tmp_path, **keys) as grid, pytest.raises(StartError) as caught:
        grid.wait_until_ready(LONG)
    assert f"the job script `{tmp_path}/job.sh`" in str(caught.value)
    assert words in str(caught.value)
    assert not list(tmp_path.glob("slurm-*.out"))


def test_the_script_can_be_printed_and_submitted_by_hand(site: Site, tmp_path: Path) -> None:
    keys = {"nodes": 3, "partition": "small", "wall_time": 300, "options": ["--comment=x"]}
    (tmp_path / "grid.toml").write_text(site.server(**keys))
    ran = subprocess.run(
        [PROGRAM, "script"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = ran.stdout.splitlines()
    assert lines[0] == "#!/bin/sh"
    for line in ("--array=0-2", "--partition=small", "--time=00:05:00", "--comment=x"):
        assert f"#SBATCH {line}" in lines
    assert site.slurm.jobs() == []
    (tmp_path / "script").write_text(ran.stdout)
    # Slurm takes it, as a test of what it would do.
    site.slurm.run("sbatch", "--test-only", str(tmp_path / "script"))


def test_calls_continue_while_slurm_does_not_answer(site: Site, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=2) as grid:
        site.slurm.stop_controller()
        try:
            assert grid.submit(remote.add, 1, 1).result(LONG) == 2
        finally:
            site.slurm.start_controller()
        assert grid.submit(remote.add, 2, 2).result(LONG) == 4


def test_what_could_not_be_cancelled_when_it_was_closed_is_so_later(
    site: Site, tmp_path: Path
) -> None:
    with site.grid(tmp_path, nodes=2, partition="closed", stop_timeout=1):
        assert until(lambda: len(site.queued()) == 2)
        site.slurm.stop_controller()
    site.slurm.start_controller()
    assert site.nothing_is_left()


SUBMITS = """
import sys
import batches, gridrpc
with gridrpc.attach("night") as grid:
    started, gates = [f"started{n}" for n in range(4)], ["gate"] * 4
    grid.submit("nodes", batches.tell_node_and_wait, started, gates)
"""


def test_a_session_keeps_its_jobs_while_no_program_is_there(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "grid.toml").write_text(site.server(nodes=2, exclusive=True))

    def session(*words: str) -> None:
        subprocess.run([PROGRAM, "session", *words], cwd=tmp_path, check=True, timeout=LONG)

    session("start", "night", "--config", "grid.toml")
    try:
        assert run_script(tmp_path, SUBMITS).returncode == 0
        assert until(lambda: all((tmp_path / f"started{n}").exists() for n in range(4)))
        jobs = site.running()
        assert len(jobs) == 2
        with attach("night") as grid:
            (tmp_path / "gate").touch()
            assert sorted(grid.results("nodes")) == sorted(["n1", "n2"] * 2)
        assert site.running() == jobs
    finally:
        session("stop", "night", "--forget")
    assert site.nothing_is_left()


SHARES = """
import pathlib
import batches, gridrpc
name = "{name}"
with gridrpc.attach("team") as session:
    grid = session.grid
    run, gate = batches.tell_node_and_wait, "gate-{name}"
    calls = [grid.submit(run, f"{name}{n}", gate) for n in range(2)]
    pathlib.Path("submitted").touch()
    print(*sorted(call.result() for call in calls))
"""


def test_programs_share_the_jobs_of_a_session(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "grid.toml").write_text(site.server(nodes=2, exclusive=True))

    def session(*words: str) -> None:
        subprocess.run([PROGRAM, "session", *words], cwd=tmp_path, check=True, timeout=LONG)

    def started(name: str) -> list[bool]:
        return [(tmp_path / f"{name}{n}").exists() for n in range(2)]

    session("start", "team", "--config", "grid.toml")
    try:
        programs = {}
        for name in ("a", "b", "c"):
            # Four workers are two for each of the first two programs: the third waits.
            assert until(lambda: all(all(started(known)) for known in programs))
            (tmp_path / name).mkdir()
            programs[name] = start_script(tmp_path / name, SHARES.replace("{name}", name))
        jobs = site.running()
        assert len(jobs) == 2
        assert until((tmp_path / "c" / "submitted").exists)
        assert started("c") == [False, False]
        programs["a"].kill()
        programs["a"].communicate(timeout=LONG)
        # Its calls have ended with it, and so the third has their places.
        assert until(lambda: all(started("c")))
        for name in ("b", "c"):
            (tmp_path / f"gate-{name}").touch()
            out, errors = programs[name].communicate(timeout=LONG)
            assert programs[name].returncode == 0, errors
            assert set(out.split()) <= {"n1", "n2"}
        assert site.running() == jobs
    finally:
        session("stop", "team", "--forget")
    assert site.nothing_is_left()


def test_ctrl_c_leaves_no_jobs(site: Site, tmp_path: Path) -> None:
    with start_client(tmp_path, site.server(nodes=2)) as process:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=LONG)
    assert site.nothing_is_left()


def test_a_second_slurm_is_behind_a_prefix(site: Site, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(0o700)
    with Slurm(nodes=1, processors=2) as slurm:
        other = Site(slurm, tmp_path / "shared")
        second = other.server(name="other", nodes=2, prefix=slurm.prefix)
        with start_client(tmp_path, site.server(nodes=1), second):
            assert until(lambda: len(site.running()) == 1)
            assert until(lambda: (len(other.running()), len(other.queued())) == (1, 1))
        # What cancels jobs of a killed client puts the prefix before its commands as well.
        assert site.nothing_is_left()
        assert other.nothing_is_left()
