"""Functions with what they carry: shared data, globals, caches, and where they come from."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
import remote
from gridrpc import Grid
from processes import LONG, run_script, until


class Holder:
    """Has shared data, and a method that reads it."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def row(self, index: int) -> float:
        return float(self.data[index])


def test_shared_data_in_partials_closures_and_methods(grid: Grid) -> None:
    data = np.arange(1000.0)
    shared: Any = grid.share(data)
    kinds = [
        functools.partial(remote.item_of, shared),
        lambda index: remote.item_of(shared, index),
        Holder(shared).row,
    ]
    for function in kinds:
        assert list(grid.map(function, range(100))) == list(data[:100])
        assert grid.submit(function, 7).result(LONG) == 7.0
        assert list(grid.map(function, [3, 4], chunk=1)) == [3.0, 4.0]


def test_shared_data_goes_when_functions_that_had_it_do() -> None:
    with Grid(1) as grid:
        shared: Any = grid.share(np.ones(200_000))
        assert grid.submit(functools.partial(remote.item_of, shared), 1).result(LONG) == 1.0
        assert grid.submit(remote.has_items).result(LONG)
        del shared
        gc.collect()
        assert until(lambda: not grid.submit(remote.has_items).result(LONG))


def test_shared_data_of_another_grid_is_refused(grid: Grid) -> None:
    with Grid(1) as other:
        function: Any = functools.partial(remote.item_of, other.share(np.ones(9)))
        with pytest.raises((ValueError, TypeError), match=r"another grid|its own grid"):
            grid.submit(function, 1)


def test_globals_that_changed_since(tmp_path: Path) -> None:
    script = """
        import gridrpc
        k, table, numbers = 1, {"a": 1}, [1, 2]
        def helper():
            return k
        def f():
            return k, table["a"], sum(numbers), helper()
        def g():
            return k
        if __name__ == "__main__":
            with gridrpc.Grid(1) as grid:
                print(grid.submit(f).result(), grid.submit(g).result())
                k = 2
                print(grid.submit(f).result(), grid.submit(g).result())
                table["a"] = 5
                numbers.append(10)
                print(grid.submit(f).result(), *grid.map(lambda x: (x, f()), [1]))
                def helper():
                    return "new"
                print(grid.submit(f).result())
    """
    ran = run_script(tmp_path, script)
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        "(1, 1, 3, 1) 1",
        "(2, 1, 3, 2) 2",
        "(2, 5, 13, 2) (1, (2, 5, 13, 2))",
        "(2, 5, 13, 'new')",
    ]


CHANGES = """
    import gridrpc, numpy, types
    from dataclasses import dataclass
    @dataclass
    class Options:
        rate: float = 0.5
    class Model:
        scale = 1
        def scaled(self):
            return factor * self.scale
    class Own:
        def __init__(self):
            self.value = 1
        def __getstate__(self):
            return self.__dict__
    def decorated(function):
        def wrapper():
            return function()
        return wrapper
    factor, options, tree, space = 1, Options(), {"a": {"b": [1]}}, types.SimpleNamespace(n=1)
    many, numbers, own = list(range(5000)), numpy.zeros(10), Own()
    @decorated
    def deep():
        return tree["a"]["b"][-1]
    def added(values=[1]):
        return sum(values)
    def f():
        return [
            options.rate, deep(), space.n, many[1000], float(numbers[3]), Model.scale,
            Model().scaled(), added(), own.value, getattr(f, "mark", 0),
        ]
    def late():
        return later
    def change():
        global factor
        options.rate = 0.25
        yield
        tree["a"]["b"].append(2)
        yield
        space.n = 2
        yield
        many[1000] = 7
        yield
        numbers[3] = 8
        yield
        Model.scale = 3
        yield
        factor = 5
        yield
        added.__defaults__[0].append(5)
        yield
        own.value = 4
        yield
        f.mark = 6
        yield
        Model.scaled = lambda self: "new"
        yield
    if __name__ == "__main__":
        with gridrpc.Grid(1) as grid:
            assert grid.submit(f).result() == f()
            for _ in change():
                came = grid.submit(f).result()
                assert came == f(), (came, f())
                assert [*grid.map(lambda _: f(), [0])] == [came]
            print(isinstance(grid.submit(late).exception(), NameError))
            later = 1
            print(grid.submit(late).result())
"""


def test_changes_inside_what_a_function_refers_to(tmp_path: Path) -> None:
    ran = run_script(tmp_path, CHANGES)
    assert (ran.stdout, ran.stderr) == ("True\n1\n", "")


def test_changes_seen_by_calls_that_functions_make(tmp_path: Path) -> None:
    script = """
        import gridrpc
        class State:
            n = 0
        def count():
            return State.n, table["n"]
        table = {"n": 0}
        def outer():
            came = []
            for n in range(3):
                State.n = table["n"] = n
                came.append(gridrpc.current_grid().submit(count).result())
            return came
        if __name__ == "__main__":
            with gridrpc.Grid(2) as grid:
                print(grid.submit(outer).result())
    """
    ran = run_script(tmp_path, script)
    assert (ran.stdout, ran.stderr) == ("[(0, 0), (1, 1), (2, 2)]\n", "")


def test_a_large_object_that_may_have_changed(tmp_path: Path) -> None:
    script = """
        import gridrpc, numpy
        large = numpy.zeros(3_000_000)
        def first():
            return float(large[0])
        if __name__ == "__main__":
            with gridrpc.Grid(1) as grid:
                print(grid.submit(first).result())
                large[0] = 1
                print(grid.submit(first).result(), grid.submit(first).result())
                large = large.copy()
                print(grid.submit(first).result())
    """
    ran = run_script(tmp_path, script)
    assert ran.stdout == "0.0\n0.0 0.0\n1.0\n"
    assert ran.stderr.count("CapturedStateWarning") == 1
    assert "`first` was not pickled again: its pickle has 24 MB" in ran.stderr
    assert "Pass `large` as an argument" in ran.stderr


def test_random_generators_that_functions_refer_to(tmp_path: Path) -> None:
    script = """
        import gridrpc, numpy, random
        numbers, standard, seed = numpy.random.default_rng(1), random.Random(1), 3
        class Model:
            def __init__(self):
                self.old = numpy.random.RandomState(1)
        model = Model()
        def draw():
            return numbers.random()
        def choose():
            return standard.random()
        def model_draw():
            return model.old.rand()
        def fine(seed):
            return numpy.random.default_rng(seed).random() + random.random()
        def closure(rng):
            return lambda: rng.random()
        if __name__ == "__main__":
            with gridrpc.Grid(1) as grid:
                for function in (draw, choose, model_draw, closure(random.Random(2)), draw):
                    for _ in range(2):
                        grid.submit(function).result()
                list(grid.map(fine, range(3)))
                list(grid.map(lambda _: draw(), range(3)))
    """
    ran = run_script(tmp_path, script)
    warnings = [line for line in ran.stderr.splitlines() if "CapturedStateWarning" in line]
    names = [line.split("refers to the random generator ")[1].split(":")[0] for line in warnings]
    assert names == ["`numbers`", "`standard`", "`model.old`", "`rng`", "`numbers`"], ran.stderr


def test_arrays_in_a_partial_travel_as_arguments_do(grid: Grid) -> None:
    array = np.arange(1 << 17)
    call = grid.submit(functools.partial(remote.everything, array, 1, a=2), 3, b=4)
    first, *rest = call.result(LONG)
    assert (first == array).all()
    assert rest == [1, 3, {"a": 2, "b": 4}]
    assert call.profile.bytes_in >= array.nbytes, "they are no part of the function"
    named = functools.partial(remote.same, 5)
    named.name = "a partial with something of its own"  # type: ignore[attr-defined]
    assert grid.submit(named).result(LONG) == 5
    needed = grid.submit(functools.partial(remote.add, grid.submit(remote.same, 1)), 2)
    assert needed.result(LONG) == 3


def test_functions_with_a_cache_in_the_main_program(tmp_path: Path) -> None:
    script = """
        import functools, gridrpc
        @functools.cache
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)
        @functools.lru_cache(maxsize=3, typed=True)
        def square(x):
            return x * x
        def use(n):
            return fib(n), square(n), square.cache_parameters()
        if __name__ == "__main__":
            with gridrpc.Grid(1) as grid:
                print(grid.submit(fib, 50).result(), grid.submit(use, 60).result())
    """
    ran = run_script(tmp_path, script)
    assert ran.stderr == ""
    expected = "12586269025 (1548008755920, 3600, {'maxsize': 3, 'typed': True})\n"
    assert ran.stdout == expected


def test_cached_properties_and_single_dispatch_in_the_main_program(tmp_path: Path) -> None:
    script = """
        import gridrpc
        from functools import cached_property, singledispatch, singledispatchmethod
        class Circle:
            def __init__(self, radius):
                self.radius = radius
            @cached_property
            def area(self):
                return 3 * self.radius**2
            @singledispatchmethod
            def shown(self, value):
                return "something"
            @shown.register
            def _(self, value: int):
                return "a number"
        @singledispatch
        def show(value):
            return "something"
        @show.register
        def _(value: int):
            return "a number"
        @show.register(list)
        def _(value):
            return [show(each) for each in value]
        def f(circle):
            return circle.area, Circle(1).area, show([1, "a"]), circle.shown(1), circle.shown("")
        if __name__ == "__main__":
            with gridrpc.Grid(1) as grid:
                print(grid.submit(f, Circle(2)).result(), grid.submit(show, [2]).result())
                show.register(str, lambda value: "a text")
                print(grid.submit(show, ["a"]).result())
    """
    ran = run_script(tmp_path, script)
    assert (ran.stdout.splitlines(), ran.stderr) == (
        [
            "(12, 3, ['a number', 'something'], 'a number', 'something') ['a number']",
            "['a text']",
        ],
        "",
    )


async def plus(x: int, y: int = 1) -> int:
    await asyncio.sleep(0)
    return x + y


class Adder:
    """Its methods are coroutine functions."""

    async def __call__(self, x: int) -> int:
        return x + 1

    async def add(self, x: int) -> int:
        return x + 1


def test_coroutine_functions_run(grid: Grid) -> None:
    kinds: list[Any] = [plus, functools.partial(plus, y=1), Adder(), Adder().add]
    for function in kinds:
        assert grid.submit(function, 2).result(LONG) == 3
        assert list(grid.map(function, range(40))) == list(range(1, 41))
    assert grid.submit("test_grid_functions/plus", 2).result(LONG) == 3
    assert list(grid.starmap(plus, [(1, 2), (3, 4)], retries=1)) == [3, 7]
    with gridrpc.Executor(grid=grid) as executor:
        assert executor.submit(plus, 2).result(LONG) == 3
    with grid.object(Adder) as adder:
        assert adder.add(5) == 6


def steps(n: int) -> Iterator[int]:
    yield from range(n)


async def async_steps(n: int) -> AsyncIterator[int]:
    yield n


def test_generator_functions_are_refused(grid: Grid) -> None:
    kinds: list[Any] = [steps, async_steps, functools.partial(steps)]
    submits: list[Any] = [grid.submit, grid.map]
    for function in kinds:
        for submit in submits:
            with pytest.raises(TypeError, match=r"is a generator function.* return a list"):
                submit(function, [1])


def test_the_main_program_of_a_child_of_multiprocessing(tmp_path: Path) -> None:
    script = """
        import gridrpc, multiprocessing
        class Point:
            def __init__(self, x):
                self.x = x
        def shifted(point):
            return point.x + 1
        def work():
            with gridrpc.Grid(1) as grid:
                print(grid.submit(shifted, Point(1)).result(), *grid.map(shifted, [Point(2)]))
        if __name__ == "__main__":
            child = multiprocessing.get_context("spawn").Process(target=work)
            child.start()
            child.join()
    """
    ran = run_script(tmp_path, script)
    assert ran.stderr == ""
    assert ran.stdout == "2 3\n"


def test_modules_that_go_by_value(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def f():\n    return 'by', __name__\n")
    script = """
        import cloudpickle, gridrpc, os, sys, types, mine
        made = types.ModuleType("made")
        exec("def f():\\n    return 'made', 1", vars(made))
        sys.modules["made"] = made
        cloudpickle.register_pickle_by_value(mine)
        if __name__ == "__main__":
            with gridrpc.Grid(1) as grid:
                os.remove("mine.py")
                print(grid.submit(mine.f).result(), grid.submit(made.f).result())
                print(grid.submit(apply := (lambda f: f()), made.f).result())
    """
    ran = run_script(tmp_path, script)
    assert ran.stdout.splitlines() == ["('by', 'mine') ('made', 1)", "('made', 1)"], ran


def test_managers_of_multiprocessing(tmp_path: Path) -> None:
    script = """
        import gridrpc
        def put(queue, value):
            queue.put(value)
        if __name__ == "__main__":
            with gridrpc.Executor(2) as executor:
                executor.submit(abs, 1).result()
                import multiprocessing
                with multiprocessing.Manager() as manager:
                    queue, lock = manager.Queue(), manager.Lock()
                    for value in range(3):
                        executor.submit(put, queue, value).result()
                    executor.submit(queue.put, 3).result()
                    with lock:
                        print(sorted(queue.get() for _ in range(4)))
                future = executor.submit(put, multiprocessing.Queue(), 1)
                print(type(future.exception()).__name__, "inheritance" in str(future.exception()))
    """
    ran = run_script(tmp_path, script)
    assert ran.stdout == "[0, 1, 2, 3]\nRuntimeError True\n", ran.stderr


def test_a_grid_that_was_not_opened_can_be_shown() -> None:
    assert repr(Grid.__new__(Grid)) == "<gridrpc.Grid, not opened>"
    assert gridrpc.Grid is Grid


def test_a_place_that_was_added_to_the_path_later(tmp_path: Path) -> None:
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "found.py").write_text("def f(x=1):\n    return x + 1\n")
    script = """
        import gridrpc, sys
        if __name__ == "__main__":
            with gridrpc.Grid(1) as grid:
                grid.submit(abs, -1).result()
                sys.path.append("later")
                import found
                print(grid.submit(found.f).result(), *grid.map(found.f, range(3)))
                print(grid.submit(lambda: found.f(5)).result(), grid.submit("found/f", 6).result())
    """
    ran = run_script(tmp_path, script)
    assert (ran.stdout, ran.stderr) == ("2 1 2 3\n6 7\n", "")


def test_threads_that_the_user_has_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with Grid(2) as grid:
        assert grid.submit(os.getenv, "OMP_NUM_THREADS").result(LONG) == "3"
        assert grid.submit(os.getenv, "OPENBLAS_NUM_THREADS").result(LONG) is None
        assert grid.submit(os.getenv, "NUMBA_NUM_THREADS").result(LONG) is not None


def draws() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(np.random.default_rng().random())


def test_workers_and_their_successors_draw_other_random_numbers() -> None:
    with Grid(2, max_tasks_per_child=1) as grid:
        drawn = [grid.submit(draws).result(LONG) for _ in range(6)]
    for numbers in zip(*drawn, strict=True):
        assert len(set(numbers)) == 6
