"""The scenarios of the data-grid benchmark, and YCSB's core workloads."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.datagrid.cases import OPERATIONS
from gridbench.datagrid.presets import (
    FIRST_LOOK,
    KINDS,
    MIXES,
    DataGridScale,
    fitted,
    parse_scenarios,
    parse_ycsb,
    round_down,
    scenario,
    ycsb,
)
from gridbench.datagrid.workload import TaskParameters, label_shown
from gridbench.errors import InputError

GRIDS = {
    # Members, clients, KB, operations.
    1: [(8, 10, 1, 100), (8, 10, 100, 100), (8, 10, 1024, 100), (8, 10, 10_240, 100)],
    2: [(8, 1, 1, 1000), (8, 10, 1, 1000), (8, 100, 1, 1000)],
    3: [(1, 100, 1, 1000), (4, 100, 1, 1000), (8, 100, 1, 1000)],
}


@pytest.mark.parametrize("number", GRIDS)
def test_scenarios_are_those_of_the_sources(number: int) -> None:
    cases = scenario(number, DataGridScale(), None)
    found = [
        (own.mnodes, own.nnodes, own.object_size, own.nrepeats)
        for own in (case.parameters for case in cases)
    ]
    assert found == [row for row in GRIDS[number] for _ in KINDS]
    assert [case.label for case in cases] == list(KINDS) * len(GRIDS[number])
    assert {case.scenario for case in cases} == {number}
    assert {tuple(case.scaled.items()) for case in cases} == {()}


@pytest.mark.parametrize("number", GRIDS)
def test_a_case_has_one_operation_and_clients_have_objects_of_their_own(number: int) -> None:
    for case in scenario(number, DataGridScale(), None):
        own = case.parameters
        kinds = [own.read_data_size, own.update_data_size, own.write_data_size]
        assert sorted(kinds) == [0, 0, 1]
        assert kinds[list(KINDS).index(case.label)] == 1
        assert own.operations_of_task == own.nrepeats
        assert own.ntasks == 3 * own.nnodes
        assert own.apart
        assert not own.may_collide
        assert own.nobjects == (0 if case.label == "insert" else own.nnodes * own.nrepeats)


def test_what_is_chosen_otherwise_is_reported() -> None:
    choice = DataGridScale(
        members=(3, 8),
        clients=(10, 20),
        object_sizes=(1.0, 0.5),
        operations=10,
        tasks_per_client=5,
    )
    cases = scenario(1, choice, None)
    assert len(cases) == 2 * 2 * 2 * 3
    for case in cases:
        own = case.parameters
        assert (own.nrepeats, own.ntasks) == (10, 5 * own.nnodes)
        expected = {"NRepeats": "100"}
        if own.mnodes == 3:
            expected["MNodes"] = "8"
        if own.nnodes == 20:
            expected["NNodes"] = "10 or 100"
        if own.object_size == 0.5:
            expected["ObjectSize"] = "1 KB, 100 KB, 1 MB or 10 MB"
        assert case.scaled == expected
    reported = scenario(1, choice, None)[-1].scaled_text()
    assert "ObjectSize is 512 B in place of 1 KB, 100 KB, 1 MB or 10 MB" in reported
    assert "NRepeats is 10 in place of 100" in reported


def test_the_plan_of_scenario_1_had_100_clients() -> None:
    assert {tuple(case.scaled) for case in scenario(1, DataGridScale(clients=(10, 100)), None)} == {
        ()
    }
    assert all(case.scaled for case in scenario(2, DataGridScale(clients=(50,)), None))
    assert all(case.scaled for case in scenario(3, DataGridScale(clients=(10,)), None))


def test_what_members_cannot_hold_is_made_smaller_and_told() -> None:
    def holds(own: TaskParameters) -> int:
        return 260 if own.object_size == 10_240 else 1_000_000

    cases = scenario(1, DataGridScale(), holds)
    assert all(not case.scaled for case in cases[:-3])
    read, update, write = cases[-3:]
    for case in (read, update):
        # 10 clients, each with 25 objects of its own.
        assert (case.parameters.nobjects, case.parameters.nrepeats) == (250, 25)
        assert case.scaled == {"NRepeats": "100", "NObjects": "1,000"}
        assert case.parameters.apart
    assert (write.parameters.nrepeats, write.parameters.inserted) == (5, 150)
    assert write.scaled == {"NRepeats": "100"}
    assert all(not case.scaled for case in scenario(1, DataGridScale(), None))


SOME = st.builds(
    TaskParameters,
    nnodes=st.integers(1, 100),
    mnodes=st.just(3),
    ntasks=st.integers(1, 300),
    nrepeats=st.integers(1, 1000),
    read_data_size=st.integers(0, 2),
    update_data_size=st.integers(0, 2),
    write_data_size=st.integers(0, 2),
    nobjects=st.integers(1, 100_000),
    shared_data_size=st.integers(1, 10),
    object_size=st.just(1.0),
)


@given(requested=SOME, most=st.integers(0, 1_000_000))
def test_what_is_made_smaller_fits_or_is_the_least(requested: TaskParameters, most: int) -> None:
    found = fitted(requested, most)
    if requested.at_end <= most:
        assert found == requested
    else:
        assert found.nrepeats <= requested.nrepeats
        assert found.nobjects <= requested.nobjects
        assert found.at_end <= most or found.nrepeats == 1


@given(st.integers(1, 10**15))
def test_numbers_are_rounded_down_to_those_that_people_choose(count: int) -> None:
    found = round_down(count)
    assert count / 2.5 < found <= count
    assert found / 10 ** math.floor(math.log10(found)) in (1, 2, 2.5, 5)


def test_a_scenario_that_is_none_is_refused() -> None:
    assert parse_scenarios(["3", "1"]) == [3, 1]
    for wrong in ("0", "4", "1.0", "", "one"):
        with pytest.raises(InputError, match="unknown scenario") as caught:
            parse_scenarios(["1", wrong])
        assert "1 object-size, 2 clients, 3 members" in caught.value.remedy
    assert parse_scenarios(["all"]) == [1, 2, 3]
    assert parse_scenarios(["members,object-size"]) == [3, 1]
    with pytest.raises(InputError, match="is given twice"):
        parse_scenarios(["1", "1"])


# ---- YCSB


def test_mixes_are_those_of_the_core_workloads() -> None:
    shares = {
        letter: {name: mix[name] for name in ("read", "overwrite", "update", "insert", "scan")}
        for letter, mix in MIXES.items()
    }
    nothing = dict.fromkeys(("read", "overwrite", "update", "insert", "scan"), 0.0)
    assert shares == {
        "a": nothing | {"read": 0.5, "overwrite": 0.5},
        "b": nothing | {"read": 0.95, "overwrite": 0.05},
        "c": nothing | {"read": 1.0},
        "d": nothing | {"read": 0.95, "insert": 0.05},
        "e": nothing | {"scan": 0.95, "insert": 0.05},
        "f": nothing | {"read": 0.5, "update": 0.5},
    }
    assert all(math.isclose(sum(mix.values()), 1) for mix in shares.values())
    keys = {letter: mix["keys"] for letter, mix in MIXES.items()}
    assert keys == dict.fromkeys("abcef", "zipfian") | {"d": "latest"}


def test_a_core_workload_is_a_case() -> None:
    (case,) = ycsb("a", DataGridScale())
    own = case.parameters
    assert (case.label, case.scenario, case.mix) == ("ycsb-a", None, MIXES["a"])
    assert (own.nobjects, own.object_size, own.operations_of_task) == (10_000, 1.0, 1000)
    assert own.ntasks == 3 * own.nnodes
    more = ycsb("e", DataGridScale(clients=(1, 4), members=(2, 3), operations=50), records=77)
    found = [case.parameters for case in more]
    assert [(own.mnodes, own.nnodes) for own in found] == [(2, 1), (2, 4), (3, 1), (3, 4)]
    assert {(own.nobjects, own.operations_of_task) for own in found} == {(77, 50)}


def test_a_workload_that_is_none_is_refused() -> None:
    assert parse_ycsb(["C", "a", "c"]) == ["c", "a"]
    assert parse_ycsb(["f", "all"]) == ["f", *"abcde"]
    with pytest.raises(InputError, match="unknown workload of YCSB `g`") as caught:
        parse_ycsb(["a", "g"])
    assert "a, b, c, d, e, f" in caught.value.remedy


def test_the_first_look_is_short_and_does_all_three_operations() -> None:
    own = FIRST_LOOK.parameters
    assert (own.read_data_size, own.update_data_size, own.write_data_size) == (1, 1, 1)
    assert own.apart
    assert own.operations <= 100_000
    assert own.at_end * own.object_bytes < 64 << 20


def test_a_case_is_called_before_it_is_run_as_reports_call_it() -> None:
    scenarios = [one for number in (1, 2, 3) for one in scenario(number, DataGridScale(), None)]
    for one in (*scenarios, *ycsb("d", DataGridScale())):
        reported = one.describe().removeprefix(f"scenario {one.scenario}, ").split(", ")[0]
        assert reported == label_shown(one.label)
        assert reported in ("read", "update", "insert", "YCSB D")
    assert {one.label for one in scenarios} <= set(OPERATIONS)
