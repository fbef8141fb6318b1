"""Calls in a new working directory, and in a new process."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from gridrpc import Grid, WorkerLost, in_scratch_folder
from grids import CompileIdl, opened
from processes import LONG

IDL = """
Module kept;
Globals { static double stored = 0; }
Define add(IN double x, OUT double total[1]) { stored += x; total[0] = stored; }
"""


def look(*args: Any, **kwargs: Any) -> tuple[str, dict[str, str]]:
    """The working directory and the files in it."""
    files = {str(path): path.read_text() for path in Path().rglob("*") if path.is_file()}
    Path("output").write_text(repr((args, kwargs)))
    return os.getcwd(), files


def parameters(name: str, steps: int = 1) -> dict[str, str | bytes]:
    return {"in/model.nml": f"{name} {steps}", "raw": b"\x31"}


def test_each_call_has_its_own_folder(grid: Grid, tmp_path: Path) -> None:
    before = grid.submit(os.getcwd).result(LONG)
    call = in_scratch_folder(look, parameters, parent=tmp_path)
    made = [grid.submit(call, "a", steps=2), grid.submit(call, "b"), grid.submit(call, "c")]
    folders, files = zip(*[one.result(LONG) for one in made], strict=True)
    assert len(set(folders)) == 3
    assert {str(Path(folder).parent) for folder in folders} == {str(tmp_path)}
    assert files[0] == {"in/model.nml": "a 2", "raw": "1"}
    assert files[1] == {"in/model.nml": "b 1", "raw": "1"}
    assert list(tmp_path.iterdir()) == []
    assert grid.submit(os.getcwd).result(LONG) == before


def test_maps_and_chunks(grid: Grid, tmp_path: Path) -> None:
    call = in_scratch_folder(look, {"a": "b"}, parent=tmp_path)
    results = list(grid.map(call, range(100), chunk=10))
    assert [files for _, files in results] == [{"a": "b"}] * 100
    assert len({folder for folder, _ in results}) == 100
    assert list(tmp_path.iterdir()) == []


def fails() -> None:
    Path("trace").write_text("why")
    raise ValueError("no")


@pytest.mark.parametrize(("keep", "stays"), [("never", False), ("failed", True), ("always", True)])
def test_what_is_left_of_a_call_that_fails(
    grid: Grid, tmp_path: Path, keep: Any, stays: bool
) -> None:
    error = grid.submit(in_scratch_folder(fails, parent=tmp_path, keep=keep)).exception(LONG)
    assert isinstance(error, ValueError)
    left = list(tmp_path.iterdir())
    assert [(path / "trace").read_text() for path in left] == ["why"] * stays
    assert [str(left[0]) in str(error.__cause__) if stays else True] == [True]


@pytest.mark.parametrize(("keep", "stays"), [("never", 0), ("failed", 0), ("always", 1)])
def test_what_is_left_of_a_call_that_returns(
    grid: Grid, tmp_path: Path, keep: Any, stays: int
) -> None:
    grid.submit(in_scratch_folder(look, parent=tmp_path, keep=keep)).result(LONG)
    assert len(list(tmp_path.iterdir())) == stays


def test_the_folder_of_a_killed_worker_is_removed_later(tmp_path: Path) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with opened(workers=1) as grid:
        with pytest.raises(WorkerLost):
            grid.submit(in_scratch_folder(die, parent=tmp_path)).result(LONG)
        (left,) = tmp_path.iterdir()
        # That of a call that runs, in any process, and those that are kept, stay.
        runs, stored = tmp_path / "gridrpc-scratch-runs", tmp_path / "gridrpc-kept-x"
        runs.mkdir()
        stored.mkdir()
        lock = os.open(runs, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            grid.submit(in_scratch_folder(look, parent=tmp_path)).result(LONG)
            assert sorted(tmp_path.iterdir()) == sorted([runs, stored])
        finally:
            os.close(lock)
        assert not left.exists()


@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a/../../x", ".", "a\0b"], ids=repr)
def test_files_lie_below_the_folder(grid: Grid, tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no name of a file"):
        in_scratch_folder(look, {name: "x"})
    call = grid.submit(in_scratch_folder(look, lambda: {name: "x"}, parent=tmp_path))
    assert isinstance(call.exception(LONG), ValueError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("function", "files", "keep", "error"),
    [
        (5, None, "never", TypeError),
        (look, {"a": 1}, "never", TypeError),
        (look, {1: "a"}, "never", TypeError),
        (look, ["a"], "never", TypeError),
        (look, None, "sometimes", ValueError),
    ],
)
def test_what_makes_no_sense_is_refused(function: Any, files: Any, keep: Any, error: Any) -> None:
    with pytest.raises(error):
        in_scratch_folder(function, files, keep=keep)


def test_a_parent_that_is_absent_is_an_error(grid: Grid, tmp_path: Path) -> None:
    call = grid.submit(in_scratch_folder(look, parent=tmp_path / "no"))
    assert isinstance(call.exception(LONG), FileNotFoundError)
    assert isinstance(grid.submit(os.getcwd).result(LONG), str)


def counted() -> tuple[int, int]:
    """The process, and how many calls it has had."""
    counted.calls += 1  # type: ignore[attr-defined]
    return os.getpid(), counted.calls  # type: ignore[attr-defined]


counted.calls = 0  # type: ignore[attr-defined]


def test_each_item_has_a_new_process() -> None:
    with opened(workers=2, max_tasks_per_child=1) as grid:
        results = list(grid.starmap(counted, [()] * 12))
    assert [calls for _, calls in results] == [1] * 12
    assert len({pid for pid, _ in results}) == 12


@pytest.mark.parametrize("worker", ["python", "native"])
def test_each_item_of_a_module_has_a_new_process(compile_idl: CompileIdl, worker: Any) -> None:
    modules = [compile_idl(IDL)]
    with opened(workers=1, worker=worker, modules=modules, max_tasks_per_child=1) as grid:
        add = grid.function("kept/add")
        assert [total[0] for total in grid.map(add, [1.0, 2.0, 3.0, 4.0])] == [1, 2, 3, 4]
    with opened(workers=1, worker=worker, modules=modules) as grid:
        add = grid.function("kept/add")
        assert [total[0] for total in grid.map(add, [1.0, 2.0, 3.0, 4.0])] == [1, 3, 6, 10]
