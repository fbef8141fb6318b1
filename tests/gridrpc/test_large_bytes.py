"""Large bytes, bytearrays and texts travel beside the pickle and arrive as they were."""

from __future__ import annotations

import functools
import gc
import pickle
import random
from typing import Any

import numpy as np
import pytest

from gridrpc._pickling import LARGE, MAX_BUFFERS, dumps

KINDS = {
    "bytes": bytes(range(256)) * 5000,
    "bytearray": bytearray(range(256)) * 5000,
    "text": "an ordinary text of one byte each; " * 40_000,
    "text of more bytes": "größer ∀ 😀 " * 100_000,
    "text with surrogates": "\udcff\ud800 " * 400_000,
}


def there_and_back(value: Any) -> tuple[Any, int, list[pickle.PickleBuffer]]:
    head, buffers = dumps(value)
    return pickle.loads(head, buffers=[bytes(buffer) for buffer in buffers]), len(head), buffers


@pytest.mark.parametrize("value", KINDS.values(), ids=KINDS)
def test_large_contents_are_no_part_of_the_pickle(value):
    came, length, buffers = there_and_back((value, {"again": value, "other": [1.5, value[:100]]}))
    assert length < 1000
    assert len(buffers) == 1
    assert (type(came[0]), came[0]) == (type(value), value)
    assert came[1]["again"] is came[0]
    assert came[1]["other"] == [1.5, value[:100]]


def test_bytes_and_bytearrays_are_not_copied_on_the_way_out():
    for value in (KINDS["bytes"], KINDS["bytearray"]):
        _, [buffer] = dumps([value])
        assert np.shares_memory(np.frombuffer(buffer, "u1"), np.frombuffer(value, "u1"))


class Given:
    """Pickled with contents that nobody else holds."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return Given, (self.text * 300_000,)


def test_a_text_outlives_whoever_made_it_for_the_pickle():
    _, [buffer] = dumps(Given("ab"))
    gc.collect()
    noise = ["xy" * 300_000 for _ in range(10)]
    assert bytes(buffer) == b"ab" * 300_000
    assert len(noise) == 10


def contents(draw: random.Random, depth: int = 0) -> Any:  # noqa: PLR0911 - one for each kind
    """Something of all kinds, with contents of all lengths around the bounds."""
    kind = draw.randrange(9 if depth < 3 else 6)
    length = draw.choice([0, 1, 5, 200, 300, 65_000, 65_535, 65_536, 70_000, LARGE - 1, LARGE])
    match kind:
        case 0:
            return draw.randbytes(length)
        case 1:
            return bytearray(draw.randbytes(length))
        case 2:
            return "x" * length
        case 3:
            return draw.choice([None, 1, -7.5, 10**30, b"B\x00\x00\x04\x00", "é"])
        case 4:
            return np.arange(length // 8)
        case 5:
            return [draw.random() for _ in range(length // 9)]
        case 6:
            return {str(i): contents(draw, depth + 1) for i in range(draw.randrange(4))}
        case _:
            return tuple(contents(draw, depth + 1) for _ in range(draw.randrange(6)))


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else bool(one == other)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_pickled_comes_back_the_same(seed):
    value = contents(random.Random(seed))
    assert same(there_and_back(value)[0], value)


def test_more_contents_than_a_payload_has_room_for_stay_in_the_pickle():
    value = [bytes([number % 256]) * LARGE for number in range(MAX_BUFFERS + 20)]
    head, buffers = dumps(value)
    assert len(buffers) == MAX_BUFFERS
    assert 20 * LARGE < len(head) < 21 * LARGE
    assert pickle.loads(head, buffers=buffers) == value


class Inner:
    """Pickles something else while it is pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return dumps, ([1, {"inner": len(dumps({"a": KINDS["bytes"]})[1])}],)


def test_pickling_may_pickle():
    head, buffers = dumps([{"outer": 1}, Inner(), {"outer": 2}])
    assert buffers == []
    came = pickle.loads(head)
    assert (came[0], pickle.loads(came[1][0]), came[2]) == (
        {"outer": 1},
        [1, {"inner": 1}],
        {"outer": 2},
    )


def test_nothing_is_kept_of_a_small_pickle():
    class Noted:
        alive = 0

        def __init__(self) -> None:
            Noted.alive += 1

        def __del__(self) -> None:
            Noted.alive -= 1

        def __reduce__(self) -> tuple[Any, ...]:
            return int, ()

    dumps([Noted(), {"x": 1}])
    assert Noted.alive == 0


def describe(value: Any, nested: dict[str, Any]) -> tuple[str, bool, bool]:
    inside = nested["inside"][0]
    if isinstance(value, bytearray):
        value[0] ^= 0xFF  # private and mutable
        value[0] ^= 0xFF
    return type(value).__name__, value == inside, value is inside


def doubled(value: Any) -> list[Any]:
    return [value, {"twice": value}]


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_and_results_arrive_as_they_were(each_grid, kind):
    value = KINDS[kind]
    name = type(value).__name__
    assert each_grid.submit(describe, value, {"inside": [value]}).result(60) == (name, True, True)
    came = each_grid.submit(doubled, value).result(60)
    assert type(came[0]) is type(value)
    assert came == [value, {"twice": value}]
    assert came[0] is came[1]["twice"]


def test_a_bytearray_that_comes_back_is_the_callers_own(each_grid):
    value = KINDS["bytearray"]
    first, second = each_grid.submit(doubled, value).result(60), each_grid.submit(doubled, value)
    first[0][:3] = b"abc"
    assert second.result(60)[0] == value
    first[0].extend(b"it can grow")


def test_items_of_map_and_shared_data_arrive_as_they_were(each_grid):
    items = [bytes([number]) * (1 << 20) for number in range(12)]
    assert list(each_grid.map(bytes.upper, items)) == items
    assert list(each_grid.map(bytearray, items, chunk=3)) == items
    shared = each_grid.share({"text": "t" * (1 << 20), "bytes": items[3]})
    assert each_grid.submit(dict, shared).result(60) == {"text": "t" * (1 << 20), "bytes": items[3]}
    partial = functools.partial(doubled, items[5])
    assert each_grid.submit(partial).result(60)[0] == items[5]
