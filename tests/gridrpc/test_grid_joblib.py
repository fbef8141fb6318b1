"""joblib and scikit-learn on a grid."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from pickle import loads
from typing import Any

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed

import gridrpc.joblib  # registers the backend
import remote
from gridrpc import Grid
from gridrpc._memmap import ByFile
from gridrpc._pickling import dumps
from processes import descendants, run_script, running, until


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    gridrpc.joblib.close_idle()


def test_parallel_with_a_generator() -> None:
    with joblib.parallel_config("gridrpc", n_jobs=2):
        results = Parallel()(delayed(remote.add)(n, 1) for n in range(100))
    assert results == list(range(1, 101))


def workers(**options: Any) -> set[int]:
    tasks = (delayed(remote.pid)() for _ in range(20))
    return set(Parallel(2, backend="gridrpc", batch_size=1, **options)(tasks))


def test_the_next_parallel_finds_the_workers_of_the_last() -> None:
    first = workers()
    left = descendants()
    assert first <= left
    assert workers() <= left
    assert descendants() == left, "no second grid has been started"


def test_other_options_mean_another_grid_in_the_place_of_the_idle_one() -> None:
    first = workers()
    second = workers(retries=5)
    assert first.isdisjoint(second)
    assert until(lambda: not running(first))


def test_an_idle_grid_is_closed() -> None:
    found = workers(idle_worker_timeout=0.2, retries=7)
    assert until(lambda: not running(found))


def test_an_idle_grid_is_closed_on_request() -> None:
    found = workers(retries=6)
    gridrpc.joblib.close_idle()
    assert not running(found)
    gridrpc.joblib.close_idle()  # there is none
    assert found.isdisjoint(workers(retries=6))


def test_an_idle_grid_without_a_thread_to_close_it_is_closed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Timer, "start", refuse)
    assert not running(workers(retries=8))


def test_two_users_of_one_grid() -> None:
    inner: set[int] = set()
    with Parallel(2, backend="gridrpc", batch_size=1) as outer:
        first = set(outer(delayed(remote.pid)() for _ in range(20)))
        inner = workers()
        assert set(outer(delayed(remote.pid)() for _ in range(20))) <= descendants()
    assert running(first | inner) == first | inner


def test_the_loss_of_a_worker_tells_which_tasks_it_ran() -> None:
    with Grid(workers=2) as grid, pytest.raises(gridrpc.WorkerLost) as lost:
        Parallel(-1, backend="gridrpc", grid=grid)(delayed(remote.die)("exit") for _ in range(1))
    assert lost.value.__notes__ == ["it ran a batch of 1 tasks of joblib: die"]


def write(out: Any, index: Any) -> str:
    out[index] = out[index] + 1
    return type(out).__name__


def test_arrays_in_files_are_written_by_tasks(tmp_path: Path) -> None:
    file = tmp_path / "out"
    out = np.memmap(file, "f8", "w+", offset=4104, shape=(30, 4))
    views = [out, out[3:], out.T, out[::-1], out[::2, 1::2], np.asarray(out)[5]]
    expected = np.zeros((30, 4))
    for view in (expected, expected[3:], expected.T, expected[::-1], expected[::2, 1::2]):
        view[1] += 1
    expected[5][1] += 1
    kinds = Parallel(2, backend="gridrpc")(delayed(write)(view, 1) for view in views)
    assert set(kinds) == {"memmap"}
    np.testing.assert_array_equal(out, expected)
    held = Parallel(2, backend="gridrpc")(delayed(write_held)({"out": [out]}, n) for n in range(30))
    assert held == [None] * 30
    np.testing.assert_array_equal(out, expected + np.arange(30.0)[:, None])
    private = np.memmap(file, "f8", "c", offset=4104, shape=(30, 4))
    private[0] = -1
    totals = Parallel(2, backend="gridrpc")(delayed(np.sum)(private[0]) for _ in range(2))
    assert totals == [-4, -4]
    readable = np.memmap(file, "f8", "r", offset=4104, shape=(30, 4))
    sums = Parallel(2, backend="gridrpc")(delayed(np.sum)(row) for row in readable)
    np.testing.assert_array_equal(sums, out.sum(axis=1))


def test_arrays_in_files_and_other_hosts(tmp_path: Path) -> None:
    out = np.memmap(tmp_path / "out", "f8", "w+", shape=3)
    with pytest.raises(ValueError, match="/out, which workers on other hosts cannot write to"):
        dumps(ByFile([out], elsewhere=True))
    readable = np.memmap(tmp_path / "out", "f8", "r")
    head, buffers = dumps(ByFile([readable], elsewhere=True))
    assert loads(head, buffers=buffers)[0].sum() == 0
    assert bytes(tmp_path) not in head


def write_held(held: dict[str, list[Any]], row: int) -> None:
    held["out"][0][row] += row


def test_arrays_in_files_of_the_main_program(tmp_path: Path) -> None:
    script = """
        import numpy as np
        from joblib import Parallel, delayed
        import gridrpc.joblib
        def work(out, i):
            out[i] = i + 1
        if __name__ == "__main__":
            out = np.memmap("out.mm", "f8", "w+", shape=20)
            Parallel(2, backend="gridrpc")(delayed(work)(out, i) for i in range(20))
            print(out.sum())
    """
    ran = run_script(tmp_path, script)
    assert (ran.stdout, ran.stderr) == ("210.0\n", "")


def test_inner_threads() -> None:
    with joblib.parallel_config("gridrpc", n_jobs=2, inner_max_num_threads=3):
        found = Parallel()(delayed(os.getenv)("OPENBLAS_NUM_THREADS") for _ in range(2))
    assert found == ["3", "3"]


@pytest.mark.parametrize("options", [{"nonsense": 3}, {"n_workers": 2}])
def test_unknown_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"has no option '{next(iter(options))}'"):
        workers(**options)
    with pytest.raises(TypeError, match="has no option"):
        joblib.parallel_config("gridrpc", n_jobs=2, **options)


def test_options_that_an_open_grid_cannot_heed_are_refused(own_grid: Grid) -> None:
    with pytest.raises(TypeError, match="'preload' has no effect on a grid that is open"):
        workers(grid=own_grid, preload=["math"])


@pytest.mark.parametrize(("jobs", "expected"), [(-1, 2), (-2, 1), (1, 1), (10, 2)])
def test_jobs_of_an_open_grid_are_its_workers(own_grid: Grid, jobs: int, expected: int) -> None:
    with joblib.parallel_config("gridrpc", grid=own_grid):
        assert joblib.effective_n_jobs(jobs) == expected


def test_the_backend_by_name() -> None:
    assert Parallel(n_jobs=2, backend="gridrpc")(delayed(abs)(-n) for n in range(5)) == [*range(5)]


def test_a_grid_as_an_argument_of_parallel(own_grid: Grid) -> None:
    own_grid.wait_until_ready(60)
    before = descendants()
    assert workers(grid=own_grid) <= before
    assert descendants() == before, "no other grid has been opened"


def test_on_an_open_grid(own_grid: Grid) -> None:
    with joblib.parallel_config("gridrpc", grid=own_grid):
        pids = Parallel(batch_size=1)(delayed(remote.nap)(0.01, n) for n in range(20))
        workers = set(Parallel(batch_size=1)(delayed(remote.pid)() for _ in range(20)))
    assert pids == list(range(20))
    assert workers <= descendants()
    assert own_grid.submit(remote.add, 1, 1).result(60) == 2


def test_results_as_a_generator(own_grid: Grid) -> None:
    with joblib.parallel_config("gridrpc", n_jobs=2, grid=own_grid):
        ordered = Parallel(return_as="generator")(delayed(abs)(-n) for n in range(20))
        assert list(ordered) == list(range(20))
        anyhow = Parallel(return_as="generator_unordered")(delayed(abs)(-n) for n in range(20))
        assert sorted(anyhow) == list(range(20))


def test_an_error_in_a_task(own_grid: Grid) -> None:
    with joblib.parallel_config("gridrpc", n_jobs=2, grid=own_grid):
        with pytest.raises(ValueError, match="item 7"):
            Parallel()(delayed(remote.fail_at)(7, n) for n in range(50))
        assert Parallel()(delayed(abs)(-n) for n in range(3)) == [0, 1, 2]


def test_a_worker_lost_in_a_task(own_grid: Grid) -> None:
    with joblib.parallel_config("gridrpc", n_jobs=2, grid=own_grid):
        with pytest.raises(gridrpc.WorkerLost):
            Parallel()(delayed(remote.die)("exit") for _ in range(2))
        assert Parallel()(delayed(abs)(-n) for n in range(3)) == [0, 1, 2]


def inner(n: int) -> int:
    return sum(Parallel(n_jobs=2)(delayed(abs)(-k) for k in range(n)))


def test_nested(own_grid: Grid) -> None:
    with joblib.parallel_config("gridrpc", n_jobs=2, grid=own_grid):
        assert Parallel()(delayed(inner)(n) for n in range(6)) == [0, 0, 1, 3, 6, 10]


def test_cross_validation_is_as_without(tmp_path: Path) -> None:
    # A process of its own: grids of clients that have scikit-learn loaded start slowly.
    source = """
        import joblib, numpy as np
        import gridrpc.joblib
        from sklearn.datasets import make_classification
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.model_selection import cross_val_score

        x, y = make_classification(400, 10, random_state=1)
        model = RandomForestClassifier(10, random_state=2)
        expected = cross_val_score(model, x, y, cv=5)
        with joblib.parallel_config("gridrpc", n_jobs=2):
            found = cross_val_score(model, x, y, cv=5)
        np.testing.assert_array_equal(found, expected)
        print("equal")
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "equal\n", "")
