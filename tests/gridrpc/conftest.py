"""Grids that the tests of a file share. Tests that break workers or settings open their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gridrpc

sys.path.insert(0, str(Path(__file__).parent))


@contextmanager
def opened(**settings: Any) -> Iterator[gridrpc.Grid]:
    """A grid that gives up what still runs when it is closed: a test that fails must not hang."""
    grid = gridrpc.Grid(**settings)
    try:
        yield grid
    finally:
        grid.close()


@pytest.fixture(scope="module")
def grid() -> Iterator[gridrpc.Grid]:
    with opened(workers=2) as grid:
        yield grid


@pytest.fixture(scope="module", params=["unix", "tcp"])
def each_grid(request: pytest.FixtureRequest) -> Iterator[gridrpc.Grid]:
    """A grid of Python workers for each transport."""
    with opened(workers=2, transport=request.param) as grid:
        yield grid


@pytest.fixture(scope="module", params=["unix", "tcp"])
def native_grid(request: pytest.FixtureRequest) -> Iterator[gridrpc.Grid]:
    """A grid of native workers for each transport."""
    with opened(workers=2, worker="native", transport=request.param) as grid:
        yield grid


@pytest.fixture
def lone_grid() -> Iterator[gridrpc.Grid]:
    """One worker of the test's own, which it may break."""
    with opened(workers=1) as grid:
        yield grid


@pytest.fixture
def own_grid() -> Iterator[gridrpc.Grid]:
    """Two workers of the test's own, which it may break."""
    with opened(workers=2) as grid:
        yield grid
