"""Remote objects: classes of compiled modules, with state in a worker of their own."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import CompileIdl, opened
from processes import LONG, until

IDL = r"""
Module objects;
Globals {
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
}
Define pid(OUT long r[1]) { *r = getpid(); }
DefClass counter "Counts" {
    DefState { static long value; }
    DefMethod add(IN long n, OUT long r[1]) "Adds and returns" { *r = value += n; }
    DefMethod get(OUT long r[1]) { *r = value; }
    DefMethod pid(OUT long r[1]) { *r = getpid(); }
    DefMethod slow_add(IN int ms, IN long n) { usleep(1000 * ms); value = value * 10 + n; }
    DefMethod crash() { raise(SIGKILL); }
    DefMethod each(IN int n, told(IN int i)) { for (int i = 0; i < n; i++) told(value + i); }
}
DefClass series {
    DefState { static double *kept; static int length; }
    DefMethod store(IN int n, IN double a[n])
        { kept = realloc(kept, n * sizeof *a); memcpy(kept, a, n * sizeof *a); length = n; }
    DefMethod scaled(IN int n, IN double factor, OUT double r[n])
        { for (int i = 0; i < n && i < length; i++) r[i] = factor * kept[i]; }
}
DefClass lived {
    DefState {
        static char path[4096];
        static int initialized;
    }
    DefMethod _initialize() { initialized = 42; }
    DefMethod _finalize()
        { FILE *file = fopen(path, "a"); if (file) { fputs("finalized", file); fclose(file); } }
    DefMethod seen(OUT int r[1]) { *r = initialized; }
    DefMethod note(IN string file) { strcpy(path, file); }
    DefMethod nap(IN int ms) { usleep(1000 * ms); }
}
DefClass stillborn {
    DefMethod _initialize() { raise(SIGKILL); }
    DefMethod get(OUT int r[1]) { *r = 1; }
}
"""


def test_objects_keep_their_state_each_its_own(each_module_grid: Grid) -> None:
    grid = each_module_grid
    with grid.object("objects/counter") as one, grid.object("counter") as other:
        assert one.add(5)[0] == 5
        assert other.add(1)[0] == 1
        assert one.add(2)[0] == 7
        assert (one.get()[0], other.get()[0]) == (7, 1)
        assert one.pid()[0] != other.pid()[0]
    with grid.object("objects/counter") as fresh:
        assert fresh.get()[0] == 0


def test_objects_work_beside_functions(each_module_grid: Grid) -> None:
    pid = each_module_grid.function("objects/pid")
    with each_module_grid.object("objects/counter") as counter:
        own = counter.pid()[0]
        assert own not in {pid()[0] for _ in range(20)}


def test_calls_of_one_object_run_in_their_order(module_grid: Grid) -> None:
    with module_grid.object("objects/counter") as counter:
        calls = [counter.slow_add.submit(30 - 10 * n, n) for n in range(1, 4)]
        for call in calls:
            call.result(LONG)
        assert counter.get()[0] == 123


@pytest.mark.parametrize("size", [3, 200_000])
def test_objects_keep_arrays(each_module_grid: Grid, size: int) -> None:
    a = np.arange(size) + 0.5
    with each_module_grid.object("objects/series") as series:
        series.store(a)
        np.testing.assert_array_equal(series.scaled(size, 2.0), 2 * a)
        a[...] = 0
        assert series.scaled(3, 1.0).tolist() == [0.5, 1.5, 2.5]


def test_methods_may_call_back(each_module_grid: Grid) -> None:
    text: list[int] = []
    with each_module_grid.object("objects/counter") as counter:
        counter.add(10)
        counter.each(3, text.append)
    assert text == [10, 11, 12]


def test_initialize_and_finalize_run_once(each_module_grid: Grid, tmp_path: Path) -> None:
    note = tmp_path / "note"
    lived = each_module_grid.object("objects/lived")
    assert lived.seen()[0] == 42
    lived.note(str(note))
    lived.close()
    assert note.read_text() == "finalized"
    lived.close()
    assert note.read_text() == "finalized"


def test_a_closed_object_takes_no_calls(module_grid: Grid) -> None:
    counter = module_grid.object("objects/counter")
    add = counter.add
    assert repr(counter).endswith((": starting>", ": ready>"))
    counter.close()
    assert repr(counter) == "<gridrpc object objects/counter: closed>"
    with pytest.raises(gridrpc.ObjectLost):
        counter.add(1)
    with pytest.raises(gridrpc.ObjectLost):
        add(1)


def test_closing_gives_up_what_runs(compile_idl: CompileIdl) -> None:
    with opened(workers=1, worker="native", modules=[compile_idl(IDL)]) as grid:
        counter = grid.object("objects/counter")
        counter.get()
        running = counter.slow_add.submit(60_000, 1)
        waiting = counter.get.submit()
        counter.close()
        for call in (running, waiting):
            assert isinstance(call.exception(LONG), gridrpc.GridError)


def test_a_lost_object_says_how_it_was_lost(each_module_grid: Grid) -> None:
    counter = each_module_grid.object("objects/counter")
    counter.add(1)
    with pytest.raises(gridrpc.WorkerLost) as lost:
        counter.crash()
    assert lost.value.signal == 9
    for _ in range(2):
        with pytest.raises(gridrpc.ObjectLost, match=r"(?i)signal 9|SIGKILL|killed"):
            counter.get()
    assert "lost" in repr(counter)
    counter.close()
    with each_module_grid.object("objects/counter") as another:
        assert another.get()[0] == 0


def test_an_object_does_not_take_over_the_loss_of_the_last(each_module_grid: Grid) -> None:
    for _ in range(20):
        with each_module_grid.object("objects/counter") as counter:
            assert counter.get()[0] == 0
            with pytest.raises(gridrpc.WorkerLost):
                counter.crash()


def test_calls_behind_a_loss_fail(each_module_grid: Grid) -> None:
    with each_module_grid.object("objects/counter") as counter:
        counter.get()
        calls = [counter.slow_add.submit(50, 1), counter.crash.submit(), counter.get.submit()]
        calls[0].result(LONG)
        for call in calls[1:]:
            assert isinstance(call.exception(LONG), gridrpc.WorkerLost | gridrpc.ObjectLost)
    assert each_module_grid.function("pid")()[0] > 0


def test_an_object_whose_beginning_fails_raises(module_grid: Grid) -> None:
    with pytest.raises(gridrpc.GridError):
        module_grid.object("objects/stillborn")
    assert module_grid.function("pid")()[0] > 0


def test_start_timeout(module_grid: Grid) -> None:
    with module_grid.object("objects/counter", start_timeout=LONG) as counter:
        assert counter.get()[0] == 0


def test_workers_that_do_not_start_in_time(
    compile_idl: CompileIdl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_start.py").write_text("import time\ntime.sleep(2)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with (
        opened(workers=1, preload=("slow_start",), modules=[compile_idl(IDL)]) as grid,
        pytest.raises(TimeoutError, match=r"takes longer than 0\.1"),
    ):
        grid.object("objects/counter", start_timeout=0.1)


def test_deadlines_and_cancelling_of_methods(module_grid: Grid) -> None:
    with module_grid.object("objects/counter") as counter:
        counter.add(1)
        with pytest.raises(gridrpc.DeadlineExceeded):
            counter.slow_add(60_000, 1, deadline=0.1)
        # Its worker had to be ended, and the state is gone with it.
        assert until(lambda: "lost" in repr(counter))
        with pytest.raises(gridrpc.ObjectLost):
            counter.get()


def test_objects_that_nobody_holds_are_ended(module_grid: Grid) -> None:
    counter = module_grid.object("objects/counter")
    pid = int(counter.pid()[0])
    del counter
    gc.collect()
    assert until(lambda: not Path(f"/proc/{pid}").exists())


def test_objects_end_with_their_grid(compile_idl: CompileIdl, tmp_path: Path) -> None:
    note = tmp_path / "note"
    with opened(workers=1, worker="native", modules=[compile_idl(IDL)]) as grid:
        lived = grid.object("objects/lived")
        lived.note(str(note))
        counter = grid.object("objects/counter")
        pid = int(counter.pid()[0])
    assert until(lambda: not Path(f"/proc/{pid}").exists())
    with pytest.raises(gridrpc.GridError):
        counter.get()
    lived.close()
    counter.close()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("objects/none", "module `objects` has no class `none`; it has counter, series"),
        ("nowhere/counter", "there is no module `nowhere`"),
        ("objects/pid", "no class `pid`"),
    ],
)
def test_classes_that_are_not_there(module_grid: Grid, name: str, said: str) -> None:
    with pytest.raises(gridrpc.FunctionNotFound, match=said):
        module_grid.object(name)


def test_methods_that_are_not_there(module_grid: Grid) -> None:
    with module_grid.object("objects/counter") as counter:
        with pytest.raises(AttributeError, match=r"has no method `subtract`; it has .*add"):
            counter.subtract(1)
        assert {"add", "get", "close"} <= set(dir(counter))
        assert counter.add.description["description"] == "Adds and returns"


def test_many_objects_at_once(module_grid: Grid) -> None:
    counters = [module_grid.object("objects/counter") for _ in range(8)]
    calls = [counter.add.submit(n) for n, counter in enumerate(counters)]
    assert [call.result(LONG)[0] for call in calls] == list(range(8))
    for counter in counters:
        counter.close()
