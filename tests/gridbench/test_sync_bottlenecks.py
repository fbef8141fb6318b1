"""Bottlenecks of rounds, by counters made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import same_as_golden
from gridbench.sync.bottlenecks import bottlenecks
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


def whats(tasks: Sequence[TaskRun], *hosts: HostUse) -> list[str]:
    found = bottlenecks(one_round(tasks, *hosts))
    for limit in found:
        assert limit.told.endswith(".")
        assert limit.told[0].isupper()
        assert "nan" not in limit.told
    return [limit.what for limit in found]


# ---- All of them


def reads(gigabytes: int = 1) -> list[TaskRun]:
    part = phase("read", 4.0, bytes=gigabytes * GIGABYTE)
    return [task(n, "a", part) for n in range(2)]


def examples() -> dict[str, tuple[Sequence[TaskRun], Sequence[HostUse]]]:
    """Tasks and hosts, by what they show."""
    making = [task(0, "a", phase("mkdir", 4.0, operations=100))]
    writes = [task(0, "a", phase("write", 4.0, bytes=GIGABYTE))]
    disk = {"disk_busy": 1.0, "disk_queue": 4.0, "disk_read": 0.8 * GIGABYTE}
    one_thread = {"watched": {"gfmd": 0.97, "postgres": 0.3}, "watched_busiest": {"gfmd": 0.97}}
    threads = {"watched": {"gfmd": 1.6}, "watched_busiest": {"gfmd": 1.6}}
    all_of_it = {"watched": {"gfmd": 3.8}, "watched_busiest": {"gfmd": 3.8}, "processors": 3.7}
    some = {"watched": {"gfmd": 0.5}, "watched_busiest": {"gfmd": 0.5}}
    busy = zip("abc", (3.85, 3.95, 3.9), strict=True)
    network = {"link": "eth0", "link_used": 0.93, "network_in": 1.16e8}
    grown = {"dirtied": GIGABYTE // 5, "disk_written": GIGABYTE / 20}
    slow = [task(n, on, seconds=s) for n, (on, s) in enumerate([("a", 1), ("b", 2), ("b", 2)])]
    return {
        "A busy disk": ([task()], [host(disk_busy=0.97, disk_queue=12.3, disk_written=2e8)]),
        "A less busy disk": ([task()], [host(disk_busy=0.89)]),
        "A disk with one request at a time": (
            [task(0, "a", phase("create", 4.0))], [host(disk_busy=0.95, disk_queue=1.0)]
        ),
        "A server with one thread": (making, [host(**one_thread)]),
        "A server with several threads": ([task()], [host(**threads)]),
        "A server that uses all processors": (
            [task(0, "client")], [host("client"), host("server", **all_of_it)]
        ),
        "Processors": ([task(n, user=1.6, system=0.1) for n in range(9)], [host(processors=3.9)]),
        "Processors that others use": ([task(user=0.4)], [host(processors=4.0, **some)]),
        "Several machines": (
            [task(n, name) for n, name in enumerate("abc")],
            [host(name, processors=used) for name, used in busy],
        ),
        "Memory": ([task()], [host(pressure={"memory": 0.25, "io": 0.9})]),
        "Network": ([task()], [host(**network)]),
        "Disk and processors": ([task()], [host(disk_busy=1.0, disk_queue=9.0, processors=4.0)]),
        "Files in memory": (reads(), [host(disk_read=1e6, processors=4.0)]),
        "Files from the network": (reads(), [host(network_in=5e8)]),
        "Files from a server on the same host": (reads(), [host(loopback=5e8)]),
        "Files that do not fit into memory": (reads(2), [host(**disk)]),
        "Files that would fit into memory": (reads(2), [host(memory=64 * GIGABYTE, **disk)]),
        "Writes to memory": (writes, [host(**grown)]),
        "Writes with fsync": (writes, [host(disk_written=GIGABYTE / 4)]),
        "Writes to a file system in memory": (writes, [host()]),
        "Waits": ([task(n, "a", phase("mkdir", 4.0, operations=400)) for n in range(3)], [host()]),
        "Tasks that compute": ([task(user=3.7, system=0.2)], [host(processors=1.0)]),
        "Hosts that differ": (slow, [host("a", 2, cores=8), host("b", 2, cores=2)]),
    }  # fmt: skip


def test_bottlenecks_are_as_reviewed() -> None:
    lines = []
    for name, (tasks, hosts) in examples().items():
        found = bottlenecks(one_round(tasks, *hosts))
        lines += [f"## {name}", "", *(f"- {one.what}: {one.told}" for one in found), ""]
    same_as_golden("\n".join(lines), "sync/bottlenecks.md")


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
    reported = bottlenecks(one_round(reads, *uses))[0].told
    assert "by 8 tasks" in reported
    assert "machine" not in reported  # there is only this one


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


def test_hosts_differ_beyond_the_error_of_their_clocks() -> None:
    tasks, uses = examples()["Hosts that differ"]
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
