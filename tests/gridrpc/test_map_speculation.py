"""`map` with `speculate`: stragglers run twice, and each item has one result."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gridrpc
from gridrpc import Grid
from gridrpc._speculation import Speculation, _Copies
from processes import LONG

ITEMS = 8
EXPECTED = [10 * n for n in range(ITEMS)]
BOTH_ORDERS = pytest.mark.parametrize("ordered", [True, False])


@pytest.fixture(scope="module")
def three() -> Iterator[Grid]:
    # A worker that runs the call that lost ends soon.
    with Grid(3, grace=0.1) as grid:
        yield grid


def attempt(folder: str, item: int) -> int:
    """Which attempt at the item this is, from 1."""
    number = 1
    while True:
        try:
            os.close(os.open(f"{folder}/{item}.{number}", os.O_CREAT | os.O_EXCL))
            return number
        except FileExistsError:
            number += 1


def wait_for(*path: str) -> None:
    until = time.monotonic() + LONG
    while not Path(*path).exists() and time.monotonic() < until:
        time.sleep(0.01)


def hangs_once(folder: str, item: int) -> int:
    """The first attempt at the fourth item takes forever."""
    if attempt(folder, item) == 1 and item == 3:
        time.sleep(10 * LONG)
    return 10 * item


def second_fails(folder: str, item: int) -> int:
    """The second attempt at the fourth item fails, and the first one returns after that."""
    number = attempt(folder, item)
    if item == 3:
        if number > 1:
            Path(folder, "failed").touch()
            raise ValueError("twice is once too often")
        wait_for(folder, "failed")
        time.sleep(0.2)
    return 10 * item


def both_fail(folder: str, item: int) -> int:
    number = attempt(folder, item)
    if item == 3:
        wait_for(folder, "3.2")
        raise ValueError(f"attempt {number}")
    return 10 * item


def attempts(folder: Path) -> dict[int, int]:
    return Counter(int(one.stem) for one in folder.glob("*.[0-9]"))


@BOTH_ORDERS
@pytest.mark.parametrize("work", [hangs_once, second_fails])
def test_of_both_the_one_that_returns_gives_the_result(
    three: Grid, tmp_path: Path, ordered: bool, work: Any
) -> None:
    how = {"idempotent": True, "speculate": True, "ordered": ordered}
    results = three.map(work, [str(tmp_path)] * ITEMS, range(ITEMS), **how)
    came = list(results)
    assert (came if ordered else sorted(came)) == EXPECTED
    assert results.speculated == [3]
    assert attempts(tmp_path) == {n: 2 if n == 3 else 1 for n in range(ITEMS)}


def test_an_error_of_both_is_the_error(three: Grid, tmp_path: Path) -> None:
    results = three.map(
        both_fail, [str(tmp_path)] * ITEMS, range(ITEMS), idempotent=True, speculate=True,
        return_exceptions=True,
    )  # fmt: skip
    came = list(results)
    error = came.pop(3)
    assert isinstance(error, ValueError)
    assert str(error) == "attempt 1"
    assert came == [n for n in EXPECTED if n != 30]
    assert attempts(tmp_path)[3] == 2


def test_async_for_copies_stragglers(three: Grid, tmp_path: Path) -> None:
    async def all_of_it() -> list[int]:
        results = three.map(
            hangs_once, [str(tmp_path)] * ITEMS, range(ITEMS), idempotent=True, speculate=True
        )
        return [one async for one in results]

    assert asyncio.run(all_of_it()) == EXPECTED
    assert attempts(tmp_path)[3] == 2


def test_a_journal_has_one_result_and_numbers_count_all_items(three: Grid, tmp_path: Path) -> None:
    file = tmp_path / "journal"
    how = {"idempotent": True, "speculate": True, "journal": file}
    assert list(three.map(hangs_once, [str(tmp_path)] * 2, range(2), **how)) == EXPECTED[:2]
    rest = three.map(hangs_once, [str(tmp_path)] * ITEMS, range(ITEMS), **how)
    assert list(rest) == EXPECTED
    assert rest.speculated == [3]
    again = three.map(hangs_once, [str(tmp_path)] * ITEMS, range(ITEMS), **how)
    assert list(again) == EXPECTED
    assert again.speculated == []


def test_without_free_workers_nothing_is_copied() -> None:
    with Grid(1) as grid:
        results = grid.map(time.sleep, [0.0] * 5 + [0.3], idempotent=True, speculate=True)
        assert list(results) == [None] * 6
        assert results.speculated == []


def test_results_that_are_given_up_leave_no_copies(three: Grid, tmp_path: Path) -> None:
    results = three.map(
        hangs_once, [str(tmp_path)] * 4, range(4), idempotent=True, speculate=True, timeout=1.0
    )
    assert list(zip(range(3), results, strict=False)) == list(enumerate(EXPECTED[:3]))
    results.close()
    assert three.submit(abs, -1).result(LONG) == 1


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "`speculate` runs calls twice: give `idempotent=True`"),
        ({"idempotent": True, "chunk": 5}, "chunk is 5: calls that may be copied take one item"),
    ],
)
def test_only_idempotent_calls_of_one_item_may_be_copied(
    three: Grid, how: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        three.map(abs, [1], speculate=True, **how)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_both_have_failed_before_somebody_looks(three: Grid, order: tuple[int, int]) -> None:
    call, copy = (three.submit(int, text) for text in ("first", "other"))
    gridrpc.wait([call, copy])
    speculation = Speculation(lambda _: copy, lambda: 3)
    copies = _Copies(0, 1, call, copy)
    speculation._copies = {0: copies, 1: copies}
    assert [speculation.decide(token) for token in order] == [None, (0, call)]
    assert not any(map(speculation.knows, order))
