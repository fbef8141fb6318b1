"""Results that calls on the same host need stay there, and are fetched when somebody wants them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridbench_testbed.links.sshd import Rig
from gridrpc import Grid
from hosts import agents, nothing_is_left, on_hosts, rig_of, server, signal_all
from processes import LONG, until

#: What a large result has, bytes, and what the messages of a test are together at most.
LARGE = 8_000_000
SMALL = 400_000


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with rig_of(2) as rig:
        yield rig
        assert nothing_is_left(rig)


@pytest.fixture(scope="module")
def hosts(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    """Two workers on each of two hosts, which keep no memory that is free."""
    table = server(rig, "node1", "node2")
    with on_hosts(tmp_path_factory.mktemp("grid"), table, keep_free=0) as grid:
        yield grid


def ones(value: float) -> Any:
    return np.full(LARGE // 8, float(value))


def slow_ones(value: float) -> Any:
    """Ends when calls that need it have been submitted; four of them use all workers."""
    time.sleep(0.2)
    return ones(value)


def plus(array: Any, other: Any) -> Any:
    return array + other


def facts(array: Any) -> tuple[float, str]:
    return float(array.sum()) / (LARGE // 8), os.uname().nodename


def slow_facts(array: Any) -> tuple[float, str]:
    time.sleep(0.5)
    return facts(array)


def node() -> str:
    return os.uname().nodename


def passed(rig: Rig) -> int:
    """Bytes that have left the hosts so far."""
    lines = [line for node in (1, 2) for line in rig.run(node, "cat /proc/net/dev").splitlines()]
    return sum(int(line.split()[9]) for line in lines if "link:" in line)


def memory(rig: Rig, node: int) -> int:
    """Shared memory that the processes of a host have open, bytes."""
    found: dict[int, int] = {}
    for pid in rig.pids(node):
        try:
            entries = list(Path(f"/proc/{pid}/fd").iterdir())
        except OSError:
            continue
        for entry in entries:
            try:
                if "/memfd:" in os.readlink(entry):
                    status = entry.stat()
                    found[status.st_ino] = status.st_blocks * 512
            except OSError:
                continue
    return sum(found.values())


def test_a_result_is_read_where_it_was_made(hosts: Grid, rig: Rig) -> None:
    before = passed(rig)
    made = [hosts.submit(slow_ones, n) for n in range(4)]
    found = [hosts.submit(facts, one) for one in made]
    assert [call.result(LONG)[0] for call in found] == [0.0, 1.0, 2.0, 3.0]
    assert {call.result(LONG)[1] for call in found} == {"node1", "node2"}
    assert passed(rig) - before < SMALL


def test_along_a_chain(hosts: Grid, rig: Rig) -> None:
    before = passed(rig)
    call = hosts.submit(slow_ones, 0)
    for _ in range(20):
        call = hosts.submit(plus, call, 1.0)
    assert hosts.submit(facts, call).result(LONG)[0] == 20.0
    assert passed(rig) - before < SMALL


def test_who_wants_the_result_gets_it_once(hosts: Grid, rig: Rig) -> None:
    made = hosts.submit(slow_ones, 3)
    assert hosts.submit(facts, made).result(LONG)[0] == 3.0
    before = passed(rig)
    assert until(made.done)
    array = made.result(LONG)
    array += 1.0
    assert float(array[-1]) == 4.0
    assert LARGE < passed(rig) - before < LARGE + SMALL
    # It continues as it was, and is not fetched again.
    assert hosts.submit(facts, made).result(LONG)[0] in (3.0, 4.0)
    assert passed(rig) - before < LARGE + SMALL


def test_as_completed_and_callbacks_have_results_fetched(hosts: Grid) -> None:
    made = [hosts.submit(ones, n) for n in range(3)]
    used = [hosts.submit(facts, one) for one in made]
    assert {float(call.result()[0]) for call in gridrpc.as_completed(made, LONG)} == {0.0, 1.0, 2.0}
    assert [call.result(LONG)[0] for call in used] == [0.0, 1.0, 2.0]
    text: list[float] = []
    one = hosts.submit(ones, 7)
    assert hosts.submit(facts, one).result(LONG)[0] == 7.0
    one.add_done_callback(lambda call: text.append(float(call.result()[0])))
    assert until(lambda: text == [7.0])


def test_results_of_both_hosts_meet_on_one(hosts: Grid, rig: Rig) -> None:
    made = [hosts.submit(slow_ones, n) for n in range(4)]
    found = [hosts.submit(facts, one) for one in made]
    assert {call.result(LONG)[1] for call in found} == {"node1", "node2"}
    before = passed(rig)
    one = hosts.submit(plus, made[0], made[1])
    other = hosts.submit(plus, made[2], made[3])
    both = hosts.submit(plus, one, other)
    assert hosts.submit(facts, both).result(LONG)[0] == 6.0
    # Those of one host at most have left it.
    assert passed(rig) - before < 3 * LARGE + SMALL


def test_small_results_come_at_once(hosts: Grid) -> None:
    name = hosts.submit(node)
    used = hosts.submit(str.upper, name)
    assert used.result(LONG) in ("NODE1", "NODE2")
    assert name.done()


def test_long_calls_are_not_left_to_one_host(hosts: Grid) -> None:
    hosts.submit(slow_facts, np.ones(LARGE // 8)).result(LONG)
    made = hosts.submit(ones, 1)
    found = [hosts.submit(slow_facts, made) for _ in range(8)]
    assert {call.result(LONG) for call in found} == {(1.0, "node1"), (1.0, "node2")}


def test_nothing_is_kept_that_nobody_needs(hosts: Grid, rig: Rig) -> None:
    def use(count: int) -> int:
        for n in range(count):
            assert hosts.submit(facts, hosts.submit(ones, n)).result(LONG)[0] == n
        return memory(rig, 1) + memory(rig, 2)

    before = use(10)
    # Were they kept, they would take 400 MB.
    assert use(50) - before < 10 * LARGE


def test_calls_made_inside_functions_can_need_them(hosts: Grid) -> None:
    def nest(array: Any) -> float:
        grid = gridrpc.current_grid()
        more = grid.submit(plus, array, 1.0).result()
        return float(grid.submit(facts, more).result()[0])

    made = hosts.submit(ones, 4)
    assert [hosts.submit(nest, made).result(LONG) for _ in range(4)] == [5.0] * 4


def test_objects_get_them(hosts: Grid) -> None:
    class Sum:
        def __init__(self) -> None:
            self.value = 0.0

        def add(self, array: Any) -> float:
            self.value += float(array[0])
            return self.value

    total = hosts.object(Sum)
    made = [hosts.submit(ones, n) for n in (1, 2)]
    assert [total.add(one) for one in made] == [1.0, 3.0]


def test_the_end_of_the_grid_ends_calls_whose_results_are_elsewhere(
    rig: Rig, tmp_path: Path
) -> None:
    with on_hosts(tmp_path, server(rig, "node1")) as grid:
        made = grid.submit(slow_ones, 1)
        assert grid.submit(facts, made).result(LONG)[0] == 1.0
    assert isinstance(made.exception(LONG), gridrpc.GridClosed)


def test_a_result_is_made_again_where_its_call_is_bound_to(hosts: Grid, rig: Rig) -> None:
    hosts.wait_until_ready(LONG)
    made = hosts.submit(slow_ones, 6, idempotent=True, server="node2")
    assert hosts.submit(facts, made).result(LONG) == (6.0, "node2")
    signal_all(agents(rig, 2), signal.SIGKILL)
    assert float(made.result(LONG)[0]) == 6.0
    assert made.profile.host == "node2"
    hosts.wait_until_ready(LONG)


@pytest.mark.parametrize("idempotent", [True, False])
def test_results_are_lost_with_their_host(hosts: Grid, rig: Rig, *, idempotent: bool) -> None:
    hosts.wait_until_ready(LONG)
    made = [hosts.submit(slow_ones, n, idempotent=idempotent) for n in range(4)]
    found = [hosts.submit(facts, one) for one in made]
    places = [call.result(LONG)[1] for call in found]
    assert set(places) == {"node1", "node2"}
    slow = [hosts.submit(slow_facts, one, idempotent=True) for one in made]
    time.sleep(0.2)
    signal_all(agents(rig, 1), signal.SIGKILL)
    for n, (one, place, used) in enumerate(zip(made, places, slow, strict=True)):
        if idempotent or place == "node2":
            assert used.result(LONG)[0] == n
            assert float(one.result(LONG)[0]) == n
        else:
            failed = used.exception(LONG)
            assert isinstance(failed, gridrpc.DependencyFailed), failed
            lost = one.exception(LONG)
            assert isinstance(lost, gridrpc.WorkerLost)
            assert lost.host == "node1"
    hosts.wait_until_ready(LONG)
