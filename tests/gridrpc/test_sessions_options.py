"""Maps of sessions have the options of `Grid.map`."""

from __future__ import annotations

import collections
import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gridrpc
from grids import PROGRAM
from noting import noted
from processes import LONG, environment, run_script
from sessions import at, command, ran

GRID = """
[server.here]
launcher = "local"
workers = 3
memory = "3 GB"
resources = { gpu = 1 }
"""

needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None or importlib.util.find_spec("mpi4py") is None,
    reason="there is no mpirun: `make mpi` installs it",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A session, `options`, with three workers that have a GPU among them."""
    folder = tmp_path_factory.mktemp("options")
    (folder / "grid.toml").write_text(GRID)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        command("start", "options", "--config", "grid.toml", cwd=folder)
        yield folder
        command("stop", "options", "--forget", cwd=folder)


@pytest.fixture
def grid(session: Path) -> Iterator[gridrpc.AttachedGrid]:
    assert session.is_dir()
    with gridrpc.attach("options") as grid:
        yield grid
        for key in grid.maps:
            grid.forget(key)


def alone(folder: str, item: int) -> int:
    """Raises FileExistsError if another call runs at the same time."""
    noted(folder, item)
    lock = Path(folder, "lock")
    os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
    for _ in range(2000):  # the others have every chance
        os.sched_yield()
    lock.unlink()
    return item


@pytest.mark.parametrize(
    "needs",
    [{"cores": 3}, {"memory": "2 GB"}, {"resources": {"gpu": 1}}],
    ids=["cores", "memory", "resources"],
)
def test_calls_get_what_they_ask_for(
    grid: gridrpc.AttachedGrid, tmp_path: Path, needs: dict[str, Any]
) -> None:
    assert list(grid.map("work", alone, *at(tmp_path, range(40)), **needs)) == list(range(40))


def test_needs_that_nobody_has_stop_the_map_until_others_are_given(
    grid: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    with pytest.raises(gridrpc.GridError, match="gpu"):
        list(grid.map("work", noted, *at(tmp_path, range(5)), resources={"gpu": 2}))
    again = grid.map("work", noted, *at(tmp_path, range(5)), resources={"gpu": 1}, expected=1.0)
    assert list(again) == [0, 10, 20, 30, 40]
    assert sorted(ran(tmp_path)) == list(range(5))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"cores": 0}, ValueError, "`cores` is 0"),
        ({"memory": "much"}, ValueError, "`memory` is 'much'"),
        ({"resources": ["gpu"]}, ValueError, "`resources` is"),
        ({"expected": -1}, ValueError, "`expected` is -1"),
        ({"ranks": -1}, ValueError, "`ranks` is -1"),
        ({"cores": 2, "chunk": 5}, ValueError, "chunk is 5: calls that ask for cores"),
        ({"ranks": 2, "chunk": 5}, ValueError, "chunk is 5: calls that ask for cores"),
        ({"chunk": 0}, ValueError, "chunk is 0"),
        ({"retries": -1}, ValueError, "`retries` is -1"),
        ({"retry_on": "OSError"}, TypeError, "`retry_on` has 'OSError'"),
        ({"backoff": -1.0}, ValueError, "`backoff` is -1.0"),
    ],
)
def test_invalid_options_are_reported_before_anything_is_sent(
    grid: gridrpc.AttachedGrid, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        grid.submit("work", abs, range(5), **options)
    assert dict(grid.maps) == {}


class Flaky(Exception):
    """An error of this module, which the process of the session does not have."""


def flaky(folder: str, item: int) -> int:
    """Raises an error at the first two attempts of each item."""
    noted(folder, item)
    if ran(Path(folder)).count(item) <= 2:
        raise Flaky(item)
    return item


def test_calls_are_tried_again(grid: gridrpc.AttachedGrid, tmp_path: Path) -> None:
    results = grid.map("work", flaky, *at(tmp_path, [1, 2]), retries=2, retry_on=(OSError, Flaky))
    assert list(results) == [1, 2]
    assert collections.Counter(ran(tmp_path)) == {1: 3, 2: 3}


def test_the_last_error_says_how_many_attempts_there_were(
    grid: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    results = grid.map("work", flaky, *at(tmp_path, [7]), retries=1, backoff=0.001)
    with pytest.raises(Flaky, match="7") as caught:
        next(results)
    assert "gridrpc: the last of 2 attempts" in caught.value.__notes__
    assert "in flaky" in str(caught.value.__cause__)
    assert ran(tmp_path) == [7, 7]


def test_other_errors_are_reported_at_once(grid: gridrpc.AttachedGrid, tmp_path: Path) -> None:
    with pytest.raises(Flaky) as caught:
        next(grid.map("work", flaky, *at(tmp_path, [7]), retries=5, retry_on=OSError))
    assert not [note for note in caught.value.__notes__ if "attempts" in note]
    assert ran(tmp_path) == [7]
    # Other retries hold for what has no result yet.
    again = grid.map("work", flaky, *at(tmp_path, [7]), retries=5, retry_on=Flaky)
    assert list(again) == [7]
    assert ran(tmp_path) == [7, 7, 7]


def test_errors_of_the_main_program_are_tried_again(
    session: Path, grid: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    assert dict(grid.maps) == {}, session
    source = """
        import os
        import gridrpc, noting, sessions
        from pathlib import Path

        class Wrong(Exception):
            pass

        def work(folder, item):
            noting.noted(folder, item)
            if len(sessions.ran(Path(folder))) < 3:
                raise Wrong(item)
            return item

        with gridrpc.attach("options") as grid:
            print(*grid.map("work", work, [os.getcwd()], [4], retries=2, retry_on=Wrong))
    """
    assert run_script(tmp_path, source).stdout == "4\n"
    assert ran(tmp_path) == [4, 4, 4]


def rank_and_item(folder: str, item: int) -> tuple[int, int]:
    """The number of ranks, and the item. Rank 1 raises an error when it is there first."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 1:
        noted(folder, item)
        if ran(Path(folder)).count(item) == 1:
            raise Flaky(item)
    return comm.allreduce(1), item


@needs_mpi
def test_calls_run_on_ranks_which_are_tried_again_together(
    grid: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    results = grid.map(
        "work", rank_and_item, *at(tmp_path, [5, 6]), ranks=2, retries=1, retry_on=Flaky
    )
    assert list(results) == [(2, 5), (2, 6)]
    assert collections.Counter(ran(tmp_path)) == {5: 2, 6: 2}


@needs_mpi
def test_an_error_says_which_rank_has_raised_it(grid: gridrpc.AttachedGrid, tmp_path: Path) -> None:
    with pytest.raises(Flaky) as caught:
        next(grid.map("work", rank_and_item, *at(tmp_path, [5]), ranks=2))
    assert caught.value.__notes__[0] == "gridrpc: on rank 1 of 2"
    assert len(caught.value.__notes__) == 2


def test_output_whose_reader_has_gone(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [PROGRAM, "session", "list"], cwd=tmp_path, env=environment(), stdout=writer,
            stderr=subprocess.PIPE, text=True, timeout=LONG, check=False,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, "")
