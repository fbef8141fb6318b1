"""Remote objects of Python classes: state in a worker of their own."""

from __future__ import annotations

import gc
import inspect
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from processes import LONG, until


class Counter:
    """Counts."""

    limit = 1000

    def __init__(self, start: int = 0, *, step: int = 1) -> None:
        if start < 0:
            raise ValueError("counts from 0 on")
        self.value = start
        self.step = step

    def add(self, n: int = 1) -> int:
        """Adds n steps, and returns the count."""
        self.value += n * self.step
        return self.value

    def slow_append(self, seconds: float, digit: int) -> int:
        time.sleep(seconds)
        self.value = self.value * 10 + digit
        return self.value

    def fail(self) -> None:
        self.value = -1
        raise KeyError("no such count")

    def pid(self) -> int:
        return os.getpid()

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    @staticmethod
    def double(x: int) -> int:
        return 2 * x

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    def __len__(self) -> int:
        return self.value


class Series:
    def store(self, array: Any) -> None:
        self.kept = array

    def scaled(self, factor: float) -> Any:
        return self.kept * factor


class Closed:
    def __init__(self, file: str) -> None:
        self.file = Path(file)

    def close(self) -> None:
        with self.file.open("a") as file:
            file.write("closed\n")


def test_objects_keep_their_state_each_its_own(each_grid: Grid) -> None:
    with each_grid.object(Counter, 10) as one, each_grid.object(Counter, step=2) as other:
        assert one.add(5) == 15
        assert other.add(5) == 10
        assert one.add.submit(n=1).result(LONG) == 16
        assert one.pid() != other.pid()
        own = one.pid()
        assert own not in {each_grid.submit(os.getpid).result(LONG) for _ in range(20)}


def test_classes_of_the_main_program_and_of_functions(grid: Grid) -> None:
    class Local:
        def __init__(self) -> None:
            self.seen: list[int] = []

        def note(self, x: int) -> list[int]:
            self.seen.append(x)
            return self.seen

    with grid.object(Local) as local:
        local.note(1)
        assert local.note(2) == [1, 2]


def test_calls_run_in_their_order(grid: Grid) -> None:
    with grid.object(Counter) as counter:
        calls = [counter.slow_append.submit(0.06 - 0.02 * n, n) for n in range(1, 4)]
        assert [call.result(LONG) for call in calls] == [1, 12, 123]


def test_static_methods_and_class_methods_are_methods(grid: Grid) -> None:
    with grid.object(Counter) as counter:
        assert counter.double(4) == 8
        assert counter.name() == "Counter"


def test_classes_that_are_written_in_c_have_methods(grid: Grid) -> None:
    with grid.object(list, [3, 1, 2]) as numbers:
        numbers.sort()
        assert (numbers.pop(), len(numbers.copy())) == (3, 2)


@pytest.mark.parametrize("size", [3, 200_000])
def test_objects_keep_arrays(each_grid: Grid, size: int) -> None:
    array = np.arange(float(size))
    with each_grid.object(Series) as series:
        series.store(array)
        array[...] = 0
        np.testing.assert_array_equal(series.scaled(2.0), np.arange(float(size)) * 2)


def test_arrays_in_shared_memory_are_not_moved(grid: Grid) -> None:
    array = gridrpc.empty(100_000)
    array[...] = 1
    with grid.object(Series) as series:
        call = series.store.submit(array)
        call.result(LONG)
        assert call.profile.bytes_in < 1_000
        shared = grid.share(np.ones(100_000))
        series.store(shared)
        assert series.scaled(3.0).sum() == 300_000


def test_errors_of_methods_arrive_and_leave_the_object_alive(grid: Grid) -> None:
    with grid.object(Counter) as counter:
        with pytest.raises(KeyError, match="no such count"):
            counter.fail()
        assert counter.add(3) == 2


def test_an_error_of_the_constructor_is_raised_and_gives_the_worker_back(grid: Grid) -> None:
    with pytest.raises(ValueError, match="counts from 0 on"):
        grid.object(Counter, -1)
    with pytest.raises(TypeError, match="unexpected keyword"):
        grid.object(Counter, wrong=1)
    assert grid.submit(abs, -1).result(LONG) == 1


def test_what_is_no_method_is_refused_here(grid: Grid) -> None:
    with grid.object(Counter) as counter:
        for name in ("subtract", "value", "limit", "__len__"):
            with pytest.raises(AttributeError, match=rf"has no method `{name}`; it has add,"):
                getattr(counter, name)
        assert {"add", "close", "pid"} <= set(dir(counter))
        assert list(inspect.signature(counter.add).parameters) == ["n"]
        assert counter.add.__doc__ == "Adds n steps, and returns the count."
        assert repr(counter.add) == "<gridrpc method Counter.add>"
        assert counter.add.submit().function_name == "Counter.add"


def test_what_is_no_class_is_refused(grid: Grid, native_grid: Grid) -> None:
    with pytest.raises(TypeError, match="give a class"):
        grid.object(Counter(3))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="worker='python'"):
        native_grid.object(Counter)
    with pytest.raises(TypeError, match="take no arguments"):
        grid.object("module/Class", 1)


def test_a_lost_object_says_how_it_was_lost(grid: Grid) -> None:
    counter = grid.object(Counter)
    calls = [counter.slow_append.submit(0.05, 1), counter.die.submit(), counter.add.submit()]
    assert calls[0].result(LONG) == 1
    error = calls[1].exception(LONG)
    assert isinstance(error, gridrpc.WorkerLost)
    assert error.signal == signal.SIGKILL
    assert isinstance(calls[2].exception(LONG), gridrpc.WorkerLost)
    with pytest.raises(gridrpc.ObjectLost, match=r"signal 9|SIGKILL"):
        counter.add()
    assert "lost" in repr(counter)
    counter.close()
    with grid.object(Counter) as another:
        assert another.add() == 1


def test_a_missed_deadline_takes_the_object_along(grid: Grid) -> None:
    with grid.object(Counter) as counter:
        with pytest.raises(gridrpc.DeadlineExceeded):
            counter.slow_append(LONG, 1, deadline=0.1)
        assert until(lambda: "lost" in repr(counter))
        with pytest.raises(gridrpc.ObjectLost):
            counter.add()


def test_closing_runs_the_objects_own_close_once(grid: Grid, tmp_path: Path) -> None:
    file = tmp_path / "note"
    one = grid.object(Closed, str(file))
    one.close()
    one.close()
    assert file.read_text() == "closed\n"
    counter = grid.object(Counter)
    add = counter.add
    counter.close()
    with pytest.raises(gridrpc.ObjectLost):
        add(1)


def test_closing_gives_the_worker_back(grid: Grid) -> None:
    counter = grid.object(Counter)
    pid = counter.pid()
    running = counter.slow_append.submit(LONG, 1)
    counter.close()
    assert isinstance(running.exception(LONG), gridrpc.GridError)
    assert until(lambda: not Path(f"/proc/{pid}").exists())
    assert "closed" in repr(counter)


def test_objects_that_nobody_holds_are_ended(grid: Grid) -> None:
    counter = grid.object(Counter)
    pid = counter.pid()
    del counter
    gc.collect()
    assert until(lambda: not Path(f"/proc/{pid}").exists())


def test_objects_end_with_their_grid() -> None:
    with Grid(workers=1) as grid:
        counter = grid.object(Counter)
        pid = counter.pid()
    assert until(lambda: not Path(f"/proc/{pid}").exists())
    with pytest.raises(gridrpc.GridError):
        counter.add()
    counter.close()
