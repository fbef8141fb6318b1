"""What cases of the data-grid benchmark need of memory, and that they are refused beforehand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.datagrid.engine import MB, DataGridEngine, DataGridManifest
from gridbench.datagrid.experiment import check_memory
from gridbench.datagrid.options import DataGridParameters
from gridbench.datagrid.plan import (
    LEAST_MEMORY,
    MOST_MEMORY,
    DataGridOrder,
    DataGridWork,
    capacity,
    copies,
    default_member_memory,
    machine_need,
    need_of,
)
from gridbench.datagrid.presets import MIXES
from gridbench.datagrid.workload import DataGridWorkload, TaskParameters
from gridbench.errors import InputError
from gridbench.hosts.hosts_file import HostChoice, HostSlots

GB = 1024 * MB
GRID = DataGridManifest("Grid", "a.Grid", member_overhead=100, object_overhead=92)
APART = replace(GRID, heap=False, heap_percent=25)
MAP = DataGridManifest("Map", "a.Map", members=False, object_overhead=92)
#: 1,024 bytes with what comes on top of them.
PLAIN = TaskParameters(
    nnodes=4, mnodes=4, ntasks=8, nrepeats=10, read_data_size=1, nobjects=1000,
    object_size=(1024 - 92 - 8) / 1024,
)  # fmt: skip


def wanted(
    own: TaskParameters, *, manifest: DataGridManifest = GRID, kill: tuple[int, ...] = ()
) -> DataGridOrder:
    return DataGridOrder.of(
        DataGridWorkload(parameters=own),
        engine="grid",
        repeat=0,
        kill=kill,
        members=own.mnodes if manifest.members else 0,
        processes=2,
    )


def member(
    own: TaskParameters,
    backups: int,
    kill: tuple[int, ...] = (),
    *,
    manifest: DataGridManifest = GRID,
) -> int:
    """Bytes of a member beside what it takes without objects."""
    under_way = 2 * own.busy_clients * own.object_bytes // own.mnodes
    return need_of(wanted(own, kill=kill), manifest, backups).member - 100 * MB - under_way


def test_a_member_holds_its_part_of_all_copies() -> None:
    all_of_them = 1.25 * 1000 * 1024
    assert member(PLAIN, 0) == all_of_them / 4
    assert member(PLAIN, 1) == all_of_them / 2
    assert member(PLAIN, 6) == all_of_them  # on 4 members, there are 4 copies
    assert member(replace(PLAIN, mnodes=1), 1) == all_of_them
    assert [copies(1, 1), copies(2, 1), copies(3, 1), copies(2, 5), copies(9, 0)] == [1, 2, 2, 2, 1]


def test_what_is_inserted_and_shared_counts_too() -> None:
    more = replace(PLAIN, write_data_size=3, shared_data_size=760)
    assert more.at_end == 1000 + 760 + 240
    # A warm-up inserts 1000 objects of each client, and removes them.
    assert member(more, 1) == 6 * member(PLAIN, 1)
    # Or as many as are 64 MB; but one at least.
    large = replace(more, object_size=10_240.0)
    assert member(large, 0) == round(1.25 * (2000 + 4) * 11 * MB / 4)


def test_large_objects_have_parts_of_the_heap_of_their_own() -> None:
    mega = replace(PLAIN, object_size=1024.0)
    assert member(mega, 0) == round(1.25 * 1000 * 2 * MB / 4)
    half = replace(PLAIN, object_size=(MB // 2 - 100) / 1024)
    assert member(half, 0) == round(1.25 * 1000 * MB / 2 / 4)
    outside = replace(GRID, heap=False)
    assert member(mega, 0, manifest=outside) == round(1.25 * 1000 * (MB + 100) / 4)


def test_those_that_are_left_hold_what_the_killed_ones_held() -> None:
    assert member(PLAIN, 1, kill=(0,)) == round(1.25 * 1000 * 1024 * 2 / 3)
    assert member(PLAIN, 1, kill=(0, 1)) == 1.25 * 1000 * 1024
    assert member(PLAIN, 1, kill=(0, 1, 2)) == 1.25 * 1000 * 1024  # one copy, on one member


def test_memory_that_is_divided_has_room_for_heap_and_data() -> None:
    assert [APART.heap_of(GB), APART.data_of(GB)] == [GB // 4, GB - GB // 4 - 100 * MB]
    assert [GRID.heap_of(GB), GRID.data_of(GB)] == [GB, GB]
    assert APART.data_of(100 * MB) == 0
    # Data that are large, or what clients have under way in the heap: the larger one counts.
    large = replace(PLAIN, nobjects=1_000_000)
    data = 1.25 * 1_000_000 * 1024 * 2 / 4
    found = need_of(wanted(large, manifest=APART), APART, 1).member
    assert found == round((100 * MB + data) / 0.75)
    assert APART.data_of(found) == pytest.approx(data, abs=2)
    many = replace(PLAIN, nnodes=100, ntasks=100, nobjects=10, object_size=10_240.0)
    under_way = 2 * 100 * 10 * MB // 4
    found = need_of(wanted(many, manifest=APART), APART, 1).member
    assert found == 4 * (48 * MB + 14 * under_way)
    assert capacity(many, APART, 1, found - 4) == 0 < capacity(many, APART, 1, found)
    # All that the members take is in what they are given.
    one = wanted(PLAIN, manifest=APART)
    clients = 2 * (need_of(one, APART, 1).client + 64 * MB)
    assert machine_need(one, APART, 1, GB) == 4 * GB + clients


def test_a_mix_inserts_as_well() -> None:
    workload = DataGridWorkload(parameters=replace(PLAIN, nrepeats=10_000), mix=MIXES["d"])
    need = need_of(replace(wanted(PLAIN), workload=workload), GRID, 0).member
    assert need > 100 * MB + 1.25 * 1024 * (1000 + 0.05 * 80_000) / 4


def test_a_map_is_in_the_process_of_its_clients() -> None:
    need = need_of(wanted(PLAIN, manifest=MAP), MAP, 1)
    assert need.member == 0
    apart = need_of(wanted(PLAIN), GRID, 1)
    assert need.client == apart.client + 1.25 * 1000 * 1024


def test_a_machine_has_all_processes() -> None:
    one = wanted(PLAIN)
    client = need_of(one, GRID, 1).client
    assert machine_need(one, GRID, 1, GB) == 4 * (GB + 64 * MB) + 2 * (client + 64 * MB)
    alone = wanted(PLAIN, manifest=MAP)
    assert machine_need(alone, MAP, 1, GB) == 2 * (need_of(alone, MAP, 1).client + 64 * MB)


@pytest.mark.parametrize("manifest", [GRID, APART], ids=["heap", "apart"])
@given(
    mnodes=st.integers(1, 20),
    nnodes=st.integers(1, 100),
    size=st.floats(1 / 32, 20_000),
    inserts=st.booleans(),
    backups=st.integers(0, 6),
    memory=st.integers(0, 16 * GB),
)
def test_just_as_many_objects_as_there_is_room_for_fit(
    manifest: DataGridManifest,
    *,
    mnodes: int,
    nnodes: int,
    size: float,
    inserts: bool,
    backups: int,
    memory: int,
) -> None:
    own = replace(PLAIN, mnodes=mnodes, nnodes=nnodes, object_size=size)
    if inserts:
        own = replace(own, write_data_size=1)
    most = capacity(own, manifest, backups, memory)
    if most > own.inserted:
        fits = replace(own, nobjects=most - own.inserted)
        need = need_of(wanted(fits, manifest=manifest), manifest, backups).member
        assert need <= memory + 1  # of rounding
    beyond = replace(own, nobjects=most + 2)
    assert need_of(wanted(beyond, manifest=manifest), manifest, backups).member > memory - 1


@given(available=st.integers(0, 1 << 45), members=st.integers(1, 1000))
def test_the_default_is_a_quarter_of_the_machine_at_most(available: int, members: int) -> None:
    found = default_member_memory(available, members)
    assert LEAST_MEMORY <= found <= MOST_MEMORY
    assert found.bit_count() == 1
    assert found == LEAST_MEMORY or found * members <= available / 4
    assert found == MOST_MEMORY or 2 * found * members > available / 4


# ---- Refused before anything starts


def work(
    own: TaskParameters,
    manifest: DataGridManifest = GRID,
    *,
    available: int = 16 * GB,
    where: HostChoice | None = None,
    **more: Any,
) -> DataGridWork:
    return DataGridWork(
        engines=(DataGridEngine("grid", Path("engine.toml"), manifest, own=True),),
        workloads=(DataGridWorkload(parameters=own),),
        available=available,
        where=where or HostChoice(),
        parameters=DataGridParameters(**{"processes": 2, **more}),
    )


def test_what_fits_is_not_refused() -> None:
    check_memory(work(PLAIN))
    check_memory(work(PLAIN, MAP))


def test_objects_beyond_the_memory_of_members_are_reported() -> None:
    large = replace(PLAIN, nobjects=10_000_000, object_size=1.0)
    with pytest.raises(InputError) as caught:
        check_memory(work(large))
    need = need_of(wanted(large), GRID, 1).member
    assert caught.value.what == (
        "10,000,000 objects of 1 KB do not fit into 4 members of Grid: each would need"
        f" {need / GB:.4g} GB, with 2 copies of each object in all, and has 1 GB"
    )
    assert f"--member-memory {-(-need // MB)}MB" in caught.value.remedy
    # What it says to do helps.
    check_memory(work(large, member_memory=-(-need // MB) * MB, available=1 << 40))


def test_one_copy_may_fit_where_two_do_not() -> None:
    large = replace(PLAIN, nobjects=2_500_000, object_size=1.0)
    check_memory(work(large, backups=0))
    with pytest.raises(InputError, match="with 2 copies of each object"):
        check_memory(work(large))


def test_those_that_are_left_may_be_too_few() -> None:
    large = replace(PLAIN, nobjects=1_300_000, object_size=1.0)
    check_memory(work(large))
    with pytest.raises(InputError, match="into 2 members of Grid, which are left: each would need"):
        check_memory(work(large, kill=(0, 3)))


def test_members_beyond_the_memory_of_the_machine_are_reported() -> None:
    with pytest.raises(InputError) as caught:
        check_memory(work(PLAIN, member_memory=8 * GB))
    assert "4 members of 8 GB and 2 client processes would need 32." in caught.value.what
    assert "16 GB is available" in caught.value.what
    assert caught.value.remedy
    # Of other hosts nobody knows it.
    elsewhere = HostChoice(hosts=(HostSlots("elsewhere.example", 1),))
    check_memory(work(PLAIN, member_memory=8 * GB, where=elsewhere))
    with pytest.raises(InputError, match="would need"):
        check_memory(work(PLAIN, member_memory=8 * GB, where=HostChoice(emulated="ssh")))


def test_clients_beyond_the_memory_of_the_machine_are_reported() -> None:
    many = replace(PLAIN, nnodes=1000, object_size=10_240.0, nobjects=10)
    with pytest.raises(InputError, match="Map: 1 client process would need"):
        check_memory(work(many, MAP))
