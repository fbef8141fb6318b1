"""How long members and clients are waited for, and the loss of a host."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gridrpc
from gridbench.datagrid.cluster import (
    TO_ANSWER,
    ClientProcesses,
    ClusterPlan,
    answer_timeout,
    first_tasks_timeout,
    running_cluster,
)
from gridbench.datagrid.engine import DataGridEngine, DataGridManifest
from gridbench.datagrid.processes import DataGridHost, ProcessError, Processes, ProcessStart, Said
from gridbench.datagrid.workload import TaskParameters
from gridbench.errors import InputError

PLAIN = TaskParameters(
    nnodes=4, mnodes=3, ntasks=8, nrepeats=100, read_data_size=1, nobjects=1000, object_size=1.0
)
CLIENT = ProcessStart("client process 0", "grid", "client", 1 << 20, {})


class Host:
    """A keeper whose processes say what they are given."""

    def __init__(self, *said: dict[str, Any], name: str = CLIENT.name) -> None:
        self.said = list(said)
        self.name = name
        self.lost = False
        self.started: list[ProcessStart] = []

    def facts(self) -> DataGridHost:
        return DataGridHost("here", 2, 1 << 30, "127.0.0.1", "/nowhere")

    def free_ports(self, address: str, count: int) -> list[int]:
        del address
        if self.lost:
            raise gridrpc.GridError("it does not answer")
        return list(range(1, count + 1))

    def clock(self) -> int:
        return time.monotonic_ns()

    def start(self, wanted: ProcessStart) -> str:
        self.started.append(wanted)
        return ""

    def send(self, name: str, message: dict[str, Any]) -> None:
        pass

    def log(self, name: str) -> list[str]:
        return [f"the log of {name}"]

    def poll(self, seconds: float) -> list[Said]:
        del seconds
        return [Said(self.name, self.said.pop(0))] if self.said else []

    def end(self, names: list[str]) -> None:
        pass


def processes_on(host: Host) -> Processes:
    member = SimpleNamespace(host=SimpleNamespace(name="here"), remote=host, near=True)
    place: Any = SimpleNamespace(members=[member])
    found = Processes(place, lambda: None)
    found.start(CLIENT, "here")
    return found


def test_progress_says_how_long_is_waited_for() -> None:
    now = time.monotonic()
    processes = processes_on(Host({"done": 1}))
    with pytest.raises(TimeoutError, match=CLIENT.name):
        processes.answers([CLIENT.name], "ran", now + 3600, lambda *_: now - 1)
    processes = processes_on(Host({"done": 1}, {"done": 2}, {"ran": "well"}))
    answers = processes.answers([CLIENT.name], "ran", now + 3600, lambda *_: None)
    assert answers == {CLIENT.name: "well"}


def test_a_run_without_answers_of_the_data_grid_is_given_up() -> None:
    still = [{"done": 0, "operations": 7}] * 3
    text: list[tuple[int, int]] = []
    clients = ClientProcesses(1, [], _on=processes_on(Host(*still)))
    clients.processes.append(SimpleNamespace(name=CLIENT.name, first=0, count=1))  # type: ignore[arg-type]
    with pytest.raises(ProcessError, match=r"no answer of the data grid for 0\.05 s") as error:
        clients.run(0.05, lambda *done: text.append(done))
    assert text == [(0, 7)] * 3
    assert error.value.log == (f"the log of {CLIENT.name}",)


@pytest.mark.parametrize("percent", [100, 40])
def test_a_member_keeps_within_its_memory(percent: int) -> None:
    manifest = DataGridManifest("Grid", "a.Grid", heap_percent=percent, member_overhead=140)
    engine = DataGridEngine("grid", Path("engine.toml"), manifest, own=True)
    memory = 512 << 20
    host = Host({"joined": {"seconds": 1.0}}, name="member 0")
    wanted = ClusterPlan(
        engine=engine, count=1, hosts=("here",), backups=1, memory=memory, patience=60.0
    )
    with running_cluster(processes_on(host), wanted) as cluster:
        assert [member.joined_in for member in cluster.members] == [1.0]
    start = host.started[-1]
    heap, data = start.memory, start.settings["memory"]
    if percent == 100:
        assert heap == data == memory  # the data are in the heap
    else:
        assert heap == memory * percent // 100
        assert heap + data + (140 << 20) == memory


def test_a_host_that_is_lost_before_members_are_started_is_reported() -> None:
    host = Host()
    processes = processes_on(host)
    host.lost = True
    engine = DataGridEngine(
        "grid", Path("engine.toml"), DataGridManifest("Grid", "a.Grid"), own=True
    )
    wanted = ClusterPlan(
        engine=engine, count=3, hosts=("here",), backups=1, memory=1 << 27, patience=1.0
    )
    with (
        pytest.raises(InputError, match="Grid does not start: the host here has been lost"),
        running_cluster(processes, wanted),
    ):
        pass


def test_what_tasks_do_between_operations_is_waited_for() -> None:
    plain = answer_timeout(PLAIN, None)
    assert TO_ANSWER <= plain < TO_ANSWER + 1
    assert answer_timeout(replace(PLAIN, sleep_time=500.0), None) == plain + 500
    assert answer_timeout(replace(PLAIN, process_time=10**10), None) >= plain + 1000
    assert answer_timeout(PLAIN, 0.01) == plain + 4 / 0.01
    shared = replace(PLAIN, read_data_size=0, shared_data_size=1, sleep_time=1.0)
    assert answer_timeout(shared, None) >= plain + 100
    assert first_tasks_timeout(replace(PLAIN, sleep_time=1.0)) >= first_tasks_timeout(PLAIN) + 100
