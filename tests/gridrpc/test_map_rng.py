"""`map` with random generators: each item has the same one on any number of workers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
import remote
from gridrpc import Grid
from grids import opened
from processes import LONG

N = 60


def draw(item: int, rng: np.random.Generator) -> float:
    return item + float(rng.random())


def draw_with(item: int, scale: float = 1.0, *, rng: np.random.Generator) -> float:
    return item + scale * float(rng.random())


def draw_at_the_second_attempt(
    item: int, folder: str, rng: np.random.Generator
) -> tuple[int, float]:
    value = float(rng.random())
    marker = Path(folder) / str(item)
    if not marker.exists():
        marker.touch()
        raise ConnectionError
    return item, value


def draws(seed: Any, n: int = N) -> list[float]:
    return [i + float(rng.random()) for i, rng in enumerate(np.random.default_rng(seed).spawn(n))]


@pytest.mark.parametrize("chunk", ["auto", 1, 7])
@pytest.mark.parametrize("ordered", [True, False])
def test_the_same_as_in_a_loop(grid: Grid, chunk: Any, ordered: bool) -> None:
    came = list(grid.map(draw, range(N), rng=7, chunk=chunk, ordered=ordered))
    assert sorted(came) == sorted(draws(7))
    if ordered:
        assert came == draws(7)


def test_any_number_of_workers() -> None:
    with opened(workers=5) as grid:
        assert list(grid.map(draw, range(N), rng=7)) == draws(7)


def test_lambdas_and_further_arguments(grid: Grid) -> None:
    assert list(grid.map(lambda i, rng: i + float(rng.random()), range(N), rng=7)) == draws(7)
    assert list(grid.map(draw_with, range(N), [1.0] * N, rng=7)) == draws(7)
    rows = [(i, 1.0) if i % 2 else {"item": i} for i in range(N)]
    assert list(grid.starmap(draw_with, rows, rng=7)) == draws(7)


def test_attempts_and_copies_draw_the_same(grid: Grid, tmp_path: Path) -> None:
    again = grid.map(draw_at_the_second_attempt, range(5), [str(tmp_path)] * 5, retries=1, rng=7)
    assert [i + value for i, value in again] == draws(7, 5)
    twice = grid.map(draw, range(8), rng=7, idempotent=True, speculate=True)
    assert list(twice) == draws(7, 8)


def test_what_is_a_seed(grid: Grid) -> None:
    assert list(grid.map(draw, range(5), rng=[1, 2])) == draws([1, 2], 5)
    assert list(grid.map(draw, range(5), rng=np.int64(7))) == draws(7, 5)
    first, other = (list(grid.map(draw, range(5), rng=True)) for _ in range(2))
    assert first != other
    # A generator gives each map other streams, and the same in the next run.
    runs = []
    for kind in (np.random.PCG64, np.random.Philox) * 2:
        rng = np.random.Generator(kind(7))
        runs.append([list(grid.map(draw, range(5), rng=rng)) for _ in range(2)])
    assert runs[0] == runs[2] != runs[1] == runs[3]
    assert runs[0][0] != runs[0][1]
    (child,) = np.random.default_rng(7).spawn(1)
    assert runs[0][0] == [i + float(rng.random()) for i, rng in enumerate(child.spawn(5))]
    seed = np.random.SeedSequence(7)
    assert [list(grid.map(draw, range(5), rng=seed)) for _ in range(2)] == runs[0]


@pytest.mark.parametrize("rng", [-1, 1.5, "seven", object(), random.Random(7)])
def test_what_is_no_seed(grid: Grid, rng: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="give True, a seed from 0 on"):
        grid.map(draw, range(5), rng=rng)


def test_a_seed_of_the_grid(tmp_path: Path) -> None:
    runs = []
    for workers in (1, 3):
        with opened(workers=workers, seed=7) as grid:
            maps = [list(grid.map(draw, range(5), rng=True)) for _ in range(2)]
            call = grid.submit(draw, 0, rng=grid.rng()).result(LONG)
            # A seed of its own takes precedence.
            assert list(grid.map(draw, range(5), rng=8)) == draws(8, 5)
            journal = tmp_path / "journal"
            stored = list(grid.map(draw, range(5), rng=True, journal=journal, idempotent=True))
        runs.append((maps, call, stored))
    assert runs[0] == runs[1]
    (first, second), call, _ = runs[0]
    children = np.random.default_rng(7).spawn(3)
    assert first == [i + float(rng.random()) for i, rng in enumerate(children[0].spawn(5))]
    assert second == [i + float(rng.random()) for i, rng in enumerate(children[1].spawn(5))]
    assert call == float(children[2].random())


def test_grids_without_a_seed(grid: Grid) -> None:
    assert grid.rng().random() != grid.rng().random()


@pytest.mark.parametrize("seed", [-1, 1.5, "seven", True, object()])
def test_what_is_no_seed_of_a_grid(seed: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"`seed` is .*: give a seed from 0 on"):
        Grid(1, seed=seed)


def test_functions_that_cannot_have_one(grid: Grid, native_grid: Grid) -> None:
    with pytest.raises(TypeError, match="functions of compiled modules cannot have `rng`"):
        native_grid.map("basics/number", [1], rng=7)
    with pytest.raises(TypeError, match="unexpected keyword argument 'rng'"):
        list(grid.map(remote.same, ["a"], rng=7))
    # None and False: no generators.
    assert list(grid.map(abs, [-1], rng=None)) == list(grid.map(abs, [-1], rng=False)) == [1]


def test_a_journal(grid: Grid, tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    def run(n: int, rng: Any) -> list[float]:
        return list(grid.map(draw, range(n), rng=rng, journal=journal, idempotent=True))

    assert run(20, 7) == draws(7, 20)
    assert run(N, 7) == draws(7)
    with pytest.raises(gridrpc.JournalError, match="has changed since"):
        run(N, 8)
    with pytest.raises(ValueError, match="draws another seed in each run"):
        run(N, True)


def test_the_call_of_a_lost_worker(tmp_path: Path) -> None:
    def crash_once(item: int, folder: str, rng: Any) -> float:
        import os

        value = item + float(rng.random())
        marker = Path(folder) / f"crashed-{item}"
        if item == 2 and not marker.exists():
            marker.touch()
            os._exit(1)
        return value

    with opened(workers=2) as grid:
        came = grid.map(
            crash_once, range(6), [str(tmp_path)] * 6, rng=7, idempotent=True, timeout=LONG
        )
        assert list(came) == draws(7, 6)
