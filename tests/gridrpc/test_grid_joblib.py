"""joblib and scikit-learn on a grid."""

from __future__ import annotations

from pathlib import Path

import joblib
import pytest
from joblib import Parallel, delayed

import gridrpc.joblib  # registers the backend
import remote
from gridrpc import Grid
from processes import descendants, run_script


def test_parallel_with_a_generator() -> None:
    before = descendants()
    with joblib.parallel_config("gridrpc", n_jobs=2):
        results = Parallel()(delayed(remote.add)(n, 1) for n in range(100))
    assert results == list(range(1, 101))
    assert descendants() == before


def test_the_backend_by_name() -> None:
    assert Parallel(n_jobs=2, backend="gridrpc")(delayed(abs)(-n) for n in range(5)) == [*range(5)]


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
