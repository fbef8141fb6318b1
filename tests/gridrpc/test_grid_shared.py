"""Shared data: given once, there once, read-only, and gone when nobody needs it."""

from __future__ import annotations

import gc
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remote
from gridrpc import Grid, GridClosed
from processes import LONG, descendants, until


def test_many_calls_read_it(each_grid: Grid) -> None:
    array = np.random.default_rng(1).random((500, 300))
    shared = each_grid.share(array)
    results = [call.result(LONG) for call in [each_grid.submit(remote.total, shared)] * 20]
    assert results == [float(array.sum())] * 20
    np.testing.assert_array_equal(each_grid.submit(remote.same, shared).result(LONG), array)


@pytest.mark.parametrize("size", [0, 1, 5, 100_000])
def test_arrays_are_read_only(each_grid: Grid, size: int) -> None:
    shared = each_grid.share(np.arange(float(size)))
    assert each_grid.submit(remote.writeable, shared).result(LONG) is False
    assert isinstance(each_grid.submit(remote.fill, shared).exception(LONG), ValueError)
    assert each_grid.submit(remote.total, shared).result(LONG) == np.arange(float(size)).sum()


def test_an_array_with_gaps_is_shared_as_one_without(each_grid: Grid) -> None:
    array = np.arange(90_000.0).reshape(300, 300)[5:200, ::3]
    swapped = each_grid.share(np.arange(9.0).astype(">f8"))
    assert each_grid.submit(remote.total, swapped).result(LONG) == 36
    shared = each_grid.share(array)
    np.testing.assert_array_equal(each_grid.submit(remote.same, shared).result(LONG), array)
    assert each_grid.submit(remote.writeable, shared).result(LONG) is False


@pytest.mark.parametrize("order", ["C", "F"])
def test_order_stays(each_grid: Grid, order: Any) -> None:
    shared = each_grid.share(np.asarray(np.arange(60_000.0).reshape(200, 300), order=order))
    kind, _, shape, _, fortran = each_grid.submit(remote.describe, shared).result(LONG)
    assert (kind, shape, fortran) == ("ndarray", (200, 300), order == "F")


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_bytes_arrive_as_a_view(each_grid: Grid, make: Any) -> None:
    shared = each_grid.share(make(b"0123456789" * 10_000))

    def look(data: memoryview) -> tuple[str, bool, bytes]:
        return type(data).__name__, data.readonly, bytes(data[:12])

    assert each_grid.submit(look, shared).result(LONG) == ("memoryview", True, b"012345678901")


def test_objects_with_arrays(each_grid: Grid) -> None:
    value = {"a": np.arange(50_000), "b": [np.ones(3), "text"], "c": lambda x: x + 1}
    shared = each_grid.share(value)

    def look(data: dict[str, Any]) -> Any:
        return data["a"].sum(), data["a"].flags.writeable, data["b"][1], data["c"](1)

    assert each_grid.submit(look, shared).result(LONG) == (
        np.arange(50_000).sum(),
        False,
        "text",
        2,
    )


def test_nested_in_other_arguments(each_grid: Grid) -> None:
    one, two = each_grid.share(np.ones(50_000)), each_grid.share(np.full(3, 2.0))
    data = {"list": [one, two, one, np.ones(4)], "tuple": (0, two)}
    assert each_grid.submit(remote.total_nested, data).result(LONG) == 100_000 + 6 + 4 + 6
    call = each_grid.submit(remote.everything, [one], two=two)
    (first,), named = call.result(LONG)
    assert len(first) == 50_000
    assert list(named["two"]) == [2.0, 2.0, 2.0]


def test_in_map(each_grid: Grid) -> None:
    shared = each_grid.share(np.ones(1_000))
    numbers = [np.full(2, n) for n in range(20)]
    expected = [1_000 + 2 * n for n in range(20)]
    assert list(each_grid.map(remote.total, [shared] * 20, numbers)) == expected
    assert list(each_grid.map(remote.total, [shared] * 20, numbers, chunk=7)) == expected


def test_it_may_be_dropped_while_calls_use_it(own_grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    array = np.arange(200_000.0)
    shared = own_grid.share(array)
    calls = [own_grid.submit(remote.wait_for, str(gate), shared) for _ in range(6)]
    del shared
    gc.collect()
    again = own_grid.share(array)
    gate.touch()
    for call in calls:
        np.testing.assert_array_equal(call.result(LONG), array)
    np.testing.assert_array_equal(own_grid.submit(remote.same, again).result(LONG), array)


def test_shared_twice(own_grid: Grid) -> None:
    array = np.arange(100_000.0)
    first, second = own_grid.share(array), own_grid.share(array.copy())
    assert own_grid.submit(lambda a, b: a is b, first, second).result(LONG)
    del first
    gc.collect()
    assert own_grid.submit(remote.total, second).result(LONG) == array.sum()


def test_one_change_of_the_original_is_not_seen(each_grid: Grid) -> None:
    array = np.zeros(100_000)
    before = each_grid.share(array)
    array[:] = 1
    after = each_grid.share(array)
    assert each_grid.submit(remote.total, before).result(LONG) == 0
    assert each_grid.submit(remote.total, after).result(LONG) == 100_000


def test_what_a_worker_keeps_of_it_stays(lone_grid: Grid) -> None:
    array = np.arange(100_000.0)
    shared = lone_grid.share(array)
    lone_grid.submit(remote.keep, "shared", shared).result(LONG)
    del shared
    gc.collect()
    for n in range(10):
        other = lone_grid.share(np.full(100_000, float(n)))
        assert lone_grid.submit(remote.total, other).result(LONG) == n * 100_000
    np.testing.assert_array_equal(lone_grid.submit(remote.give, "shared").result(LONG), array)


def test_a_replaced_worker_gets_it_again(lone_grid: Grid) -> None:
    shared = lone_grid.share(np.ones(100_000))
    assert lone_grid.submit(remote.total, shared).result(LONG) == 100_000
    assert lone_grid.submit(remote.die, "kill").exception(LONG) is not None
    assert lone_grid.submit(remote.total, shared).result(LONG) == 100_000


def own_memory(pids: set[int], field: str) -> int:
    """Sum of a field over processes, bytes."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{field}:"):
                total += int(line.split()[1]) * 1024
    return total


def test_it_is_in_memory_once(tmp_path: Path) -> None:
    size, workers = 64 << 20, 6
    before = descendants()
    with Grid(workers=workers) as grid:
        grid.wait_until_ready(LONG)
        pids = descendants() - before
        gate = tmp_path / "gate"
        warm = [grid.submit(remote.touch_and_hold, np.ones(9), str(gate)) for _ in range(workers)]
        gate.touch()
        for call in warm:
            call.result(LONG)
        start = own_memory(pids, "Pss")
        gate = tmp_path / "second gate"
        shared = grid.share(np.ones(size, np.uint8))
        calls = [grid.submit(remote.touch_and_hold, shared, str(gate)) for _ in range(workers)]
        assert until(lambda: len(list(tmp_path.glob("second gate.*"))) == workers)
        grown = own_memory(pids, "Pss") - start
        seen = own_memory(pids, "Rss")
        gate.touch()
        for call in calls:
            call.result(LONG)
        assert seen > workers * size, "all workers have read all of it"
        assert grown < 1.3 * size


def shared_files() -> set[str]:
    """The memory files that this process has mapped, by number."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return {line.split()[4] for line in lines if "gridrpc-segment" in line}


def test_memory_goes_when_it_is_dropped() -> None:
    # What earlier grids have left may go meanwhile.
    earlier = shared_files()
    with Grid(workers=2, keep_free=1 << 20) as grid:
        shared = grid.share(np.ones(32 << 20, np.uint8))
        pids = set()
        for call in [grid.submit(remote.total, shared) for _ in range(10)]:
            call.result(LONG)
            pids.add(call.profile.pid)
        assert shared_files() - earlier
        del shared
        gc.collect()
        # Nothing has to be called for it.
        assert until(lambda: shared_files() <= earlier)
        assert until(lambda: own_memory({pid for pid in pids if pid}, "Pss_Shmem") < 8 << 20)


def test_memory_is_used_again(lone_grid: Grid) -> None:
    before = shared_files()
    seen = set()
    for n in range(8):
        shared = lone_grid.share(np.full(8 << 20, n, np.uint8))
        assert lone_grid.submit(remote.total, shared).result(LONG) == n * (8 << 20)
        seen |= shared_files() - before
        del shared
        gc.collect()
        # The worker says that it reads it no more.
        lone_grid.submit(remote.pid).result(LONG)
    assert 1 <= len(seen) <= 3


def test_what_a_forked_child_reads_stays(lone_grid: Grid, tmp_path: Path) -> None:
    gate, found = tmp_path / "gate", tmp_path / "found"
    shared = lone_grid.share(np.full(1 << 20, 7, np.uint8))
    lone_grid.submit(remote.read_in_child, str(gate), str(found), shared).result(LONG)
    del shared
    gc.collect()
    for n in range(5):
        lone_grid.submit(remote.pid).result(LONG)
        other = lone_grid.share(np.full(1 << 20, 10 + n, np.uint8))
        assert lone_grid.submit(remote.total, other).result(LONG) == (10 + n) << 20
        del other
        gc.collect()
    gate.touch()
    assert until(found.exists)
    assert found.read_text() == str(7 << 20)


def test_after_the_grid_is_closed() -> None:
    with Grid(workers=1) as grid:
        shared = grid.share(np.ones(10))
    with pytest.raises(GridClosed, match="closed"):
        grid.submit(remote.total, shared)
    with pytest.raises(GridClosed, match="closed"):
        grid.share(3)


def test_in_a_call_of_another_grid(own_grid: Grid, lone_grid: Grid) -> None:
    shared = own_grid.share(np.ones(10))
    mine = lone_grid.share(np.zeros(10))
    with pytest.raises(ValueError, match="another grid"):
        lone_grid.submit(remote.total, [shared])
    assert lone_grid.submit(remote.total, mine).result(LONG) == 0


def test_it_does_not_go_by_other_ways(own_grid: Grid) -> None:
    shared = own_grid.share(np.ones(10))
    with pytest.raises(TypeError, match="its own grid"):
        pickle.dumps(shared)
    with pytest.raises(TypeError, match="its own grid"):
        own_grid.share([shared])


def test_what_does_not_pickle(own_grid: Grid) -> None:
    with pytest.raises(TypeError, match="stays where it is"):
        own_grid.share(remote.Lock())


def test_repr_and_size(own_grid: Grid) -> None:
    shared = own_grid.share(np.ones(1_000_000))
    assert shared.nbytes >= 8_000_000
    assert repr(shared).startswith("<gridrpc.Shared ")
    assert "8,000," in repr(shared)


def test_from_many_threads(each_grid: Grid) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        for step in range(20):
            # Some are equal to those of other threads, and all are dropped soon.
            shared = each_grid.share(np.full(20_000, (seed + step) % 5))
            call = each_grid.submit(remote.total, shared)
            del shared
            if call.result(LONG) != 20_000 * ((seed + step) % 5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
