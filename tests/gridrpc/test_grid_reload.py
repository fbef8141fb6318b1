"""Modules that are edited while a grid is open."""

from __future__ import annotations

import importlib
import itertools
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gridrpc
from gridrpc import CapturedStateWarning, Grid
from grids import opened


class _Module:
    """A module of a test of its own, in a folder that workers look in."""

    numbers = itertools.count()

    def __init__(self, folder: Path) -> None:
        self.name = f"edited_{next(self.numbers)}"
        self.file = folder / f"{self.name}.py"
        self.length = 1
        self.write(1)
        self.module: ModuleType = importlib.import_module(self.name)

    def write(self, value: int) -> None:
        """Edits that are as long as the one before, within a second, are not seen by Python."""
        self.length += 1
        text = f"import os\ndef value(): return {value}\ndef pid(): return {value}, os.getpid()\n"
        self.file.write_text(text + "#" * self.length)


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Module]:
    monkeypatch.syspath_prepend(str(tmp_path))
    module = _Module(tmp_path)
    yield module
    sys.modules.pop(module.name, None)


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_all_workers_see_the_edit(edited: _Module, transport: str) -> None:
    module: Any = edited.module

    def by_value(_: int = 0) -> int:
        return int(module.value())

    with opened(workers=3, transport=transport) as grid:
        assert grid.submit(module.value).result() == 1
        assert set(grid.map(by_value, range(60), chunk=1)) == {1}
        edited.write(2)
        grid.reload(module)
        assert module.value() == 2
        for _ in range(2):
            assert {grid.submit(module.value).result() for _ in range(20)} == {2}
        assert {grid.submit(by_value).result() for _ in range(20)} == {2}
        assert grid.submit(f"{edited.name}/value").result() == 2
        assert {value for value, _ in grid.map(lambda _: module.pid(), range(60), chunk=1)} == {2}
        edited.write(3)
        grid.reload(edited.name)
        assert set(grid.map(by_value, range(60))) == {3}
        assert grid.submit(f"{edited.name}/value").result() == 3


def test_workers_that_start_later(edited: _Module) -> None:
    module: Any = edited.module
    with opened(workers=1, max_tasks_per_child=1) as grid:
        assert grid.submit(module.value).result() == 1
        edited.write(2)
        grid.reload(module)
        calls = [grid.submit(module.pid).result() for _ in range(3)]
        assert {value for value, _ in calls} == {2}
        assert len({pid for _, pid in calls}) == 3


def calls_value(name: str) -> Any:
    """Has other workers run a function of the module, too."""
    grid = gridrpc.current_grid()
    return [call.result() for call in [grid.submit(f"{name}/value") for _ in range(20)]]


def test_calls_from_inside_and_objects(edited: _Module) -> None:
    with opened(workers=2) as grid:
        assert set(grid.submit(calls_value, edited.name).result()) == {1}
        edited.write(2)
        grid.reload(edited.name)
        assert set(grid.submit(calls_value, edited.name).result()) == {2}


def test_a_module_that_cannot_be_loaded(edited: _Module) -> None:
    module: Any = edited.module
    with opened(workers=1) as grid:
        assert grid.submit(module.value).result() == 1
        edited.file.write_text("def value(: return 2")
        with pytest.raises(SyntaxError):
            grid.reload(module)
        # Workers continue with what they have.
        assert grid.submit(module.value).result() == 1
        edited.write(3)
        grid.reload(module)
        assert grid.submit(module.value).result() == 3


def test_a_warning_after_an_edit(edited: _Module) -> None:
    module: Any = edited.module

    def by_value() -> int:
        return int(module.value())

    with opened(workers=1) as grid:
        for function in (module.value, by_value):
            assert grid.submit(function).result() == 1
        edited.write(2)
        with warnings.catch_warnings():
            # The same code here as there.
            warnings.simplefilter("error")
            assert grid.submit(module.value).result() == 1
        importlib.reload(module)
        said = rf'{edited.name}\.py` has been changed since.*grid\.reload\("{edited.name}"\)'
        with pytest.warns(CapturedStateWarning, match=said) as warned:
            assert grid.submit(by_value).result() == 1
        assert [warning.filename for warning in warned] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert grid.submit(module.value).result() == 1
            grid.reload(module)
            assert grid.submit(module.value).result() == grid.submit(by_value).result() == 2


def test_a_warning_of_map(edited: _Module) -> None:
    module: Any = edited.module
    with opened(workers=1) as grid:
        assert grid.submit(module.value).result() == 1
        edited.write(2)
        importlib.reload(module)
        with pytest.warns(CapturedStateWarning, match="has been changed since"):
            list(grid.map(module.value, []))


def test_what_cannot_be_reloaded(grid: Grid, native_grid: Grid) -> None:
    for wrong in (3, None, grid):
        with pytest.raises(TypeError, match="is no module"):
            grid.reload(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="functions of the main program are sent as they are"):
        grid.reload("__main__")
    with pytest.raises(ModuleNotFoundError):
        grid.reload("no_such_module_of_anybody")
    with pytest.raises(TypeError, match="this one has none"):
        native_grid.reload("json")
    with opened(workers=1) as closed:
        pass
    with pytest.raises(gridrpc.GridClosed):
        closed.reload("json")
