"""Functions of compiled modules on ranks of MPI: Open MPI starts them, which `make mpi` sees to."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import gridrpc
from gridrpc import Grid
from grids import PROGRAM, CompileIdl, opened
from processes import LONG, until

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def module(compile_idl: CompileIdl) -> Path:
    return compile_idl((HERE / "ranks.idl").read_text())


@pytest.fixture(scope="module", params=["native", "python"])
def grid(request: pytest.FixtureRequest, module: Path) -> Iterator[Grid]:
    with opened(workers=4, worker=request.param, modules=[module]) as grid:
        grid.wait_until_ready(LONG)
        yield grid


def processes() -> list[psutil.Process]:
    """The ranks, and the commands that have started them, below this process."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if "rank" in words[1:]:
            found.append(process)
    return found


def called(grid: Grid, name: str, *args: Any, ranks: int = 2) -> Any:
    return grid.function(f"ranks/{name}", ranks=ranks).submit(*args).result(LONG)


def test_a_function_runs_on_ranks_which_stay(grid: Grid) -> None:
    x = np.arange(1000.0)
    first = grid.submit(grid.function("ranks/sum"), x, ranks=3).result(LONG)
    assert (first.total[0], first.where[0]) == (x.sum(), 3)
    again = called(grid, "sum", x, ranks=3)
    assert list(again.where) == list(first.where)
    assert called(grid, "sum", x, ranks=2)[1][0] == 2
    # The usual way to call, with what the function was found with.
    assert grid.function("ranks/sum", ranks=2)(x)[0][0] == x.sum()
    # On one by default.
    assert grid.function("ranks/sum")(x)[1][0] == 1


@pytest.mark.parametrize("n", [4, 400_000])
def test_arrays_go_in_and_come_back(grid: Grid, n: int) -> None:
    x = np.arange(float(n))
    called(grid, "scale", 0.5, x)
    assert (x == np.arange(float(n)) / 2).all()
    in_place = gridrpc.empty(n)
    in_place[:] = 1
    called(grid, "scale", 3.0, in_place)
    assert (in_place == 3).all()


@pytest.mark.parametrize("n", [3, 100_000])
def test_each_rank_changes_its_own_copy(grid: Grid, n: int) -> None:
    x = np.full(n, 5, np.int32)
    before = called(grid, "shift", x)
    assert (x == 6).all()
    assert (before == 10).all()
    x[:] = 7
    assert (called(grid, "shift", x) == 14).all()


def test_the_interface_says_what_is_where(grid: Grid, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("content")
    two, three = np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    sizes = np.array([3], np.int32)
    call = grid.function("ranks/is_there", ranks=3)
    files = [str(file)]
    result = call(3, two, two, two, sizes, three, "text", ["one", "two"], str(file), files)
    there = [bytes(row).decode() for row in result.there]
    assert there == ["xxxxxxxxc", "-0x-xxx-c", "-0x-xxx-c"]


def test_texts_and_files_come_from_rank_0(grid: Grid, tmp_path: Path) -> None:
    written = tmp_path / "written"
    result = called(grid, "greet", "ada", "lady", str(written))
    assert result == ("ada on 2", "Jady")
    assert written.read_text() == "written"


def test_processes_are_kept_for_functions_of_one_module(grid: Grid) -> None:
    called(grid, "nothing")
    counts = [int(called(grid, "count")[0]) for _ in range(3)]
    assert counts == list(range(counts[0], counts[0] + 3))


def test_maps_run_on_ranks(grid: Grid) -> None:
    items = [np.arange(float(n)) for n in range(1, 9)]
    results = grid.map(grid.function("ranks/sum", ranks=2), items)
    assert [result.total[0] for result in results] == [item.sum() for item in items]
    results = grid.map(grid.function("ranks/sum"), items, ranks=2)
    assert [result.total[0] for result in results] == [item.sum() for item in items]


def test_each_rank_has_as_many_threads_as_cores(grid: Grid) -> None:
    function = grid.function("ranks/threads")
    assert grid.submit(function, ranks=2).result(LONG)[0] == 1
    assert grid.submit(function, ranks=2, cores=2).result(LONG)[0] == 2


def test_ranks_take_places(grid: Grid) -> None:
    with pytest.raises(gridrpc.TooFewCores, match="asks for 5 cores"):
        grid.function("ranks/nothing", ranks=5)()
    with pytest.raises(gridrpc.TooFewCores, match="asks for 6 cores"):
        grid.submit(grid.function("ranks/nothing"), ranks=3, cores=2)


def test_what_runs_in_one_process_has_no_ranks(grid: Grid) -> None:
    assert grid.function("ranks/alone")()[0] == 1
    with pytest.raises(TypeError, match=r"ranks/alone runs in one process.*Backend \"MPI\""):
        grid.function("ranks/alone", ranks=2)
    with pytest.raises(TypeError, match="ranks/alone runs in one process"):
        grid.submit(grid.function("ranks/alone"), ranks=2)
    with pytest.raises(ValueError, match="`ranks` is"):
        grid.function("ranks/sum", ranks=-1)


@pytest.mark.parametrize(
    ("how", "status"), [(0, 7), (1, 128 + signal.SIGKILL), (2, 128 + signal.SIGSEGV), (3, 3)]
)
def test_ranks_that_end_are_lost_and_started_again(grid: Grid, how: int, status: int) -> None:
    with pytest.raises(
        gridrpc.RanksLost, match="2 ranks were lost that ran ranks/end_badly"
    ) as lost:
        called(grid, "end_badly", how)
    assert "the last words of rank 1" in lost.value.stderr
    assert "the last words of rank 1" in str(lost.value)
    assert (lost.value.status, lost.value.signal) == (status, None)
    assert lost.value.host == os.uname().nodename
    assert until(lambda: not psutil.pid_exists(lost.value.pid or 0))
    assert called(grid, "sum", np.ones(4))[0][0] == 4


def test_a_cancelled_function_may_return_early(grid: Grid, tmp_path: Path) -> None:
    before = processes()
    call = grid.function("ranks/wait", ranks=2).submit(str(tmp_path / "started"), 1)
    assert until((tmp_path / "started").exists)
    ranks = [process for process in processes() if process not in before] or before
    assert call.cancel()
    # This takes the places of all workers: the function has left its own.
    assert grid.submit(grid.function("ranks/alone"), cores=4).result(LONG)[0] == 1
    assert all(process.is_running() for process in ranks)


@pytest.mark.parametrize("how", ["cancel", "deadline", "kill"])
def test_a_lost_worker_leaves_no_rank_behind(module: Path, tmp_path: Path, how: str) -> None:
    others = processes()
    with opened(workers=2, worker="native", modules=[module], grace=0.2) as grid:
        deadline = 5.0 if how == "deadline" else None
        function = grid.function("ranks/wait", ranks=2)
        call = function.submit(str(tmp_path / "started"), 0, deadline=deadline)
        assert until((tmp_path / "started").exists)
        ranks = [process for process in processes() if process not in others]
        assert [process.name() for process in ranks] == ["mpirun", "gridrpc", "gridrpc"]
        if how == "cancel":
            assert call.cancel()
        elif how == "kill":
            parent = ranks[0].parent()
            assert parent is not None
            parent.kill()
        expected: dict[str, type[BaseException]] = {
            "cancel": gridrpc.CallCancelled,
            "deadline": gridrpc.DeadlineExceeded,
            "kill": gridrpc.WorkerLost,
        }
        with pytest.raises(expected[how]):
            call.result(LONG)
        assert until(lambda: not any(process.is_running() for process in ranks))
        assert called(grid, "sum", np.ones(4))[0][0] == 4
        ranks = [process for process in processes() if process not in others]
        assert len(ranks) == 3
    assert until(lambda: not any(process.is_running() for process in ranks))


def test_ranks_are_on_the_host_of_their_worker(module: Path) -> None:
    with opened(servers=["local:?workers=2"], worker="native", modules=[module]) as grid:
        x = np.ones(200_000)
        assert called(grid, "sum", x)[0][0] == 200_000
        called(grid, "scale", 2.0, x)
        assert (x == 2).all()
        with pytest.raises(gridrpc.RanksLost) as lost:
            called(grid, "end_badly", 0)
        assert lost.value.status == 7


def test_what_is_missing_is_reported(module: Path, tmp_path: Path) -> None:
    missing = {"workers": 2, "worker": "native", "modules": [module]}
    with opened(**missing, mpirun="no-such-mpirun --quiet") as grid:
        with pytest.raises(gridrpc.RanksLost, match="`no-such-mpirun` is not there: install"):
            called(grid, "nothing")
        assert grid.function("ranks/alone")()[0] == 1
    script = tmp_path / "mpirun"
    script.write_text("#!/bin/sh\necho of no use >&2\nexit 9\n")
    script.chmod(0o755)
    with opened(**missing, mpirun=str(script)) as grid:
        with pytest.raises(gridrpc.RanksLost, match=r"could not be started.*status 9") as lost:
            called(grid, "nothing")
        assert (lost.value.status, lost.value.stderr) == (9, "of no use\n")


def test_a_compiler_that_is_missing_is_reported(tmp_path: Path) -> None:
    (tmp_path / "m.idl").write_text('Module m; Define f() Backend "MPI" { }')
    done = subprocess.run(
        [PROGRAM, "compile", "m.idl"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "could not run `mpicc`" in done.stderr
    assert "hint: install Open MPI" in done.stderr


def test_what_cannot_run_on_ranks_is_refused(tmp_path: Path) -> None:
    source = """Module m;
    Define f(done()) Backend "MPI" { done(); }
    DefClass C Backend "MPI" { DefMethod g() { } }"""
    (tmp_path / "m.idl").write_text(source)
    done = subprocess.run(
        [PROGRAM, "compile", "m.idl"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "error: `f` has callbacks" in done.stderr
    assert "error: `C.g` is a method of a class" in done.stderr


FORTRAN = """
subroutine total(n, x, result)
    use mpi
    implicit none
    integer, intent(in) :: n
    double precision, intent(in) :: x(n)
    double precision, intent(out) :: result(1)
    double precision :: own
    integer :: rank, ranks, error
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    own = sum(x(rank + 1:n:ranks))
    call MPI_Reduce(own, result, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
end subroutine
"""


def test_functions_may_be_of_fortran(tmp_path: Path) -> None:
    (tmp_path / "total.f90").write_text(FORTRAN)
    (tmp_path / "fortran.idl").write_text("""Module fortran;
    Define total(IN int n, broadcast IN double x[n], OUT double result[1]) Backend "MPI"
    Required "total.o" Calls "Fortran" total(n, x, result);""")
    for command in (
        ["mpifort", "-fPIC", "-c", "total.f90"],
        [PROGRAM, "compile", "fortran.idl"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, timeout=LONG)
    with opened(workers=2, worker="native", modules=[tmp_path / "fortran.so"]) as grid:
        assert grid.function("fortran/total", ranks=2)(np.arange(10.0))[0] == 45


def test_functions_may_be_of_cpp(compile_idl: CompileIdl) -> None:
    module = compile_idl("""Module cpp; Globals {
        #include <mpi.h>
        #include <vector>
    }
    Define size(OUT int *n) Backend "MPI" Language "C++" {
        std::vector<int> one(1, 1), all(1);
        MPI_Reduce(one.data(), all.data(), 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        if (n) *n = all[0];
    }""")
    with opened(workers=2, modules=[module]) as grid:
        assert grid.function("cpp/size", ranks=2)()[0] == 2


def test_an_exception_on_a_rank_is_an_error_of_the_call(compile_idl: CompileIdl) -> None:
    module = compile_idl("""Module thrown; Globals {
        #include <mpi.h>
        #include <stdexcept>
    }
    Define fails(IN int bad, OUT int *n) Backend "MPI" Language "C++" {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == bad) throw std::runtime_error("no convergence");
        if (n) *n = rank;
    }""")
    with opened(workers=2, modules=[module]) as grid:
        fails = grid.function("thrown/fails", ranks=2)
        with pytest.raises(gridrpc.RemoteError) as raised:
            fails(1)
        assert raised.value.type_name == "std::runtime_error"
        assert str(raised.value).endswith("no convergence (on rank 1)")
        assert fails(7)[0] == 0
