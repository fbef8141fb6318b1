"""Grids that the tests of a file share. Tests that break workers or settings open their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gridrpc

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def grid() -> Iterator[gridrpc.Grid]:
    with gridrpc.Grid(workers=2) as grid:
        yield grid


@pytest.fixture(scope="module", params=["unix", "tcp"])
def each_grid(request: pytest.FixtureRequest) -> Iterator[gridrpc.Grid]:
    """A grid of Python workers for each transport."""
    with gridrpc.Grid(workers=2, transport=request.param) as grid:
        yield grid


@pytest.fixture(scope="module", params=["unix", "tcp"])
def native_grid(request: pytest.FixtureRequest) -> Iterator[gridrpc.Grid]:
    """A grid of native workers for each transport."""
    with gridrpc.Grid(workers=2, worker="native", transport=request.param) as grid:
        yield grid


@pytest.fixture
def lone_grid() -> Iterator[gridrpc.Grid]:
    """One worker of the test's own, which it may break."""
    with gridrpc.Grid(workers=1) as grid:
        yield grid


@pytest.fixture
def own_grid() -> Iterator[gridrpc.Grid]:
    """Two workers of the test's own, which it may break."""
    with gridrpc.Grid(workers=2) as grid:
        yield grid
