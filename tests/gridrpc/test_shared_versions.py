"""`Shared.replace`: each call sees one version as a whole, and old versions go."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remote
from gridrpc import CallCancelled, Grid
from grids import CompileIdl, opened
from hosts import on_hosts, rig_of, server
from processes import LONG, until

IDL = """
Module versions;
Define total(IN int n, IN double x[n], OUT double y[1])
{ int i; y[0] = 0; for (i = 0; i < n; i++) y[0] += x[i]; }
"""


def ends(array: Any) -> tuple[float, float, int]:
    return float(array[0]), float(array[-1]), len(array)


def after(file: str, array: Any) -> tuple[float, float, int]:
    remote.wait_for(file)
    return ends(array)


def test_a_call_sees_the_version_of_its_submission(each_grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    market = each_grid.share(np.full(50_000, 1.0))
    # More than workers: some run, and others wait.
    early = [each_grid.submit(after, str(gate), market) for _ in range(6)]
    market.replace(np.full(60_000, 2.0))
    late = [each_grid.submit(after, str(gate), market) for _ in range(6)]
    market.replace(b"other")
    gate.touch()
    assert {call.result(LONG) for call in early} == {(1.0, 1.0, 50_000)}
    assert {call.result(LONG) for call in late} == {(2.0, 2.0, 60_000)}
    assert each_grid.submit(bytes, market).result(LONG) == b"other"
    assert market.nbytes < 1000


def test_a_failure_leaves_the_version(grid: Grid) -> None:
    market = grid.share(np.arange(5.0))
    with pytest.raises(TypeError):
        market.replace(threading.Lock())
    assert grid.submit(remote.total, market).result(LONG) == 10


def test_functions_that_refer_to_it(grid: Grid) -> None:
    market = grid.share(np.full(1000, 1.0))

    def value() -> float:
        return float(market[0])  # type: ignore[index]

    assert grid.submit(value).result(LONG) == 1
    market.replace(np.full(1000, 2.0))
    assert grid.submit(value).result(LONG) == 2
    assert list(grid.map(lambda n: market[0] * n, range(3))) == [0, 2, 4]  # type: ignore[index]
    started = iter(grid.map(lambda n: (n, float(market[0])), range(5000), chunk=1))  # type: ignore[index]
    assert next(started) == (0, 2.0)
    # What a map carries with it was taken at its begin.
    market.replace(np.full(1000, 3.0))
    assert {version for _, version in started} == {2.0}


def test_items_of_a_map(grid: Grid) -> None:
    market = grid.share(np.full(1000, 1.0))

    def items() -> Any:
        yield market
        market.replace(np.full(1000, 2.0))
        yield market

    assert [first for first, _, _ in grid.map(ends, items(), chunk=1)] == [1, 2]


def test_functions_of_modules(compile_idl: CompileIdl) -> None:
    with opened(workers=1, worker="native", modules=[compile_idl(IDL)]) as grid:
        total = grid.function("versions/total")
        data = grid.share(np.full(3, 1.0))
        calls = [grid.submit(total, 3, data)]
        data.replace(np.full(3, 5.0))
        calls.append(grid.submit(total, 3, data))
        assert [call.result(LONG)[0] for call in calls] == [3, 15]


def test_old_versions_are_freed(tmp_path: Path) -> None:
    with opened(workers=2) as grid:
        before = shared_memory()
        market = grid.share(np.zeros(500_000))
        for n in range(1, 40):
            assert grid.submit(ends, market).result(LONG)[0] == n - 1
            market.replace(np.full(500_000, float(n)))
        gc.collect()
        # 4 MB each: 39 of them would be 156 MB.
        assert until(lambda: shared_memory() < before + (40 << 20))
        # A call that waits needs its version, and frees it when it is cancelled.
        gate = tmp_path / "gate"
        calls = [grid.submit(after, str(gate), market) for _ in range(4)]
        market.replace(np.ones(500_000))
        assert grid.cancel_all() == 4
        assert all(isinstance(call.exception(LONG), CallCancelled) for call in calls)
        assert grid.cancel_all() == 0
        assert grid.submit(ends, market).result(LONG) == (1, 1, 500_000)


def shared_memory() -> int:
    """Bytes of shared memory that this process maps."""
    total = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "memfd:" in line:
            start, _, end = line.split()[0].partition("-")
            total += int(end, 16) - int(start, 16)
    return total


def test_it_is_replaced_while_other_threads_submit(grid: Grid) -> None:
    market = grid.share(np.full(20_000, 0.0))
    stop = threading.Event()
    wrong: list[Any] = []

    def value(n: int) -> float:
        return float(market[n])  # type: ignore[index]

    def submit() -> None:
        last = 0.0
        while not stop.is_set():
            try:
                first, end, _ = grid.submit(ends, market).result(LONG)
                carried = grid.submit(value, 5).result(LONG)
            except Exception as error:
                wrong.append(error)
                return
            if first != end or first < last or carried < first:
                wrong.append((first, end, last, carried))
            last = first

    threads = [threading.Thread(target=submit) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(1, 200):
        market.replace(np.full(20_000, float(n)))
    stop.set()
    for thread in threads:
        thread.join(LONG)
    assert wrong == []


def test_versions_on_hosts(tmp_path: Path) -> None:
    with rig_of(1) as rig, on_hosts(tmp_path, server(rig, "node1")) as grid:
        market = grid.share(np.full(50_000, 0.0))
        gate = tmp_path / "gate"
        for n in range(1, 6):
            held = grid.submit(after, str(gate), market)
            market.replace(np.full(50_000, float(n)))
            assert grid.submit(ends, market).result(LONG)[:2] == (n, n)
            gate.touch()
            assert held.result(LONG)[:2] == (n - 1, n - 1)
            gate.unlink()


def test_cancelling_all_calls_ends_a_map(own_grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    results = own_grid.map(remote.wait_for, [str(gate)] * 20, chunk=1)
    timer = threading.Timer(0.3, own_grid.cancel_all)
    timer.start()
    with pytest.raises(CallCancelled):
        next(results)
    timer.join(LONG)
    assert own_grid.submit(abs, -1).result(LONG) == 1


def test_references_to_equal_data_are_apart(grid: Grid) -> None:
    one, other = grid.share(b"same"), grid.share(b"same")
    one.replace(b"else")
    assert grid.submit(bytes, other).result(LONG) == b"same"
    assert grid.submit(bytes, one).result(LONG) == b"else"
