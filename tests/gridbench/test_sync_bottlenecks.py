"""What is said to have limited a round, of counters made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.sync.bottlenecks import Bottleneck, bottlenecks
from gridbench.sync.phase_counters import mean_of, phase_counters
from gridbench.sync.record import HostUse, Phase, Round, Sample, TaskRun

GIGABYTE = 1 << 30
IDLE: dict[str, Any] = {
    "processors": 0.2, "waiting": 0.0, "disk_busy": 0.1, "disk": "sda", "disk_queue": 0.1,
    "disk_read": 0.0, "disk_written": 0.0, "network_in": 0.0, "network_out": 0.0, "loopback": 0.0,
    "dirty": 0, "available": GIGABYTE,
}  # fmt: skip


def sample(at: float, seconds: float = 1.0, **changed: Any) -> Sample:
    return Sample(at=at, seconds=seconds, **IDLE | changed)


def host(name: str = "a", seconds: int = 4, **changed: Any) -> HostUse:
    """One that does the same all the time, from the instant on."""
    of_host = {key: changed.pop(key) for key in ("boot", "cores", "memory") if key in changed}
    return HostUse(
        **{"host": name, "cores": 4, "memory": 4 * GIGABYTE} | of_host,
        whole=sample(seconds, seconds, **changed),
        during=tuple(sample(at + 1.0, **changed) for at in range(seconds)),
    )


def task(
    worker: int = 0, on: str = "a", *phases: Phase, seconds: float = 4.0, **more: Any
) -> TaskRun:
    return TaskRun(
        worker=worker, host=on, rank=0, status="ok", began=0.0, ended=seconds, phases=phases, **more
    )


def phase(name: str = "cpu", seconds: float = 4.0, bytes: int = 0, operations: int = 0) -> Phase:
    return Phase(name=name, seconds=seconds, bytes=bytes, operations=operations)


def one_round(tasks: Sequence[TaskRun], *hosts: HostUse) -> Round:
    return Round(
        workers=len(tasks), parameter="", repeat=0, start="entry", at="2026-01-01T00:00:00Z",
        status="done", prepared_in=0.1, tasks=tuple(tasks), hosts=hosts,
    )  # fmt: skip


def only(tasks: Sequence[TaskRun], *hosts: HostUse) -> Bottleneck:
    (found,) = bottlenecks(one_round(tasks, *hosts))
    return found


def whats(tasks: Sequence[TaskRun], *hosts: HostUse) -> list[str]:
    found = bottlenecks(one_round(tasks, *hosts))
    for limit in found:
        assert limit.told.endswith(".")
        assert limit.told[0].isupper()
        assert "nan" not in limit.told
    return [limit.what for limit in found]


# ---- What is saturated


def test_a_disk_that_is_always_busy_bottlenecks() -> None:
    found = only([task()], host(disk_busy=0.97, disk_queue=12.3, disk_written=2e8))
    assert found.what == "disk saturated"
    assert "The disk sda was busy for 97 % of the time" in found.told
    assert "writing 200 MB/s, with 12 requests in its queue" in found.told
    assert whats([task()], host(disk_busy=0.89)) == ["nothing saturated"]


def test_a_disk_with_one_request_at_a_time_is_told_apart() -> None:
    found = only([task(0, "a", phase("create", 4.0))], host(disk_busy=0.95, disk_queue=1.0))
    assert found.what == "disk, one request at a time (create)"
    assert "in the phase create" in found.told
    assert "fsync" in found.told


def test_a_server_that_has_one_thread_can_be_saturated() -> None:
    found = only(
        [task(0, "a", phase("mkdir", 4.0, operations=100))],
        host(watched={"gfmd": 0.97, "postgres": 0.3}, watched_busiest={"gfmd": 0.97}),
    )
    assert found.what == "gfmd saturated (mkdir)"
    assert "A process of gfmd used 0.970 processors in the phase mkdir" in found.told
    # More than one processor is no single thread, and there are others.
    several = {"watched": {"gfmd": 1.6}, "watched_busiest": {"gfmd": 1.6}}
    assert whats([task()], host(**several)) == ["waits elsewhere"]


def test_a_server_that_has_all_processors_is_saturated() -> None:
    found = only(
        [task(0, "client")],
        host("client"),
        host("server", watched={"gfmd": 3.8}, watched_busiest={"gfmd": 3.8}, processors=3.7),
    )
    assert found.what == "gfmd saturated"
    assert "used 3.80 of the 4 processors of server" in found.told


def test_processors_can_be_saturated() -> None:
    found = only([task(n, user=1.6, system=0.1) for n in range(9)], host(processors=3.9))
    assert found.what == "processors saturated"
    assert found.told == "The 4 processors were busy for 98 % of the time, 3.8 by 9 tasks."


def test_processors_that_others_use_are_told() -> None:
    servers = {"watched": {"gfmd": 0.5}, "watched_busiest": {"gfmd": 0.5}}
    found = only([task(user=0.4)], host(processors=4.0, **servers))
    assert found.told.endswith(
        ", 0.10 by 1 task, 0.50 by gfmd. Most of it was done by other programs, perhaps for these."
    )


def test_several_machines_are_told_by_the_worst() -> None:
    names = ["a", "b", "c"]
    busy = [3.85, 3.95, 3.9]
    found = only(
        [task(n, name) for n, name in enumerate(names)],
        *(host(name, processors=used) for name, used in zip(names, busy, strict=True)),
    )
    assert "The 4 processors of b were busy for 99 % of the time (and so on 2 other" in found.told


def test_memory_and_network_can_be_short() -> None:
    found = only([task()], host(pressure={"memory": 0.25, "io": 0.9}))
    assert found.what == "memory pressure"
    assert "waited for memory for 25 % of the time" in found.told
    found = only([task()], host(link="eth0", link_used=0.93, network_in=1.16e8))
    assert found.what == "network saturated"
    assert "The interface eth0 used 93 % of its speed" in found.told


def test_all_that_is_saturated_is_told() -> None:
    found = whats([task()], host(disk_busy=1.0, disk_queue=9.0, processors=4.0))
    assert found == ["disk saturated", "processors saturated"]


# ---- Bytes


def test_files_that_come_from_memory_are_told() -> None:
    reads = [task(n, "a", phase("read", 4.0, bytes=GIGABYTE)) for n in range(2)]
    found = bottlenecks(one_round(reads, host(disk_read=1e6, processors=4.0)))
    assert [limit.what for limit in found] == ["processors saturated (read)", "page cache (read)"]
    assert "Of the 2 GB that tasks read in the phase read, disks gave 3.815 MB" in found[1].told
    # What came over the network was not in this host's memory.
    assert "page cache (read)" not in whats(reads, host(network_in=5e8))
    # From a server on the same host.
    found = bottlenecks(one_round(reads, host(loopback=5e8)))
    assert "over the loopback" in found[0].told


def test_files_that_come_from_disks_are_compared_with_the_memory() -> None:
    reads = [task(n, "a", phase("read", 4.0, bytes=2 * GIGABYTE)) for n in range(2)]
    busy = {"disk_busy": 1.0, "disk_queue": 4.0, "disk_read": 0.8 * GIGABYTE}
    found = bottlenecks(one_round(reads, host(**busy)))
    assert [one.what for one in found] == ["disk saturated (read)", "page cache exceeded (read)"]
    assert "disks gave 3.2 GB (80 %): files of 4 GB do not fit into its memory of 4 GB" in (
        found[1].told
    )
    found = bottlenecks(one_round(reads, host(memory=64 * GIGABYTE, **busy)))
    assert found[1].what == "read from disks (read)"
    assert "would fit into its memory of 64 GB, but were not there" in found[1].told


def test_writes_to_memory_are_told() -> None:
    writes = [task(0, "a", phase("write", 4.0, bytes=GIGABYTE))]
    grown = {"dirtied": GIGABYTE // 5, "disk_written": GIGABYTE / 20}
    found = bottlenecks(one_round(writes, host(**grown)))
    assert [one.what for one in found] == ["writes in memory (write)", "waits elsewhere (write)"]
    assert "204.8 MB had reached disks at its end, and 819.2 MB more than before" in found[0].told
    # With fsync they are on the disk; in /dev/shm there is nothing to write later.
    assert whats(writes, host(disk_written=GIGABYTE / 4)) == ["waits elsewhere (write)"]
    assert whats(writes, host()) == ["waits elsewhere (write)"]


@pytest.mark.parametrize("name", ["readdir", "memory", "rewrite", "spread"])
def test_other_phases_read_and_write_no_files(name: str) -> None:
    work = [task(0, "a", phase(name, 4.0, bytes=GIGABYTE))]
    assert whats(work, host(dirtied=GIGABYTE)) == [f"waits elsewhere ({name})"]


@pytest.mark.parametrize("name", ["worker-3: read", "randread", "Read"])
def test_phases_of_other_programs_are_known(name: str) -> None:
    work = [task(0, "a", phase(name, 4.0, bytes=GIGABYTE))]
    assert f"page cache ({name})" in whats(work, host())


def test_phases_are_looked_at_one_by_one() -> None:
    both = [task(0, "a", phase("write", 2.0, bytes=GIGABYTE), phase("read", 2.0, bytes=GIGABYTE))]
    use = host()
    write, read = use.during[:2], use.during[2:]
    saturated = [replace(one, disk_busy=1.0, disk_queue=9.0, disk_written=5e8) for one in write]
    found = whats(both, replace(use, during=(*saturated, *read)))
    assert found == ["disk saturated (write)", "page cache (read)", "waits elsewhere (read)"]


def test_hosts_on_one_machine_are_counted_once() -> None:
    """Eight containers, each of which sees the same disk."""
    names = [f"node{n}" for n in range(8)]
    reads = [task(n, name, phase("read", 4.0, bytes=GIGABYTE)) for n, name in enumerate(names)]
    uses = [host(name, boot="same", disk_read=0.1 * GIGABYTE, processors=4.0) for name in names]
    found = whats(reads, *uses)
    assert found == ["processors saturated (read)", "page cache (read)"]
    (machine,) = phase_counters(one_round(reads, *uses))[0].machines
    assert (machine.tasks, machine.bytes) == (8, 8 * GIGABYTE)
    assert machine.read == pytest.approx(0.4 * GIGABYTE)
    assert machine.name == "node0 and 7 other hosts on the same machine"
    told = bottlenecks(one_round(reads, *uses))[0].told
    assert "by 8 tasks" in told
    assert "machine" not in told  # there is only this one


# ---- Nothing of it


def test_what_waits_for_something_else_is_told_with_its_latency() -> None:
    found = only([task(n, "a", phase("mkdir", 4.0, operations=400)) for n in range(3)], host())
    assert found.what == "waits elsewhere (mkdir)"
    assert "processors were busy for 5 % of the time, and the disk sda for 10 %" in found.told
    assert "An operation took 10.00 ms of its task's time" in found.told
    assert "more workers can do more" in found.told


def test_tasks_that_compute_on_few_processors_are_told() -> None:
    found = only([task(user=3.7, system=0.2)], host(processors=1.0))
    assert found.what == "processors of the tasks"
    assert "tasks computed for 98 % of their time" in found.told


def test_what_counters_do_not_show_is_not_told() -> None:
    short = [task(seconds=0.05)]
    assert whats(short, host(seconds=1, processors=4.0)) == []
    assert whats([task()]) == []
    assert whats([task()], HostUse(host="a", cores=4, memory=GIGABYTE)) == []
    reads = [task(n, name, phase("read", 4.0, bytes=GIGABYTE)) for n, name in enumerate("ab")]
    # Nobody looked at b.
    assert whats(reads, host("a")) == []
    assert whats(reads, host("a", disk_busy=1.0, disk_queue=3.0)) == ["disk saturated (read)"]
    lost = replace(task(), status="lost", began=None, ended=None)
    assert whats([lost], host(processors=4.0)) == []


def test_a_round_without_looks_meanwhile_is_known_as_a_whole() -> None:
    use = replace(host(seconds=4, processors=4.0), during=())
    assert whats([task(seconds=3.5)], use) == ["processors saturated"]
    # The most of what was counted is not of the tasks.
    assert whats([task(seconds=1.0)], use) == []


def test_hosts_that_are_slower_than_others_are_told() -> None:
    tasks = [task(n, name, seconds=s) for n, (name, s) in enumerate([("a", 1), ("b", 2), ("b", 2)])]
    uses = [host("a", seconds=2, cores=8), host("b", seconds=2, cores=2)]
    found = bottlenecks(one_round(tasks, *uses))[-1]
    assert found.what == "hosts differ"
    assert found.told.startswith(
        "Tasks on b took 2.000 s in the median (2 workers on 2 processors), and those on a 1.000 s"
        " (1 worker on 8 processors)"
    )
    unsure = [replace(one, clock_error=0.5) for one in tasks]
    assert "hosts differ" not in whats(unsure, *uses)
    alike = [task(n, "ab"[n % 2], seconds=2 + n / 10) for n in range(4)]
    assert "hosts differ" not in whats(alike, *uses)


# ---- Means


def test_the_mean_of_samples_keeps_amounts() -> None:
    first = sample(1.0, 1.0, processors=4.0, disk="sda", disk_busy=1.0, pressure={"io": 0.4})
    second = sample(4.0, 3.0, processors=0.0, disk="sdb", disk_busy=0.2, disk_read=100.0)
    found = mean_of([replace(first, dirtied=5), replace(second, dirtied=7)])
    assert (found.at, found.seconds, found.processors) == (4.0, 4.0, 1.0)
    # The disk that was busiest over all of it.
    assert (found.disk, found.disk_busy) == ("sda", 0.25)
    assert (found.disk_read, found.dirtied) == (75.0, 12)
    assert found.pressure == {"io": pytest.approx(0.1)}
    assert mean_of([first]) == first


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=9), st.floats(0, 64))
def test_what_does_not_change_is_its_own_mean(seconds: list[float], processors: float) -> None:
    found = mean_of([sample(1.0, each, processors=processors) for each in seconds])
    assert found.processors == pytest.approx(processors)
    assert found.seconds == pytest.approx(sum(seconds))
