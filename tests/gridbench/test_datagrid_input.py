"""What users ask of the data-grid benchmark: its parameters, and all options."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.datagrid.parameters import LIMITS, NAMES, NEEDED, REALS, Parameters
from gridbench.datagrid.workload import Workload
from gridbench.errors import InputError

PLAIN = Parameters(
    nnodes=2, mnodes=3, ntasks=6, nrepeats=10, read_data_size=3, update_data_size=2,
    write_data_size=1, nobjects=1000, object_size=1.5, shared_data_size=4, process_time=5,
    sleep_time=0.25,
)  # fmt: skip


# ---- The parameters


def test_parameters_have_the_names_of_the_sources() -> None:
    told = PLAIN.to_dict()
    assert told == {
        "NNodes": 2, "MNodes": 3, "NTasks": 6, "NRepeats": 10, "ReadDataSize": 3,
        "UpdateDataSize": 2, "WriteDataSize": 1, "NObjects": 1000, "ObjectSize": 1.5,
        "SharedDataSize": 4, "ProcessTime": 5, "SleepTime": 0.25,
    }  # fmt: skip
    assert list(told) == list(NAMES) == list(LIMITS)
    assert Parameters.from_dict(json.loads(json.dumps(told))) == PLAIN
    again = Parameters.from_dict({name: float(value) for name, value in told.items()})
    assert again == PLAIN
    assert {type(again.to_dict()[name]) for name in NAMES} == {int, float}
    assert [name for name in NAMES if isinstance(again.to_dict()[name], float)] == list(REALS)


def test_what_tasks_do_is_counted() -> None:
    assert PLAIN.object_bytes == 1536
    assert PLAIN.operations_of_task == 4 + 10 * 6
    assert PLAIN.operations == 6 * 64
    assert (PLAIN.stored, PLAIN.inserted, PLAIN.at_end) == (1004, 60, 1064)


def test_only_some_parameters_may_be_left_out() -> None:
    told = {"NNodes": 1, "MNodes": 1, "NTasks": 1, "NRepeats": 1, "NObjects": 1, "ObjectSize": 1}
    assert set(told) == set(NEEDED)
    found = Parameters.from_dict(told | {"ReadDataSize": 1})
    assert (found.update_data_size, found.process_time, found.sleep_time) == (0, 0, 0.0)
    for name in told:
        with pytest.raises(InputError, match=f"{name} is missing"):
            Parameters.from_dict({key: told[key] for key in told if key != name})
    with pytest.raises(InputError, match="MNode is no parameter"):
        Parameters.from_dict(told | {"MNode": 1})


@pytest.mark.parametrize("name", NAMES)
def test_every_limit_holds_and_is_told(name: str) -> None:
    low, high = LIMITS[name]
    whole = name not in REALS
    for value in (low - 1, high + 1, -(10**300), 1e300):
        with pytest.raises(InputError, match=f"{name} must be from") as caught:
            replace(PLAIN, **{NAMES[name]: value})
        assert caught.value.remedy
        assert len(str(caught.value)) < 600
    for wrong in (float("nan"), float("inf"), "3", True, None, *([2.5] if whole else [])):
        with pytest.raises(InputError, match=f"{name} must be a"):
            replace(PLAIN, **{NAMES[name]: wrong})


def test_a_data_grid_without_members_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        replace(PLAIN, mnodes=0)
    assert "MNodes must be from 1 to 1,000, not 0" in caught.value.what
    assert "at least one member" in caught.value.remedy


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {
                "read_data_size": 0,
                "update_data_size": 0,
                "write_data_size": 0,
                "shared_data_size": 0,
            },
            "no task reads, updates or inserts anything",
        ),
        ({"nobjects": 0}, "NObjects is 0, and tasks are to read or update objects"),
        ({"nrepeats": 10**9, "ntasks": 10**6}, "operations, and 1,000,000,000,000 are the most"),
    ],
)
def test_what_cannot_be_meant_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(PLAIN, **change)
    assert told in caught.value.what
    assert caught.value.remedy


def test_tasks_that_only_insert_need_no_objects() -> None:
    found = replace(PLAIN, read_data_size=0, update_data_size=0, nobjects=0)
    assert found.at_end == 4 + 60
    assert not found.may_collide


# ---- Whether updates may collide

#: What decides about keys.
SIZES = st.builds(
    dict,
    nnodes=st.integers(1, 4),
    ntasks=st.integers(1, 12),
    nrepeats=st.integers(1, 4),
    read_data_size=st.integers(0, 3),
    update_data_size=st.integers(0, 3),
    nobjects=st.integers(1, 60),
)


def keys_of(own: Parameters, task: int, *, reads: bool) -> set[int]:
    """As the specification has it."""
    keys = set()
    each = own.read_data_size + own.update_data_size
    for ip in range(own.nrepeats):
        for at in range(0 if reads else own.read_data_size, each):
            keys.add(((task * own.nrepeats + ip) * each + at) % own.nobjects)
    return keys


def common(own: Parameters, *, reads: bool) -> bool:
    """Whether tasks of different clients have common keys."""
    all_keys = [keys_of(own, task, reads=reads) for task in range(own.ntasks)]
    return any(
        one % own.nnodes != other % own.nnodes and all_keys[one] & all_keys[other]
        for one, other in product(range(own.ntasks), repeat=2)
    )


@given(SIZES)
def test_no_collision_is_overlooked(sizes: dict[str, int]) -> None:
    own = replace(PLAIN, **sizes)
    if own.apart:
        assert not common(own, reads=True)
    if common(own, reads=False):
        assert own.may_collide


@pytest.mark.parametrize(
    ("change", "collide"),
    [
        ({"nobjects": 6 * 50}, False),  # each task has objects of its own
        ({"nobjects": 6 * 50 - 5}, True),  # the last one meets the first
        ({"nobjects": 2 * 50}, False),  # each client has objects of its own
        ({"nobjects": 4 * 50}, False),
        ({"nobjects": 3 * 50}, True),
        ({"nobjects": 50}, True),
        ({"nobjects": 1}, True),
        ({"nobjects": 1, "nnodes": 1}, False),  # one task at a time
        ({"nobjects": 1, "ntasks": 1}, False),
        ({"nobjects": 1, "update_data_size": 0}, False),
    ],
)
def test_updates_may_collide(change: dict[str, int], collide: bool) -> None:
    own = replace(PLAIN, **change)
    assert own.may_collide == collide
    assert common(own, reads=False) == collide
    assert Workload(parameters=own).may_collide == collide


MIX = {
    "read": 0.5, "overwrite": 0.0, "update": 0.5, "insert": 0.0, "scan": 0.0, "keys": "zipfian",
    "scan_length": 100, "seed": 1,
}  # fmt: skip


def test_drawn_keys_may_be_the_same() -> None:
    assert Workload(parameters=PLAIN, mix=MIX).may_collide
    assert Workload(parameters=PLAIN, mix=MIX | {"update": 0.0, "overwrite": 0.5}).may_collide
    assert not Workload(parameters=PLAIN, mix=MIX | {"read": 1.0, "update": 0.0}).may_collide
    assert not Workload(parameters=replace(PLAIN, nnodes=1), mix=MIX).may_collide


def test_a_mix_inserts_no_more_than_is_reckoned_with() -> None:
    own = replace(PLAIN, shared_data_size=0, write_data_size=0, nrepeats=1000)
    mixed = Workload(parameters=own, mix=MIX | {"insert": 0.05})
    assert own.operations == 30_000
    assert 1500 < mixed.inserted_at_most < 1800
    assert mixed.at_most == 1000 + mixed.inserted_at_most
    all_of_them = Workload(parameters=own, mix=MIX | {"insert": 1.0})
    assert all_of_them.inserted_at_most == own.operations
    assert Workload(parameters=own, mix=MIX).inserted_at_most == 0


def test_what_may_not_be_meant_is_said() -> None:
    assert Workload(parameters=PLAIN).cautions() == []
    (few,) = Workload(parameters=replace(PLAIN, nnodes=10)).cautions()
    assert few == "NTasks is 6 and NNodes 10: only 6 clients will have a task."
    (same,) = Workload(parameters=replace(PLAIN, nobjects=4)).cautions()
    assert "touches some of them more than once" in same
