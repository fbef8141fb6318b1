"""The module of gridbench: the same tasks as in Python."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from gridbench.native import module
from gridbench.workload.task import PAGE, pattern
from gridrpc import Grid


@pytest.fixture(scope="module")
def grid() -> Iterator[Grid]:
    grid = Grid(workers=1, worker="native", modules=[module()])
    yield grid
    grid.close()


def test_a_task_touches_sleeps_and_makes_output(grid: Grid) -> None:
    data = np.ones(3 * PAGE + 1, np.uint8)
    call = grid.submit("gridbench_tasks/task", 0.01, data, grid.share(data), output_size=50_000)
    result = call.result(60)
    assert len(result.output) == 50_000
    assert len(set(result.output)) == 1
    calc_in, calc_out, slept, begun = result.times
    assert calc_out - calc_in >= slept >= 0.01
    profile = call.profile
    assert profile.calc_in <= begun <= calc_in <= calc_out <= profile.calc_out
    assert result.process[0] == profile.pid


def test_a_check_tells_what_came_and_makes_a_known_output(grid: Grid) -> None:
    data, shared = (np.random.default_rng(n).integers(0, 256, 70_001, np.uint8) for n in (1, 2))
    for other in (shared, grid.share(shared), np.empty(0, np.uint8)):
        got = grid.submit("gridbench_tasks/check", data, other, output_size=1_000).result(60)
        crc = zlib.crc32(b"" if isinstance(other, np.ndarray) and not other.size else shared)
        assert got.digests.tolist() == [zlib.crc32(data), crc]
        np.testing.assert_array_equal(got.output, pattern(1_000))


def test_what_does_next_to_nothing(grid: Grid) -> None:
    assert grid.submit("gridbench_tasks/null").result(60) is None
    assert list(grid.map("gridbench_tasks/take", range(1_000))) == [None] * 1_000
    data = np.arange(9, dtype=np.uint8)
    np.testing.assert_array_equal(grid.submit("gridbench_tasks/echo", data).result(60), data)
    slept = [float(one[0]) for one in grid.map("gridbench_tasks/sleep", [0.01, 0.0, -1.0])]
    assert slept[0] >= 0.01
    assert max(slept[1:]) < 0.01
