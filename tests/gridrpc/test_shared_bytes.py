"""Shared bytes can be used as bytes."""

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
