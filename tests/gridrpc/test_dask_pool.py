"""Schedulers of Dask, to which a grid is a pool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import dask
import pytest

import gridrpc
from grids import opened


@pytest.fixture(scope="module", params=["grid", "executor"])
def pool(request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened(workers=2) as grid:
        yield grid if request.param == "grid" else gridrpc.Executor(grid=grid)


def square(x: int) -> int:
    return x * x


def fail(x: int) -> int:
    raise KeyError(x)


def pid(_: int) -> int:
    return os.getpid()


def test_a_graph(pool: Any) -> None:
    squares = [dask.delayed(square)(n) for n in range(20)]
    total = dask.delayed(sum)(squares)
    assert dask.compute(total, scheduler="processes", pool=pool) == (2470,)
    pids = dask.compute(
        *[dask.delayed(pid)(n) for n in range(20)], scheduler="processes", pool=pool
    )
    assert os.getpid() not in pids


def test_the_pool_of_the_configuration(pool: Any) -> None:
    with dask.config.set(pool=pool, scheduler="processes"):
        assert dask.delayed(square)(7).compute() == 49


def test_an_error_of_a_task(pool: Any) -> None:
    with pytest.raises(KeyError, match="7"):
        dask.compute(dask.delayed(fail)(7), scheduler="processes", pool=pool)
