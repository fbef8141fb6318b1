"""Functions on ranks of MPI on all nodes of a job of Slurm."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import gridrpc
from batches import Site, slurm_of
from gridrpc import Grid
from grids import CompileIdl, opened
from processes import LONG, until

pytest.importorskip("mpi4py")
if shutil.which("mpirun") is None:
    pytest.skip("there is no mpirun: `make mpi` installs it", allow_module_level=True)

HERE = Path(__file__).parent
#: The nodes are one machine here, on which the shared memory of two of them collides.
MPIRUN = "mpirun --mca btl self,tcp"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with slurm_of(2, 2) as slurm:
        site = Site(slurm, tmp_path_factory.mktemp("site") / "shared")
        yield site
        assert site.nothing_is_left()


@pytest.fixture(scope="module")
def grid(
    site: Site, compile_idl: CompileIdl, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Grid]:
    """One host: a job of two nodes with two cores each."""
    module = compile_idl((HERE / "ranks.idl").read_text())
    config = tmp_path_factory.mktemp("grid") / "grid.toml"
    config.write_text(site.server(nodes_per_host=2, workers=1, cores=2))
    with opened(config=config, mpirun=MPIRUN, modules=[module], grace=0.2) as grid:
        grid.wait_until_ready(LONG)
        yield grid


def ranks_on_nodes(site: Site, kind: str) -> dict[int, str]:
    """The ranks of a site, and their nodes. `kind`: "python", or "gridrpc" for compiled ones."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            variables = process.environ()
            if "GRIDRPC_RANKS_SECRET" not in variables or "OMPI_COMM_WORLD_RANK" not in variables:
                continue
            is_of_site = variables.get("SLURM_CONF") == site.rig.variables["SLURM_CONF"]
            if is_of_site and process.name().startswith(kind):
                found[process.pid] = variables["SLURMD_NODENAME"]
    return found


def no_rank_is_left(site: Site, kind: str) -> bool:
    return until(lambda: not ranks_on_nodes(site, kind))


def where(text: str = "") -> list[tuple[int, int, str, str, str]]:
    """Rank, number of ranks, node and threads of each."""
    import os

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    node, threads = os.environ["SLURMD_NODENAME"], os.environ["OMP_NUM_THREADS"]
    return comm.gather((comm.rank, comm.size, node, threads, text)) or []


def fail_on(rank: int, how: str) -> None:
    """Fails in one of several ways on one rank, while the others wait for it."""
    import os
    import sys

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == rank:
        if how == "raise":
            raise KeyError(f"of rank {rank}")
        print(f"the last words of rank {rank}", file=sys.stderr, flush=True)
        if how == "abort":
            comm.Abort(7)
        os.kill(os.getpid(), signal.SIGKILL)
    comm.Barrier()


def wait_for_ever(started: str) -> None:
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.rank == 3:
        Path(started).touch()
    MPI.COMM_WORLD.Barrier()
    while True:
        MPI.COMM_WORLD.Barrier()


def called(grid: Grid, name: str, *args: Any) -> Any:
    return grid.function(f"ranks/{name}", ranks=4).submit(*args).result(LONG)


def test_ranks_are_on_all_nodes_and_stay(grid: Grid, site: Site) -> None:
    ranks = grid.submit(where, text="a", ranks=4).result(LONG)
    nodes = ["n1", "n1", "n2", "n2"]
    assert ranks == [(rank, 4, node, "1", "a") for rank, node in enumerate(nodes)]
    before = ranks_on_nodes(site, "python")
    assert sorted(before.values()) == nodes
    assert len(grid.submit(where, ranks=4).result(LONG)) == 4
    assert ranks_on_nodes(site, "python") == before
    # With two cores each, a node has room for one.
    ranks = grid.submit(where, ranks=2, cores=2).result(LONG)
    assert ranks == [(0, 2, "n1", "2", ""), (1, 2, "n2", "2", "")]


def test_the_host_has_the_cores_of_its_job(grid: Grid) -> None:
    assert grid.workers == 1
    with pytest.raises(gridrpc.TooFewCores, match=r"5 cores of one host.*workers for 4"):
        grid.submit(where, ranks=5)


def test_who_looks_at_processes_sees_no_secret(grid: Grid, site: Site) -> None:
    grid.submit(where, ranks=4).result(LONG)
    (secret,) = {
        psutil.Process(pid).environ()["GRIDRPC_RANKS_SECRET"]
        for pid in ranks_on_nodes(site, "python")
    }
    for process in psutil.process_iter(["cmdline"]):
        assert secret not in " ".join(process.info["cmdline"] or [])


@pytest.mark.parametrize("n", [4, 400_000])
def test_arrays_of_compiled_functions_go_to_all_nodes(grid: Grid, site: Site, n: int) -> None:
    x = np.arange(float(n))
    first = called(grid, "sum", x)
    assert (first.total[0], first.where[0]) == (x.sum(), 4)
    assert sorted(ranks_on_nodes(site, "gridrpc").values()) == ["n1", "n1", "n2", "n2"]
    assert list(called(grid, "sum", x).where) == list(first.where)
    called(grid, "scale", 0.5, x)
    assert (x == np.arange(float(n)) / 2).all()
    whole = np.full(n, 5, np.int32)
    before = called(grid, "shift", whole)
    assert (whole == 6).all()
    assert (before == 20).all()
    assert called(grid, "threads")[0] == 1


def test_texts_come_from_rank_0(grid: Grid, tmp_path: Path) -> None:
    written = tmp_path / "written"
    assert called(grid, "greet", "ada", "lady", str(written)) == ("ada on 4", "Jady")
    assert written.read_text() == "written"


def test_files_stay_on_the_first_node(grid: Grid, tmp_path: Path) -> None:
    two, three = np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    file = tmp_path / "file"
    file.write_text("content")
    sizes, files = np.array([3], np.int32), [str(file)]
    call = grid.function("ranks/is_there", ranks=3)
    with pytest.raises(TypeError, match="`files` is a file for all ranks"):
        call(3, two, two, two, sizes, three, "text", ["one", "two"], str(file), files)


def test_an_error_of_a_rank_on_another_node_is_raised(grid: Grid) -> None:
    with pytest.raises(KeyError, match="of rank 3") as raised:
        grid.submit(fail_on, 3, "raise", ranks=4).result(LONG)
    assert "gridrpc: on rank 3 of 4" in "\n".join(raised.value.__notes__)


@pytest.mark.parametrize(("how", "status"), [("abort", 7), ("kill", 128 + signal.SIGKILL)])
def test_lost_ranks_of_another_node_end_all(grid: Grid, site: Site, how: str, status: int) -> None:
    with pytest.raises(gridrpc.RanksLost, match="4 ranks were lost that ran fail_on") as lost:
        grid.submit(fail_on, 3, how, ranks=4).result(LONG)
    assert "the last words of rank 3" in lost.value.stderr
    assert lost.value.status == status
    assert no_rank_is_left(site, "python")
    with pytest.raises(gridrpc.RanksLost, match="4 ranks were lost that ran ranks/end_badly"):
        called(grid, "end_badly", ["abort", "kill"].index(how))
    assert no_rank_is_left(site, "gridrpc")
    assert called(grid, "sum", np.ones(4))[0][0] == 4


@pytest.mark.parametrize("kind", ["python", "gridrpc"])
@pytest.mark.parametrize("how", ["cancel", "deadline", "kill"])
def test_no_rank_is_left_on_any_node(
    grid: Grid, site: Site, tmp_path: Path, how: str, kind: str
) -> None:
    started = tmp_path / "started"
    deadline = 10.0 if how == "deadline" else None
    if kind == "python":
        call = grid.submit(wait_for_ever, str(started), ranks=4, deadline=deadline)
    else:
        wait = grid.function("ranks/wait", ranks=4)
        call = wait.submit(str(started), 0, deadline=deadline)
    assert until(started.exists)
    ranks = ranks_on_nodes(site, kind)
    assert sorted(ranks.values()) == ["n1", "n1", "n2", "n2"]
    if how == "cancel":
        assert call.cancel()
    elif how == "kill":
        worker_of(ranks).kill()
    expected: dict[str, type[BaseException]] = {
        "cancel": gridrpc.CallCancelled,
        "deadline": gridrpc.DeadlineExceeded,
        "kill": gridrpc.WorkerLost,
    }
    with pytest.raises(expected[how]):
        call.result(LONG)
    assert no_rank_is_left(site, kind)
    assert called(grid, "sum", np.ones(4))[0][0] == 4


def worker_of(ranks: dict[int, str]) -> psutil.Process:
    """The worker that has started ranks by `mpirun`."""
    secret = psutil.Process(next(iter(ranks))).environ()["GRIDRPC_RANKS_SECRET"]
    for process in psutil.process_iter(["name", "environ"]):
        is_theirs = (process.info["environ"] or {}).get("GRIDRPC_RANKS_SECRET") == secret
        if is_theirs and process.info["name"] == "mpirun":
            return psutil.Process(process.ppid())
    raise LookupError("there is no mpirun")


def test_a_cancelled_function_may_return_early(grid: Grid, site: Site, tmp_path: Path) -> None:
    called(grid, "sum", np.ones(4))
    before = ranks_on_nodes(site, "gridrpc")
    started = tmp_path / "started"
    call = grid.function("ranks/wait", ranks=4).submit(str(started), 1)
    assert until(started.exists)
    assert call.cancel()
    # The ranks on both nodes have returned, and run the next call.
    assert called(grid, "sum", np.ones(4))[0][0] == 4
    assert ranks_on_nodes(site, "gridrpc") == before
