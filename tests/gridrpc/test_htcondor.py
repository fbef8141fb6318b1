"""Grids of workers that a real HTCondor starts: one request, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import remote
from batches import Everywhere, HTCondorSite, htcondor_of, printed_script, start_client
from gridrpc import StartError, WorkerLost
from grids import PROGRAM
from processes import LONG, until

pytestmark = [pytest.mark.htcondor, pytest.mark.usefixtures("no_jobs_are_left")]
SLOTS = 8


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HTCondorSite]:
    """One machine of eight processors."""
    with htcondor_of(SLOTS) as htcondor:
        yield HTCondorSite(htcondor, tmp_path_factory.mktemp("a shared folder"))


def test_a_cluster_has_an_agent_for_each_job(site: HTCondorSite, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, nodes=3, workers=2) as grid:
        assert grid.workers == 6
        assert len(Everywhere(grid, tmp_path).let_go()) == 6
        running = site.running()
        assert len(running) == 3
        # One request: all are jobs of one cluster.
        assert len({job.split(".")[0] for job in running}) == 1


def test_workers_follow_their_processors(site: HTCondorSite, tmp_path: Path) -> None:
    with site.full_grid(tmp_path, workers=1, cores=4) as grid:
        assert grid.workers == 1
        assert grid.submit(os.getenv, "OMP_NUM_THREADS").result(LONG) == "4"


def test_what_has_started_is_used_while_the_rest_is_queued(
    site: HTCondorSite, tmp_path: Path
) -> None:
    with site.grid(tmp_path, nodes=SLOTS + 1, workers=1) as grid:
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2
        assert until(lambda: len(site.running()) == SLOTS)
        (waits,) = site.queued()

        def describe() -> str:
            with pytest.raises(TimeoutError) as caught:
                grid.wait_until_ready(0.1)
            return str(caught.value)

        reason = f"is queued as job {waits.split('.')[0]} (no machine that is free"
        assert until(lambda: reason in describe())


def test_what_does_not_start_in_time_is_removed_and_told_with_the_reason(
    site: HTCondorSite, tmp_path: Path
) -> None:
    keys = {"constraint": 'Arch == "PDP11"', "start_timeout": 5}
    with site.grid(tmp_path, nodes=2, workers=1, **keys) as grid:
        with pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        assert "did not start its agent within 5 s" in str(caught.value)
        assert "no machine that is free has what it wants" in str(caught.value)
        assert until(lambda: not site.htcondor.jobs())


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"constraint": "Arch =="}, ["HTCondor has refused the job", "`constraint`"]),
        ({"template": "/no/script"}, ["`/no/script` cannot be read", "`template`"]),
        ({"program": "/no/gridrpc"}, ["/no/gridrpc", "`staging`"]),
    ],
    ids=str,
)
def test_requests_that_cannot_be_are_reported_with_a_remedy(
    site: HTCondorSite, tmp_path: Path, keys: dict[str, object], words: list[str]
) -> None:
    with site.grid(tmp_path, **{"workers": 1, **keys}) as grid:
        with pytest.raises(StartError) as caught:
            grid.wait_until_ready(LONG)
        assert all(word in str(caught.value) for word in words), caught.value
        # One that is held does not stay in the queue.
        assert until(lambda: not site.htcondor.jobs())


def test_a_job_that_somebody_removes_is_reported_so_and_comes_back(
    site: HTCondorSite, tmp_path: Path
) -> None:
    with site.full_grid(tmp_path, nodes=2, workers=1) as grid:
        work = Everywhere(grid, tmp_path)
        victim = site.running()[0]
        site.htcondor.run("condor_rm", victim)
        assert until(lambda: any(call.done() for call in work.calls))
        lost, other = sorted(work.calls, key=lambda call: not call.done())
        loss = lost.exception(LONG)
        assert isinstance(loss, WorkerLost)
        assert f"its agent is gone: its job {victim}" in str(loss)
        work.gate.touch()
        assert other.result(LONG)
        grid.wait_until_ready(LONG)
        assert len(Everywhere(grid, tmp_path / "again").let_go()) == 2


def test_a_killed_client_leaves_no_jobs(site: HTCondorSite, tmp_path: Path) -> None:
    """Neither those that run nor those that wait, nor its tickets."""
    with start_client(tmp_path, site.server(nodes=SLOTS + 2, workers=1)):
        assert until(lambda: len(site.running()) == SLOTS)
        assert len(site.queued()) == 2
        assert site.tickets()
    assert site.nothing_is_left()


def test_ctrl_c_leaves_no_jobs(site: HTCondorSite, tmp_path: Path) -> None:
    with start_client(tmp_path, site.server(nodes=2, workers=1)) as process:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=LONG)
    assert site.nothing_is_left()


TEMPLATE = """# The site's own.
{{options}}
environment = "COLOUR=red"
{{agent}}
"""


def test_a_description_of_the_users_is_used(site: HTCondorSite, tmp_path: Path) -> None:
    (tmp_path / "job.sub").write_text(TEMPLATE)
    keys = {"workers": 1, "template": str(tmp_path / "job.sub"), "skip": ["notification"]}
    with site.full_grid(tmp_path, options=["+GridrpcHello = 7"], **keys) as grid:
        assert grid.submit(os.getenv, "COLOUR").result(LONG) == "red"
        (job,) = site.running()
        assert site.htcondor.run("condor_q", job, "-af", "GridrpcHello").strip() == "7"


def test_the_description_can_be_printed_and_submitted_by_hand(
    site: HTCondorSite, tmp_path: Path
) -> None:
    (tmp_path / "grid.toml").write_text(site.server(nodes=3, memory="1G", wall_time=300))
    ran = subprocess.run(
        [PROGRAM, "script"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = ran.stdout.splitlines()
    assert "request_memory = 1G" in lines
    assert "queue 3" in lines
    assert site.htcondor.jobs() == []
    (tmp_path / "script").write_text(ran.stdout)
    # HTCondor takes it, as a test of what it would do.
    site.htcondor.run("condor_submit", "-dry-run", "-", str(tmp_path / "script"))


def test_the_program_can_be_a_job_as_the_page_has_it(site: HTCondorSite, tmp_path: Path) -> None:
    printed = printed_script("htcondor.md", "universe = local")
    description = printed.replace("/home/me/venv/bin/python", sys.executable)
    (tmp_path / "program.sub").write_text(description)
    (tmp_path / "grid.toml").write_text(site.server(nodes=2, workers=1))
    (tmp_path / "program.py").write_text(
        "import gridrpc, operator\n"
        "with gridrpc.Grid(config='grid.toml') as grid:\n"
        "    print(sum(grid.map(operator.neg, range(10))))\n"
    )
    done = subprocess.run(
        ["condor_submit", "program.sub"], cwd=tmp_path, env=dict(os.environ), check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = tmp_path / "program.out"
    assert until(lambda: text.exists() and text.read_text() == "-45\n"), (
        tmp_path / "program.err"
    ).read_text()
    assert until(lambda: not site.htcondor.jobs())
