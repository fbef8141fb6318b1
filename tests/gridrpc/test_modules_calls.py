"""Functions of compiled modules: deadlines, cancelling, waiting, and running again."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import CompileIdl, opened
from processes import LONG, until

IDL = r"""
Module calls;
Globals {
    #include <signal.h>
    #include <stdio.h>
    #include <unistd.h>

    int grpc_is_canceled_np(int *);

    /* Says in a file that it was here; how often it did. */
    static long say(const char *file)
    {
        FILE *notes = fopen(file, "a");
        fputc('x', notes);
        long count = ftell(notes);
        fclose(notes);
        return count;
    }
}
Define add(IN int a, IN int b, OUT int r[1]) { *r = a + b; }
Define nap(IN int ms) { usleep(1000 * ms); }
Define polls(IN string begun, IN string ended)
    {
        say(begun);
        while (!grpc_is_canceled_np(0))
            usleep(1000);
        say(ended);
    }
Define never(IN string begun) { say(begun); for (;;) pause(); }
Define fills_and_stays(IN string begun, IN int n, INOUT double a[n])
    { for (int i = 0; i < n; i++) a[i] = -1; say(begun); for (;;) pause(); }
Define doubles(IN string notes, IN int crashes, IN int n, INOUT double a[n], OUT long r[1])
    Idempotent
    {
        for (int i = 0; i < n; i++)
            a[i] *= 2;
        *r = say(notes);
        if (*r <= crashes)
            raise(SIGKILL);
    }
Define crashes_once(IN string notes) { if (say(notes) == 1) raise(SIGKILL); }
Define pid(OUT long r[1]) { *r = getpid(); }
"""


def appeared(file: Path) -> bool:
    return until(file.exists)


def test_a_deadline_ends_a_call(each_module_grid: Grid) -> None:
    nap, add = each_module_grid.function("calls/nap"), each_module_grid.function("calls/add")
    start = time.monotonic()
    with pytest.raises(gridrpc.DeadlineExceeded, match="calls/nap missed its deadline"):
        nap(60_000, deadline=0.1)
    assert time.monotonic() - start < 10
    assert add(1, 2)[0] == 3
    assert add(3, 4, deadline=LONG)[0] == 7
    with pytest.raises(ValueError, match="deadline"):
        add(1, 2, deadline=-1.0)


def test_a_function_that_asks_sees_that_it_is_cancelled(
    compile_idl: CompileIdl, tmp_path: Path
) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    with opened(workers=1, worker="native", modules=[compile_idl(IDL)], grace=LONG) as grid:
        pid = grid.function("pid")()[0]
        call = grid.function("polls").submit(str(begun), str(ended))
        assert appeared(begun)
        assert call.cancel()
        with pytest.raises(gridrpc.CallCancelled):
            call.result(LONG)
        assert appeared(ended)
        assert grid.function("pid")()[0] == pid, "its worker lives on"


def test_a_deadline_is_told_to_the_function_too(compile_idl: CompileIdl, tmp_path: Path) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    with opened(workers=1, worker="native", modules=[compile_idl(IDL)], grace=LONG) as grid:
        with pytest.raises(gridrpc.DeadlineExceeded):
            grid.function("polls")(str(begun), str(ended), deadline=0.2)
        assert appeared(ended)


def test_a_function_that_continues_is_ended_with_its_worker(
    own_module_grid: Grid, tmp_path: Path
) -> None:
    call = own_module_grid.function("never").submit(str(tmp_path / "begun"))
    assert appeared(tmp_path / "begun")
    call.cancel()
    with pytest.raises(gridrpc.CallCancelled):
        call.result(LONG)
    for _ in range(5):
        assert own_module_grid.function("add")(1, 1)[0] == 2


@pytest.mark.parametrize("size", [4, 100_000])
@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_a_cancelled_call_lets_go_of_its_arrays(
    compile_idl: CompileIdl, tmp_path: Path, transport: str, size: int
) -> None:
    with opened(
        workers=1, worker="native", modules=[compile_idl(IDL)], transport=transport
    ) as grid:
        a = np.ones(size)
        call = grid.function("fills_and_stays").submit(str(tmp_path / "begun"), a)
        assert appeared(tmp_path / "begun")
        call.cancel()
        with pytest.raises(gridrpc.CallCancelled):
            call.result(LONG)
        np.testing.assert_array_equal(a, 1)
        a[...] = 5
        assert grid.function("add")(1, 1)[0] == 2
        np.testing.assert_array_equal(a, 5)


@pytest.mark.parametrize("size", [4, 100_000])
@pytest.mark.parametrize("make", [np.empty, gridrpc.empty])
@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_idempotent_functions_run_again_and_find_their_arguments_as_they_were(
    compile_idl: CompileIdl, tmp_path: Path, transport: str, size: int, make: object
) -> None:
    with opened(
        workers=2, worker="native", modules=[compile_idl(IDL)], transport=transport
    ) as grid:
        a = make(size)  # type: ignore[operator]
        a[...] = 1
        doubles = grid.function("calls/doubles")
        assert "Idempotent" in doubles.__doc__
        assert doubles(str(tmp_path / "notes"), 2, a)[0] == 3
        np.testing.assert_array_equal(a, 2)


def test_idempotent_functions_fail_after_so_many_losses(
    compile_idl: CompileIdl, tmp_path: Path
) -> None:
    with opened(workers=2, worker="native", modules=[compile_idl(IDL)], retries=1) as grid:
        a = np.ones(4)
        with pytest.raises(gridrpc.WorkerLost) as lost:
            grid.function("doubles")(str(tmp_path / "notes"), 100, a)
        assert lost.value.signal == 9
        assert (tmp_path / "notes").stat().st_size == 2
        np.testing.assert_array_equal(a, 1)


def test_other_functions_are_not_run_again(own_module_grid: Grid, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with pytest.raises(gridrpc.WorkerLost) as lost:
        own_module_grid.function("crashes_once")(str(notes))
    assert notes.stat().st_size == 1
    assert "`Idempotent`" in str(lost.value) or "idempotent" in str(lost.value)
    with pytest.raises(TypeError, match="idempotent if its IDL says"):
        own_module_grid.submit(own_module_grid.function("add"), 1, 2, idempotent=True)
    with pytest.raises(TypeError, match="idempotent if its IDL says"):
        own_module_grid.map(own_module_grid.function("add"), [1], [2], idempotent=True)


def test_submit_map_and_as_completed(each_module_grid: Grid) -> None:
    grid = each_module_grid
    add = grid.function("calls/add")
    assert grid.submit(add, 1, b=2).result(LONG)[0] == 3
    assert [r[0] for r in grid.map(add, range(300), range(300))] == [2 * n for n in range(300)]
    unordered = grid.map(add, range(100), [1] * 100, ordered=False, deadline=LONG)
    assert sorted(r[0] for r in unordered) == list(range(1, 101))
    calls = [add.submit(n, 0) for n in range(50)]
    assert sorted(c.result()[0] for c in gridrpc.as_completed(calls, LONG)) == list(range(50))


def test_map_ends_with_the_first_error(module_grid: Grid) -> None:
    results = module_grid.map(module_grid.function("add"), [1, 2, "three", 4], [0] * 4)
    assert [next(results)[0], next(results)[0]] == [1, 2]
    with pytest.raises(gridrpc.ArgumentError, match="argument `a`"):
        next(results)


def test_calls_can_be_awaited(each_module_grid: Grid) -> None:
    add, nap = each_module_grid.function("add"), each_module_grid.function("nap")

    async def main() -> list[int]:
        results = await asyncio.gather(*(add.submit(n, 1) for n in range(20)))
        task = asyncio.create_task(asyncio.wait_for(nap.submit(60_000), 0.1))
        with pytest.raises(TimeoutError):
            await task
        return [int(r[0]) for r in results]

    assert asyncio.run(main()) == list(range(1, 21))


def test_a_function_belongs_to_its_grid(module_grid: Grid, own_module_grid: Grid) -> None:
    add = module_grid.function("add")
    with pytest.raises(ValueError, match="found by another grid"):
        own_module_grid.submit(add, 1, 2)
    own = own_module_grid.function("add")
    own_module_grid.close()
    with pytest.raises(gridrpc.GridClosed):
        own(1, 2)
    with pytest.raises(gridrpc.GridClosed):
        own_module_grid.function("pid")


def test_profiles_tell_where_and_how_long(each_module_grid: Grid) -> None:
    call = each_module_grid.function("calls/nap").submit(30)
    call.result(LONG)
    profile = call.profile
    times = [profile.submit, profile.sent, profile.received, profile.calc_in]
    assert times == sorted(times)
    assert 0.03 <= profile.calc_out - profile.calc_in < profile.retrieve - profile.submit
    assert 0 <= profile.cpu < 0.03
    assert profile.pid > 0
    assert call.function_name == "calls/nap"


def test_functions_describe_themselves(module_grid: Grid) -> None:
    doubles = module_grid.function("calls/doubles")
    assert str(doubles.__signature__) == "(notes, crashes, a, *, n=None, out=None)"
    assert doubles.description["idempotent"] is True
    assert [p["name"] for p in doubles.description["parameters"]] == [
        "notes", "crashes", "n", "a", "r",
    ]  # fmt: skip
    assert "Returns r." in doubles.__doc__
    assert repr(doubles) == f"<gridrpc function calls/doubles{doubles.__signature__}>"
    assert module_grid.function("calls/doubles") is doubles
