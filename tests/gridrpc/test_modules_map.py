"""`map` over functions of compiled modules: many items in one call, each kept apart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from gridrpc._grain import Grain
from gridrpc._options import DEFAULT
from grids import CompileIdl, opened
from processes import LONG

IDL = r"""
Module items;
Globals {
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    static int runs;
}
Define take(IN long item) { }
Define echo(IN long item, OUT long same[1]) { same[0] = item; }
Define narrow(IN int8 a, IN uint16 b, IN float c, IN dcomplex d, OUT double sum[1])
    { sum[0] = a + b + c + __real__ d + __imag__ d; }
Define scale(IN double f, IN long n, IN double a[n], OUT double b[n])
    { for (long i = 0; i < n; i++) b[i] = f * a[i]; }
Define total(IN long n, IN double a[n], OUT double sum[1])
    { sum[0] = 0; for (long i = 0; i < n; i++) sum[0] += a[i]; }
Define sums(IN int rows, IN int columns, IN double a[rows][columns], OUT double of[columns],
            WORK double w[columns])
{
    for (int j = 0; j < columns; j++) {
        w[j] = 0;
        for (int i = 0; i < rows; i++)
            w[j] += a[i * columns + j];
        of[j] = w[j];
    }
}
Define turn(IN int rows, IN int columns, IN double a[rows][columns], OUT double b[columns][rows])
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            b[j * rows + i] = a[i * columns + j];
}
Define bump(IN long n, INOUT double a[n]) { for (long i = 0; i < n; i++) a[i] += 1; }
Define counted(IN int lens[1], OUT int made[lens[0]])
    { for (int i = 0; i < lens[0]; i++) made[i] = i; }
Define greet(IN string name, INOUT string mood, OUT string said)
    {
        if (name) { *said = malloc(strlen(name) + 8); sprintf(*said, "hello %s", name); }
        free(*mood);
        *mood = strdup("glad");
    }
Define back(IN int n, IN string words[n], OUT string turned[n])
    { for (int i = 0; i < n; i++) turned[i] = strdup(words[n - 1 - i]); }
Define two(IN int a, IN double b, OUT int first[1], OUT double second[2])
    { first[0] = a; second[0] = b; second[1] = 2 * b; }
Define part(IN int n, IN double a[n:0,n/2], OUT double sum[1])
    { sum[0] = 0; for (int i = 0; i < n / 2; i++) sum[0] += a[i]; }
Define calls(IN int a, f(IN int x, OUT int y[1]), OUT int r[1]) { f(a, r); }
Define length(IN filename file, OUT long bytes[1])
    { FILE *f = fopen(file, "r"); fseek(f, 0, SEEK_END); bytes[0] = ftell(f); fclose(f); }
Define nap(IN int us, OUT int process[1]) { usleep(us); process[0] = getpid(); }
Define known(IN long item, OUT int process[1]) Idempotent { process[0] = getpid(); }
Define forks(IN int item, OUT int r[1]) { r[0] = fork() == 0 ? -1 : item; }
Define leaves(IN int item) { if (item == 5) _exit(3); }
Define once(IN string notes, IN int bad, IN int item, IN int n, INOUT double changed[n],
            IN string word, OUT int same[1], OUT double made[n], OUT string said)
{
    FILE *f = fopen(notes, "a");
    fprintf(f, "%d\n", item);
    fclose(f);
    for (int i = 0; i < n; i++) { made[i] = 2 * changed[i]; changed[i] += 1; }
    if (item == bad) kill(getpid(), SIGKILL);
    same[0] = item;
    *said = malloc(32);
    sprintf(*said, "said %s", word);
}
Define which(IN int item, OUT int run[1]) { run[0] = ++runs; }
"""

#: Chunks of any size.
GRAIN = Grain(1_000, 2, 2, None, 1 << 20)

CHUNKS = pytest.mark.parametrize("chunk", [1, 7, 5_000, "auto"])


@CHUNKS
@pytest.mark.parametrize("ordered", [True, False])
def test_numbers(each_module_grid: Grid, chunk: Any, ordered: bool) -> None:
    echo = each_module_grid.function("items/echo")
    results = [
        r[0] for r in each_module_grid.map(echo, iter(range(3_000)), chunk=chunk, ordered=ordered)
    ]
    assert (results if ordered else sorted(results)) == list(range(3_000))
    take = each_module_grid.function("items/take")
    assert list(each_module_grid.map(take, range(3_000), chunk=chunk)) == [None] * 3_000


@CHUNKS
def test_numbers_of_all_kinds(each_module_grid: Grid, chunk: Any) -> None:
    narrow = each_module_grid.function("narrow")
    items = [(n % 100 - 50, 65_000 + n % 500, n / 4, complex(n, 0.5)) for n in range(200)]
    wanted = [a + b + c + d.real + d.imag for a, b, c, d in items]
    assert [r[0] for r in each_module_grid.starmap(narrow, items, chunk=chunk)] == wanted
    numpy = [(np.int8(1), np.uint16(2), np.float32(3), 4)] * 20
    assert [r[0] for r in each_module_grid.starmap(narrow, numpy, chunk=chunk)] == [10.0] * 20


@CHUNKS
def test_arrays_of_different_lengths(each_module_grid: Grid, chunk: Any) -> None:
    scale = each_module_grid.function("scale")
    arrays = [np.arange(n // 3 % 5, dtype=float) for n in range(200)]
    for array, result in zip(
        arrays, each_module_grid.map(scale, [2.0] * 200, arrays, chunk=chunk), strict=True
    ):
        np.testing.assert_array_equal(result, 2 * array)
    lists = each_module_grid.starmap(
        scale, [{"f": 3, "a": [1, 2]}, {"a": [5], "f": 1, "n": 1}] * 20, chunk=chunk
    )
    assert [r.tolist() for r in lists] == [[3, 6], [5]] * 20
    counted = each_module_grid.function("counted")
    made = each_module_grid.map(counted, [[n % 4] for n in range(50)], chunk=chunk)
    assert [r.tolist() for r in made] == [list(range(n % 4)) for n in range(50)]


@CHUNKS
def test_tables(each_module_grid: Grid, chunk: Any) -> None:
    tables = [np.arange(6.0).reshape(2, 3) + n for n in range(50)]
    sums = list(each_module_grid.map(each_module_grid.function("sums"), tables, chunk=chunk))
    turned = list(each_module_grid.map(each_module_grid.function("turn"), tables, chunk=chunk))
    for table, of, other in zip(tables, sums, turned, strict=True):
        np.testing.assert_array_equal(of, table.sum(axis=0))
        np.testing.assert_array_equal(other, table.T)


@CHUNKS
def test_arrays_are_changed_in_place(each_module_grid: Grid, chunk: Any) -> None:
    bump = each_module_grid.function("bump")
    arrays = [np.arange(n % 5, dtype=float) for n in range(100)]
    assert list(each_module_grid.map(bump, arrays, chunk=chunk)) == [None] * 100
    for n, array in enumerate(arrays):
        np.testing.assert_array_equal(array, np.arange(n % 5) + 1.0)


@CHUNKS
def test_strings(each_module_grid: Grid, chunk: Any) -> None:
    greet, back = each_module_grid.function("greet"), each_module_grid.function("back")
    names = ["a", b"b", "\N{SNOWMAN}", None] * 20
    greeted = list(each_module_grid.map(greet, names, ["sad"] * 80, chunk=chunk))
    assert [r.said for r in greeted] == ["hello a", "hello b", "hello \N{SNOWMAN}", None] * 20
    assert {r.mood for r in greeted} == {"glad"}
    words = [(n % 3, ["x", "y"][: n % 3]) for n in range(50) if n % 3 < 3]
    turned = list(each_module_grid.starmap(back, words, chunk=chunk))
    assert turned == [given[::-1] for _, given in words]
    generators = each_module_grid.starmap(back, [(2, iter("xy")) for _ in range(10)], chunk=chunk)
    assert list(generators) == [["y", "x"]] * 10


@CHUNKS
def test_several_results_have_names(each_module_grid: Grid, chunk: Any) -> None:
    two = each_module_grid.function("two")
    for n, result in enumerate(each_module_grid.map(two, range(100), [0.5] * 100, chunk=chunk)):
        assert (result.first[0], result.second.tolist()) == (n, [0.5, 1.0])


@CHUNKS
def test_what_cannot_go_together_goes_alone(
    each_module_grid: Grid, tmp_path: Path, chunk: Any
) -> None:
    grid = each_module_grid

    def square(x: int, y: np.ndarray[Any, Any]) -> None:
        y[0] = x * x

    called = grid.map(grid.function("calls"), range(20), [square] * 20, chunk=chunk)
    assert [r[0] for r in called] == [n * n for n in range(20)]
    (tmp_path / "file").write_text("12345")
    lengths = grid.map(grid.function("length"), [tmp_path / "file"] * 20, chunk=chunk)
    assert [r[0] for r in lengths] == [5] * 20
    parts = grid.map(grid.function("part"), [np.ones(6)] * 20, chunk=chunk)
    assert [r[0] for r in parts] == [3.0] * 20
    arrays = [np.full(50_000 if n % 5 == 0 else 3, float(n)) for n in range(20)]
    scaled = grid.map(grid.function("scale"), [2.0] * 20, arrays, chunk=chunk)
    assert [(len(r), r[0]) for r in scaled] == [(len(a), 2 * a[0]) for a in arrays]
    shared = grid.share(np.arange(4.0))
    scaled = grid.map(grid.function("scale"), range(20), [shared] * 20, chunk=chunk)
    assert [r[3] for r in scaled] == [3.0 * n for n in range(20)]


@CHUNKS
def test_an_error_comes_in_the_place_of_its_item(each_module_grid: Grid, chunk: Any) -> None:
    echo = each_module_grid.function("echo")
    seen: list[int] = []
    items = [*range(1_000), "long", *range(1_000)]
    with pytest.raises(gridrpc.ArgumentError, match="argument `item`") as raised:
        seen.extend(r[0] for r in each_module_grid.map(echo, items, chunk=chunk))
    assert seen == list(range(1_000))
    assert raised.value.__notes__ == ["gridrpc: map, item 1000 (the first one is 0)"]
    with pytest.raises(gridrpc.ArgumentError, match="does not fit"):
        list(
            each_module_grid.starmap(
                each_module_grid.function("narrow"), [(128, 0, 0, 0)] * 9, chunk=chunk
            )
        )
    with pytest.raises(gridrpc.ArgumentError, match="takes 1 arguments"):
        list(each_module_grid.map(echo, [1, 2], [3, 4], chunk=chunk))


@CHUNKS
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("journal", [True, False])
def test_items_that_do_not_fit_cost_only_themselves(
    each_module_grid: Grid, tmp_path: Path, chunk: Any, ordered: bool, journal: bool
) -> None:
    grid, bad = each_module_grid, {0, 1, 500, 502, 999}
    echo, items = grid.function("echo"), ["long" if n in bad else n for n in range(1_000)]
    how: dict[str, Any] = {"journal": tmp_path / "j"} if journal else {}
    how |= {"chunk": chunk, "ordered": ordered, "return_exceptions": True}
    for _ in range(1 + journal):
        results = grid.map(echo, items, **how)
        found = list(enumerate(results)) if ordered else sorted(results.numbered())
        assert [number for number, _ in found] == list(range(1_000))
        for number, result in found:
            if number in bad:
                assert isinstance(result, gridrpc.ArgumentError)
                assert result.__notes__[0].startswith("gridrpc: map, item ")
            else:
                assert result[0] == number
    none = grid.map(echo, ["a"] * 600, chunk=chunk, return_exceptions=True)
    assert [type(error) for error in none] == [gridrpc.ArgumentError] * 600


def test_async_for_gets_items_that_do_not_fit(each_module_grid: Grid) -> None:
    echo = each_module_grid.function("echo")

    async def collect(ordered: bool) -> list[Any]:
        items = [1, "long", 2, "long"]
        results = each_module_grid.map(
            echo, items, chunk=1, ordered=ordered, return_exceptions=True
        )
        return [type(result) async for result in results]

    for ordered in (True, False):
        kinds = asyncio.run(collect(ordered))
        assert len(kinds) == 4
        assert kinds.count(gridrpc.ArgumentError) == 2


def test_a_lost_worker_costs_the_item_that_it_ran(own_module_grid: Grid) -> None:
    leaves = own_module_grid.function("leaves")
    results = list(own_module_grid.map(leaves, range(10), chunk=4, return_exceptions=True))
    assert [isinstance(result, gridrpc.WorkerLost) for result in results] == [
        n == 5 for n in range(10)
    ]
    assert "add `Idempotent` to the function's definition in its IDL" in str(results[5])


@pytest.mark.parametrize("worker", ["native", "python"])
@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_items_that_have_ended_keep_their_results(
    compile_idl: CompileIdl, tmp_path: Path, worker: str, transport: str
) -> None:
    """Numbers, arrays of different lengths that are made or changed, and strings."""
    notes, count, bad = tmp_path / "notes", 400, 150
    arrays = [np.full(n % 5 + 1, float(n)) for n in range(count)]
    items = [(str(notes), bad, n, n % 5 + 1, arrays[n], f"{n}") for n in range(count)]
    modules = [compile_idl(IDL)]
    with opened(workers=2, worker=worker, transport=transport, modules=modules) as grid:
        once = grid.function("once")
        results = list(grid.starmap(once, items, chunk=200, return_exceptions=True))
    for n, result in enumerate(results):
        if n == bad:
            assert isinstance(result, gridrpc.WorkerLost)
            assert result.signal == 9
            continue
        assert result.same[0] == n
        assert result.made.tolist() == [2.0 * n] * (n % 5 + 1)
        assert result.said == f"said {n}"
        assert arrays[n].tolist() == [n + 1.0] * (n % 5 + 1)
    assert sorted(map(int, notes.read_text().split())) == list(range(count)), "each ran once"


def test_results_larger_than_what_is_kept_arrive(own_module_grid: Grid) -> None:
    """A chunk ends where there is no room for more."""
    scale = own_module_grid.function("scale")
    items = [(1.0, np.full(2_000, float(n))) for n in range(150)]
    results = list(own_module_grid.starmap(scale, items, chunk=150))
    assert [result[0] for result in results] == list(range(150))


def test_results_belong_to_their_items_alone(module_grid: Grid) -> None:
    first, second, *_ = module_grid.map(
        module_grid.function("scale"), [1.0] * 9, [np.ones(2)] * 9, chunk=9
    )
    assert first.base.nbytes <= 4_096
    first[:] = 7
    assert second.tolist() == [1, 1]


def test_how_items_go_into_calls(module_grid: Grid) -> None:
    which, known = module_grid.function("which"), module_grid.function("known")
    assert len(list(module_grid.map(which, range(10), chunk=5))) == 10
    call, count = which.submit_many_on(module_grid, [1, 2, "x", 4], True, GRAIN, DEFAULT)
    assert count == 2
    assert len(call.result()[0]) == 2
    assert which.submit_many_on(module_grid, ["x", 2], True, GRAIN, DEFAULT) is None
    list(module_grid.map(known, range(50)))
    assert not known.costs.items, "idempotent ones go one by one, by default"
    assert len(list(module_grid.map(known, range(50), chunk=10))) == 50


def test_slow_items_do_not_pile_up(module_grid: Grid) -> None:
    times = [0] * 5_000 + [10_000] * 50
    results = list(module_grid.map(module_grid.function("nap"), iter(times)))
    assert len(results) == len(times)
    assert len({int(r[0]) for r in results[5_000:]}) == 2, "both workers have some of them"


def test_a_function_that_forks_has_one_answer(own_module_grid: Grid) -> None:
    results = own_module_grid.map(own_module_grid.function("forks"), range(20), chunk=10)
    assert [r[0] for r in results] == list(range(20))


def test_shared_data_goes_to_module_functions(each_module_grid: Grid) -> None:
    grid = each_module_grid
    scale, turn = grid.function("scale"), grid.function("turn")
    array = np.arange(100_000.0)
    shared = grid.share(array)
    np.testing.assert_array_equal(scale(2.0, shared), 2 * array)
    call = grid.function("total").submit(shared)
    assert call.result(LONG)[0] == array.sum()
    if grid.config.transport == "unix":
        assert call.profile.bytes_in < 1_000, "shared data is not moved"
    table = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(turn(grid.share(table)), table.T)
    with pytest.raises(gridrpc.ArgumentError, match="shape"):
        turn(rows=3, columns=2, a=grid.share(table))
    with pytest.raises(gridrpc.ArgumentError, match="float32"):
        scale(2.0, grid.share(array.astype(np.float32)))
    with pytest.raises(gridrpc.ArgumentError, match="cannot be changed"):
        grid.function("bump")(grid.share(array))
    with pytest.raises(TypeError, match="shared arrays and bytes"):
        scale(2.0, grid.share({"a": 1}))


def test_shared_data_of_another_grid(own_module_grid: Grid, lone_grid: Grid) -> None:
    with pytest.raises(ValueError, match="another grid"):
        own_module_grid.function("scale")(1.0, lone_grid.share(np.ones(3)))
