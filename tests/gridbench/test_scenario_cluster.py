"""Scenarios on a cluster: each case asks a real Slurm for as many workers as it has cores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gridbench.engines.servers import Servers, ask, limited, spread
from gridbench.errors import InputError
from gridbench.run.load import load_run
from gridbench.scenario.results import read_results
from gridbench_testbed.batch.slurm import Slurm, why_not
from running import DEADLINE, REPOSITORY, Run

_GRID = """\
[defaults]
launcher = "slurm"
environment = {{ PYTHONPATH = "{path}" }}

[server.lab]
nodes = 2
workers = 3

[server.small]
workers = 1
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    if why := why_not():
        pytest.skip(why)
    with Slurm(nodes=2, processors=4) as slurm, pytest.MonkeyPatch.context() as patch:
        for name, value in slurm.variables.items():
            patch.setenv(name, value)
        yield slurm
        assert slurm.jobs() == []


@pytest.fixture(scope="module")
def grid(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    del slurm
    file = tmp_path_factory.mktemp("grid") / "grid.toml"
    file.write_text(_GRID.format(path=REPOSITORY / "python"))
    return file


def describe(servers: Servers) -> list[tuple[str, int]]:
    return [(host.name, host.workers) for host in servers.hosts]


def test_a_batch_system_is_requested_nodes_that_are_alike(grid: Path) -> None:
    given = ask(grid, ("lab",), patience=DEADLINE)
    assert describe(given) == [("lab-1", 3), ("lab-2", 3)]
    with limited(given, 4) as few:
        assert describe(few) == [("lab-1", 2), ("lab-2", 2)]
        assert ask(few.file, few.names, patience=DEADLINE).hosts == few.hosts
    with limited(given, 3) as few:
        assert describe(few) == [("lab-1", 3)]
    with pytest.raises(InputError, match="5 workers cannot be divided evenly"):
        spread(given, 5)


def test_a_url_of_a_batch_system_is_reported_its_numbers(grid: Path) -> None:
    del grid
    url = "slurm://lab?workers=3&nodes=2&partition=batch&wall_time=00:05:00"
    given = ask(None, (url,), patience=DEADLINE)
    with limited(given, 2) as few:
        (name,) = few.names
        assert name == "slurm://lab?partition=batch&wall_time=00:05:00&nodes=2&workers=1"
        assert ask(None, few.names, patience=DEADLINE).workers == 2


_WHOSE = """
import os, sys
import gridrpc
from gridbench.machine.processes import mark, processes, whose
mark()
with gridrpc.Grid(config=sys.argv[1], servers=["lab"]) as grid:
    workers = {grid.submit(os.getpid, server="lab").result() for _ in range(10)}
    table = processes()
    agents = {table[worker].parent for worker in workers}
    known = whose(table, os.getpid())
    print(workers | agents <= known.ours, known.apart)
"""


def test_workers_in_jobs_are_not_taken_for_other_programs(
    grid: Path, environment: dict[str, str]
) -> None:
    """They do not descend from who has submitted the job, and inherit its mark."""
    done = subprocess.run(
        [sys.executable, "-c", _WHOSE, grid], env=environment, capture_output=True, text=True,
        check=False, timeout=DEADLINE,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_a_scenario_runs_on_the_nodes_of_a_cluster(
    gridbench: Run, grid: Path, tmp_path: Path
) -> None:
    axes = ("--cores", "2,5,6,7", "--time-scale", "1e-5", "--quick", "--rounds", "1")
    engines = ("--engine", "gridrpc-python", "--engine", "gridrpc-native")
    options = ("--grid", grid, "--server", "lab", *engines, "--check", "--out", "out")
    done = gridbench("scenario", 1, *axes, "--sizes", "100KB", *options, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    assert "lab-2: 3 workers; TLS 1.3 over TCP; started by slurm" in done.stderr
    header, results = read_results(tmp_path / "out")
    assert [host["name"] for host in header.options["servers"]["hosts"]] == ["lab-1", "lab-2"]
    why = {result.cores: result.reason for result in results if result.status == "skipped"}
    assert sorted(why) == [5, 7]
    assert "5 workers cannot be divided evenly" in why[5]
    assert "and the servers have 6" in why[7]
    measured = [result for result in results if result.status in ("done", "invalid")]
    assert len(measured) == 4
    for result in measured:
        assert (result.transport, result.nodes, result.link_rate) == ("links", 2, None)
        assert result.folder is not None
        record, table = load_run(result.folder)
        assert set(table.column("host").to_pylist()) <= {"lab-1", "lab-2"}
        assert record["check"]["wrong"] == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Servers: the workers were on up to 2 hosts of a grid" in page
    assert "Published systems" in page


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--nodes", "2"], "make links on this machine"),
        (["--engine", "process-pool"], "cannot run its workers on servers"),
        (["--server", "nine"], "`nine`"),
        (["--server", "small", "--cores", "2"], "the servers have 1 worker, and no case needs"),
    ],
    ids=["links", "engine", "server", "few"],
)
def test_what_cannot_be_meant_is_refused(
    refused: Run, grid: Path, tmp_path: Path, arguments: list[str], what: str
) -> None:
    done = refused("scenario", "3", "--grid", grid, *arguments)
    assert done.returncode == 2
    assert what in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_asks_for_nothing(gridbench: Run, tmp_path: Path) -> None:
    nowhere = {"SLURM_CONF": os.devnull}
    arguments = ("--server", "slurm:?workers=4", "--cores", "4", "--time-scale", "0.01")
    done = gridbench("scenario", 3, *arguments, "--dry-run", env=nowhere)
    assert done.returncode == 0, done.stderr
    assert "scenario 3: 5 cases" in done.stdout
    assert list(tmp_path.iterdir()) == []
