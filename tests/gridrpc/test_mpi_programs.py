"""MPI programs that calls start, as docs/mpi.md has them: on one host, and on a job's nodes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import psutil
import pytest

import gridrpc
from batches import Site, printed_script, slurm_of
from grids import opened
from processes import LONG, until

if shutil.which("mpirun") is None or shutil.which("mpif90") is None:
    pytest.skip("there is no Open MPI: `make mpi` installs it", allow_module_level=True)

FOR_EVER = "&settings seconds = 60 /\n"


@pytest.fixture(scope="module", autouse=True)
def as_root() -> Iterator[None]:
    """Tests may run as root; Open MPI then wants to know that it is meant."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
        patch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        yield


@pytest.fixture(scope="module")
def runs() -> ModuleType:
    """The program of the page."""
    module = ModuleType("runs")
    exec(printed_script("mpi.md", "def run_model(program, namelist, ranks):"), module.__dict__)
    return module


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    (folder / "model.f90").write_text(printed_script("mpi.md", "program model"))
    subprocess.run(["mpif90", "-o", "model", "model.f90"], cwd=folder, check=True)
    return str(folder / "model")


@pytest.fixture(scope="module")
def grid() -> Iterator[gridrpc.Grid]:
    with opened(workers=2) as grid:
        grid.wait_until_ready(LONG)
        yield grid


def ranks_of(program: str) -> list[psutil.Process]:
    """The processes of a program, and `mpirun`."""
    found = psutil.process_iter(["cmdline"])
    return [one for one in found if program in " ".join(one.info["cmdline"] or [])]


@pytest.mark.parametrize("end", ["deadline", "cancel"])
def test_all_ranks_end_with_their_call(
    runs: ModuleType, program: str, grid: gridrpc.Grid, end: str
) -> None:
    deadline = 5 if end == "deadline" else None
    call = grid.submit(runs.run_model, program, FOR_EVER, 2, cores=2, deadline=deadline)
    # `mpirun`, and two ranks.
    assert until(lambda: len(ranks_of(program)) == 3)
    if end == "cancel":
        call.cancel()
    assert until(call.done)
    assert call.cancelled() or isinstance(call.exception(LONG), TimeoutError)
    assert until(lambda: not ranks_of(program))
    # The next call has both cores.
    result = grid.submit(runs.run_model, program, "&settings steps = 2 /\n", 2, cores=2)
    assert result.result(LONG) == {"total.out": "6.0\n"}


def test_a_rank_that_aborts_is_reported(runs: ModuleType, program: str, grid: gridrpc.Grid) -> None:
    call = grid.submit(runs.run_model, program, "&settings steps = -1 /\n", 2, cores=2)
    with pytest.raises(RuntimeError, match=r"ended with status 3: (?s:.*)MPI_ABORT"):
        call.result(LONG)


def run_wide(program: str, namelist: str, ranks: int, shared: str) -> tuple[str, list[str]]:
    """The total, and the nodes that ranks were on."""
    import tempfile

    # The nodes are one machine here, on which the shared memory of two of them collides.
    command = ["mpirun", "--mca", "btl", "self,tcp", "--bind-to", "none", "-n", str(ranks)]
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        Path(folder, "settings.nml").write_text(namelist)
        nodes = subprocess.run(
            [*command, "printenv", "SLURMD_NODENAME"], cwd=folder, check=True, capture_output=True,
            text=True,
        )  # fmt: skip
        subprocess.run([*command, program], cwd=folder, check=True)
        return Path(folder, "total.out").read_text(), sorted(nodes.stdout.split())


def test_ranks_of_a_call_are_on_all_nodes_of_its_job(program: str, tmp_path: Path) -> None:
    with slurm_of(4, 2) as slurm:
        site = Site(slurm, tmp_path / "shared")
        wide = {"nodes": 2, "nodes_per_host": 2, "workers": 1, "cores": 2}
        with site.full_grid(tmp_path, **wide) as grid:
            assert grid.workers == 2
            calls = [
                grid.submit(run_wide, program, "&settings steps = 1 /\n", 4, str(tmp_path))
                for _ in range(2)
            ]
            results = [call.result(LONG) for call in calls]
            call = grid.submit(run_wide, program, FOR_EVER, 4, str(tmp_path))
            assert until(lambda: len(ranks_of(program)) > 4)
            call.cancel()
            assert until(lambda: not ranks_of(program))
        assert [total for total, _ in results] == ["10.0\n"] * 2
        nodes = sorted(node for _, nodes in results for node in nodes)
        assert nodes == sorted(["n1", "n2", "n3", "n4"] * 2), results
        assert site.nothing_is_left()
