"""Shared data where it was easy to get wrong: bytes, and several grids in one process."""

from __future__ import annotations

import pytest

import gridrpc


def part(data, start: int, end: int) -> tuple[str, bytes]:
    return type(data).__name__, bytes(data[start:end])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_shared_bytes_arrive_as_a_memoryview(kind):
    with gridrpc.Grid(workers=1) as grid:
        shared = grid.share(kind(b"abcdef"))
        assert grid.submit(part, shared, 1, 3).result(60) == ("memoryview", b"bc")


@pytest.mark.parametrize("worker", ["python", "native"])
def test_shared_data_of_one_grid_is_unknown_to_another(worker):
    function = part if worker == "python" else "builtin/echo"
    settings = {"workers": 1, "worker": worker}
    with gridrpc.Grid(**settings) as one, gridrpc.Grid(**settings) as two:
        mine = [one.share(b"one %d" % n) for n in range(3)]
        others = [two.share(b"two %d" % n) for n in range(3)]
        for shared in others:
            with pytest.raises(ValueError, match="belongs to another grid"):
                one.submit(function, shared, 0, 5)
        assert len({shared.blob for shared in mine + others}) == 6
