"""Functions on ranks of MPI: Open MPI starts them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import gridrpc
from gridrpc import Grid
from grids import opened
from processes import LONG, until

pytest.importorskip("mpi4py")
if shutil.which("mpirun") is None:
    pytest.skip("there is no mpirun: `make mpi` installs it", allow_module_level=True)


@pytest.fixture(scope="module")
def grid() -> Iterator[Grid]:
    with opened(workers=3) as grid:
        grid.wait_until_ready(LONG)
        yield grid


def where(text: str = "") -> list[tuple[int, int, int, str]]:
    """Rank, number of ranks, and process of each."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    everywhere = comm.gather((comm.rank, comm.size, os.getpid(), text))
    return everywhere if comm.rank == 0 else []


def total(values: Any) -> Any:
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    own = np.asarray(values)[comm.rank :: comm.size].sum()
    return comm.allreduce(own)


def fail_on(rank: int) -> None:
    """Raises an error on one rank, while the others wait for it."""
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == rank:
        raise KeyError(f"of rank {rank}")
    MPI.COMM_WORLD.Barrier()


def abort(how: str) -> None:
    import sys

    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 1:
        print("the last words of rank 1", file=sys.stderr, flush=True)
        if how == "abort":
            MPI.COMM_WORLD.Abort(7)
        os.kill(os.getpid(), signal.SIGKILL)
    MPI.COMM_WORLD.Barrier()


def test_a_function_runs_on_ranks_which_stay(grid: Grid) -> None:
    first = grid.submit(where, text="a", ranks=2).result(LONG)
    assert [(rank, size, text) for rank, size, _, text in first] == [(0, 2, "a"), (1, 2, "a")]
    again = grid.submit(where, "b", ranks=2).result(LONG)
    # The same worker is given the next call, and has them still.
    assert [pid for _, _, pid, _ in again] == [pid for _, _, pid, _ in first]
    more = grid.submit(where, ranks=3).result(LONG)
    assert [size for _, size, _, _ in more] == [3, 3, 3]
    assert not {pid for _, _, pid, _ in more} & {pid for _, _, pid, _ in first}


def test_ranks_run_nothing_of_the_current_folder(tmp_path: Path) -> None:
    for name in ("contextlib", "json", "queue"):
        (tmp_path / f"{name}.py").write_text(f"open('ran-{name}', 'a').close()\n1/0\n")
    code = """
import gridrpc
with gridrpc.Grid(workers=2) as grid:
    print(grid.submit(abs, -1, ranks=2).result(60))
"""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path, capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr
    assert not list(tmp_path.glob("ran-*"))


def test_ranks_are_on_the_host_of_their_worker() -> None:
    with opened(servers=["local:?workers=2"]) as grid:
        ranks = grid.submit(where, ranks=2).result(LONG)
        assert [rank for rank, _, _, _ in ranks] == [0, 1]
        with pytest.raises(gridrpc.RanksLost):
            grid.submit(abort, "abort", ranks=2).result(LONG)


def test_arguments_go_to_all_ranks_and_the_result_comes_from_the_first(grid: Grid) -> None:
    import numpy as np

    values = np.arange(300_000)
    assert grid.submit(total, values, ranks=2).result(LONG) == values.sum()
    offset = 5
    call = grid.submit(lambda x: total(x) + offset, [1, 2, 3], ranks=2)
    assert call.result(LONG) == 11


def test_maps_run_on_ranks(grid: Grid) -> None:
    values = [[*range(n)] for n in range(1, 6)]
    sums = [sum(one) for one in values]
    assert list(grid.map(total, values, ranks=2, timeout=LONG)) == sums
    assert list(grid.starmap(total, [(one,) for one in values], ranks=2, timeout=LONG)) == sums
    sizes = grid.map(where, "ab", ranks=3, timeout=LONG, return_exceptions=True)
    assert [[(size, text) for _, size, _, text in one] for one in sizes] == [
        [(3, "a")] * 3,
        [(3, "b")] * 3,
    ]
    with pytest.raises(ValueError, match="ranks or an expected time take one item"):
        grid.map(total, values, ranks=2, chunk=5)
    with pytest.raises(gridrpc.TooFewCores, match="asks for 4 cores"):
        list(grid.map(total, values, ranks=2, cores=2))


def fail_at_first(place: str) -> int:
    """Raises an error on all ranks the first time that it is called."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    is_first = not Path(place).exists()
    comm.Barrier()
    if comm.rank == 0:
        Path(place).touch()
    if is_first:
        raise OSError("not yet")
    return comm.size


def test_maps_on_ranks_try_again_and_keep_what_they_have(grid: Grid, tmp_path: Path) -> None:
    place, journal = str(tmp_path / "called"), tmp_path / "journal"
    (size,) = grid.map(fail_at_first, [place], ranks=2, retries=1, journal=journal, timeout=LONG)
    assert size == 2
    Path(place).unlink()
    # From the journal: called again, it would fail.
    assert list(grid.map(fail_at_first, [place], ranks=2, journal=journal, timeout=LONG)) == [2]


def test_ranks_take_places(grid: Grid) -> None:
    with pytest.raises(gridrpc.TooFewCores, match="asks for 4 cores"):
        grid.submit(where, ranks=4)
    with pytest.raises(gridrpc.TooFewCores, match="asks for 4 cores"):
        grid.submit(where, ranks=2, cores=2)


@pytest.mark.parametrize("rank", [0, 1])
def test_an_error_of_a_rank_is_raised_also_if_others_wait(grid: Grid, rank: int) -> None:
    with pytest.raises(KeyError, match=f"of rank {rank}") as raised:
        grid.submit(fail_on, rank, ranks=2).result(LONG)
    notes = "\n".join(raised.value.__notes__)
    assert f"gridrpc: on rank {rank} of 2" in notes
    assert "in fail_on" in notes
    assert len(grid.submit(where, ranks=2).result(LONG)) == 2


@pytest.mark.parametrize("how", ["abort", "kill"])
def test_ranks_that_end_are_lost_and_started_again(grid: Grid, how: str) -> None:
    with pytest.raises(gridrpc.RanksLost, match="2 ranks were lost that ran abort") as lost:
        grid.submit(abort, how, ranks=2).result(LONG)
    assert "the last words of rank 1" in lost.value.stderr
    assert lost.value.status == (7 if how == "abort" else 137)
    assert isinstance(lost.value, gridrpc.WorkerLost)
    assert len(grid.submit(where, ranks=2).result(LONG)) == 2


def test_ranks_end_with_their_worker() -> None:
    with opened(workers=2) as grid:
        ranks = [pid for _, _, pid, _ in grid.submit(where, ranks=2).result(LONG)]
        processes = [psutil.Process(pid) for pid in ranks]
        worker = processes[0].parents()[1]
        worker.kill()
        until(lambda: not any(process.is_running() for process in processes))
        second = grid.submit(where, ranks=2).result(LONG)
        processes = [psutil.Process(pid) for _, _, pid, _ in second]
    until(lambda: not any(process.is_running() for process in processes))


def test_what_is_missing_is_reported(tmp_path: Path) -> None:
    with opened(workers=2, mpirun="no-such-mpirun --quiet") as grid:
        with pytest.raises(
            FileNotFoundError, match="`no-such-mpirun`, which starts ranks, is not there"
        ):
            grid.submit(where, ranks=2).result(LONG)
        assert grid.submit(abs, -1).result(LONG) == 1
    script = tmp_path / "mpirun"
    script.write_text("#!/bin/sh\necho of no use >&2\nexit 9\n")
    script.chmod(0o755)
    with opened(workers=2, mpirun=str(script)) as grid:
        with pytest.raises(gridrpc.RanksLost, match=r"could not be started.*status 9") as lost:
            grid.submit(where, ranks=2).result(LONG)
        assert lost.value.stderr == "of no use\n"


@pytest.mark.parametrize("wrong", [-1, 1.5, "two", True])
def test_what_is_no_number_of_ranks_is_refused(grid: Grid, wrong: Any) -> None:
    with pytest.raises(ValueError, match="`ranks` is"):
        grid.submit(abs, -1, ranks=wrong)
