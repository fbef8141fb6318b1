"""`gridbench data` from the command line: real data grids, with real members and clients."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from gridbench.datagrid.record import FILE, FORM, DataGridCase
from gridbench_testbed.batch import slurm
from gridbench_testbed.daemons import lacking
from gridbench_testbed.links import sshd
from running import DEADLINE, PROGRAM, Run, alive, cmdline, until

REAL = ("coherence", "geode", "hazelcast", "ignite", "redis")
SETUP = """<DataGridSetup>
<NNodes>4</NNodes><MNodes>{members}</MNodes><NTasks>{tasks}</NTasks><NRepeats>{repeats}</NRepeats>
<ReadDataSize>2</ReadDataSize><UpdateDataSize>1</UpdateDataSize><WriteDataSize>1</WriteDataSize>
<NObjects>{objects}</NObjects><ObjectSize>1</ObjectSize><SharedDataSize>3</SharedDataSize>
</DataGridSetup>
"""
MEMBERS = 3


@pytest.fixture
def setup(tmp_path: Path) -> Path:
    return write(tmp_path / "setup.xml")


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    until(lambda: not of_ours())


def of_ours() -> list[psutil.Process]:
    """Members and clients that descend from this test."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if "gridbench.datagrid.process" in " ".join(cmdline(process))
    ]


def write(path: Path, *, members: int = MEMBERS, tasks: int = 8, repeats: int = 25) -> Path:
    # Each update has an object of its own.
    objects = 3 * tasks * repeats
    path.write_text(SETUP.format(members=members, tasks=tasks, repeats=repeats, objects=objects))
    return path


def well(done: subprocess.CompletedProcess[str], status: int = 0) -> None:
    assert done.returncode == status, done.stdout + done.stderr


def cases(folder: Path) -> list[DataGridCase]:
    return FORM.read(folder)[1]


def right(case: DataGridCase, tasks: int = 8, repeats: int = 25) -> None:
    """That of `setup`: all was done, and the data are as they have to be."""
    assert case.status == "done", case.why
    assert sorted(case.tasks.id) == list(range(tasks))
    assert all(
        client == task % 4 for task, client in zip(case.tasks.id, case.tasks.client, strict=True)
    )
    counts, checked = case.counts, case.checked
    assert checked is not None
    assert (counts.reads, counts.updates, counts.inserts) == (
        2 * tasks * repeats, tasks * repeats, tasks * repeats,
    )  # fmt: skip
    assert counts.shared == 3 * tasks
    assert not case.wrong
    assert not case.missing
    assert not case.errors
    stored = 3 * tasks * repeats + 3
    assert checked.expected == checked.found == checked.read == stored + tasks * repeats
    assert not checked.missing
    assert not checked.wrong
    assert checked.updates == checked.updates_expected == tasks * repeats
    by_operation = {(one.operation, one.counted): sum(one.counts) for one in case.latencies}
    assert by_operation["read", "service"] >= counts.reads
    assert by_operation["update", "service"] == counts.updates
    assert by_operation["insert", "service"] == counts.inserts
    served = sum(count for (_, counted), count in by_operation.items() if counted == "service")
    assert sum(case.windows.operations) == served


def test_the_first_look_needs_no_cluster(gridbench: Run, tmp_path: Path) -> None:
    done = gridbench("data", "--warm", "0.2", "--out", "out", "--json", "--accept-load")
    well(done)
    assert [one["engine"] for one in json.loads(done.stdout)["cases"]] == ["embedded"]
    (case,) = cases(tmp_path / "out")
    assert case.engine == "embedded"
    assert case.checked is not None
    assert case.checked.found == case.checked.expected
    assert "embedded" in (tmp_path / "out" / "report.html").read_text().lower()
    again = gridbench("data", "--warm", "0.2", "--out", "out", "--accept-load")
    well(again)
    assert "1 of 1 case" in again.stderr
    assert len(cases(tmp_path / "out")) == 1
    assert list((tmp_path / "out" / "timelines").glob("*.parquet"))


@pytest.mark.parametrize("engine", REAL)
def test_a_data_grid_keeps_all_data(gridbench: Run, tmp_path: Path, engine: str) -> None:
    # The fewest that keep copies; three are those of the test on hosts.
    members = MEMBERS if engine == "redis" else 2
    setup = write(tmp_path / "setup.xml", members=members)
    options = ("--engine", engine, "--warm", "0.2", "--out", "out", "--accept-load")
    well(gridbench("data", str(setup), *options))
    (case,) = cases(tmp_path / "out")
    right(case)
    assert len(case.members) == members
    stored = 3 * 8 * 25 + 3
    assert sum(member.entries for member in case.members) == stored
    assert all(member.memory > 10 << 20 for member in case.members if engine != "redis")
    assert all(member.entries > stored / members / 3 for member in case.members)


def large_and_small(gridbench: Run, folder: Path, engine: str) -> tuple[DataGridCase, DataGridCase]:
    """Cases with 400 objects of 100 KB and of 1 KB, one after the other on one cluster."""
    options = ("--engine", engine, "--warm", "0.2", "--out", "out", "--accept-load")
    members = "3" if engine == "redis" else "2"  # the fewest that keep copies
    grid = ("--members", members, "--clients", "1", "--object-sizes", "100KB,1KB")
    words = ("--records", "400", "--operations", "10", "--member-memory", "320MB")
    well(gridbench("data", "ycsb", "c", *grid, *words, *options))
    large, small = cases(folder / "out")
    assert large.cluster_in == small.cluster_in
    return large, small


@pytest.mark.parametrize("engine", ["hazelcast", "redis"])
def test_memory_is_that_of_the_case_alone(gridbench: Run, tmp_path: Path, engine: str) -> None:
    both = large_and_small(gridbench, tmp_path, engine)
    used = [sum(member.used for member in case.members) for case in both]
    assert used[0] - used[1] > 0.9 * 2 * 400 * 99 * 1024


def test_ignite_keeps_within_the_memory_of_its_members(gridbench: Run, tmp_path: Path) -> None:
    both = large_and_small(gridbench, tmp_path, "ignite")
    assert all(0 < member.memory <= 320 << 20 for case in both for member in case.members)


@pytest.mark.parametrize(
    "engine",
    [pytest.param(one, marks=() if one == "redis" else pytest.mark.datagrids) for one in REAL],
)
def test_the_loss_of_a_member_loses_no_data(gridbench: Run, tmp_path: Path, engine: str) -> None:
    setup = write(tmp_path / "setup.xml", tasks=80, repeats=50)
    options = ("--engine", engine, "--warm", "0.2", "--out", "out", "--accept-load")
    done = gridbench("data", str(setup), *options, "--kill-node", "1")
    (case,) = cases(tmp_path / "out")
    assert case.status == "done", case.why
    assert case.members[1].killed_at is not None
    assert 0 < case.members[1].killed_at < case.seconds
    checked = case.checked
    assert checked is not None
    # What ended in an error may have been done.
    assert abs(checked.found - checked.expected) <= checked.in_doubt
    assert checked.missing <= checked.in_doubt
    assert not checked.wrong
    assert 0 <= checked.updates - checked.updates_expected <= checked.in_doubt
    assert done.returncode in (0, 1), done.stdout + done.stderr


@pytest.mark.datagrids
def test_two_members_at_once_are_reported_as_they_are(gridbench: Run, tmp_path: Path) -> None:
    setup = write(tmp_path / "setup.xml", tasks=40, repeats=50, members=4)
    options = ("--engine", "hazelcast", "--warm", "0.2", "--out", "out", "--accept-load")
    gridbench("data", str(setup), *options, "--kill-node", "1,2")
    (case,) = cases(tmp_path / "out")
    assert case.status == "done", case.why
    assert case.checked is not None
    # A partition and its copy were on these two, of four.
    assert case.checked.found < case.checked.expected
    assert "lost" in (tmp_path / "out" / "report.html").read_text()


def test_open_loop_and_atomic_updates(gridbench: Run, tmp_path: Path) -> None:
    setup = write(tmp_path / "setup.xml", members=1)
    options = ("--warm", "0.2", "--out", "out", "--accept-load", "--updates", "atomic")
    well(gridbench("data", str(setup), *options, "--open", "2000"))
    closed, offered = cases(tmp_path / "out")
    assert (closed.loop, offered.loop, offered.rate) == ("closed", "open", 2000.0)
    right(closed)
    right(offered)
    counted = {(one.operation, one.counted): sum(one.counts) for one in offered.latencies}
    assert counted["read", "intended"] == counted["read", "service"]
    # 2000 operations and those of shared objects, at so many in a second.
    assert offered.seconds > 0.9 * 4 * 8 * 25 / 2000


def test_ycsb_workloads(gridbench: Run, tmp_path: Path) -> None:
    options = ("--warm", "0.2", "--out", "out", "--accept-load", "--records", "500")
    options = (*options, "--operations", "100", "--members", "1", "--clients", "2")
    well(gridbench("data", "ycsb", "all", *options))
    found = {case.label: case for case in cases(tmp_path / "out")}
    assert sorted(found) == [f"ycsb-{letter}" for letter in "abcdef"]
    for case in found.values():
        counts, checked = case.counts, case.checked
        assert checked is not None
        assert checked.found == checked.expected == 500 + counts.inserts
        assert not case.wrong + checked.wrong + checked.missing
    assert found["ycsb-e"].counts.scans > found["ycsb-e"].counts.inserts > 0
    assert found["ycsb-f"].counts.updates > 0
    assert found["ycsb-c"].counts.reads == 2 * 3 * 100


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, "data", *arguments], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_member_outlives_its_benchmark(tmp_path: Path, number: signal.Signals) -> None:
    setup = write(tmp_path / "setup.xml", members=1, tasks=4, repeats=1)
    text = setup.read_text().replace(
        "</DataGridSetup>", "<SleepTime>300</SleepTime></DataGridSetup>"
    )
    setup.write_text(text)
    options = ("--engine", "hazelcast", "--no-warm", "--out", "out", "--accept-load")
    process = start(tmp_path, str(setup), *options)
    try:
        until(lambda: len(of_ours()) == 1 + min(4, len(os.sched_getaffinity(0))))
        ours = of_ours()
        process.send_signal(number)
        output, _ = process.communicate(timeout=DEADLINE)
        until(lambda: not any(alive(one.pid) for one in ours))
    finally:
        process.kill()
    assert process.returncode == (130 if number == signal.SIGINT else -number), output
    if number == signal.SIGINT:
        assert "stopped: results are saved" in output


HANGING = """
package mine;

import gridbench.datagrid.*;

public final class Hanging implements DataGrid {
    public Member join(Cluster cluster, int index, long memory) throws Exception {
        System.out.println("member " + index + " waits for what does not come");
        Thread.sleep(Long.MAX_VALUE);
        return null;
    }

    public Store connect(Cluster cluster, String address) {
        throw new UnsupportedOperationException();
    }

    public String version() {
        return "1";
    }
}
"""


def test_members_that_do_not_come_are_reported_with_their_log(
    gridbench: Run, tmp_path: Path, setup: Path
) -> None:
    (tmp_path / "Hanging.java").write_text(HANGING)
    path = gridbench("data", "engines", "class-path").stdout.strip()
    subprocess.run(
        ["javac", "-cp", path, "-d", "classes", "Hanging.java"], cwd=tmp_path, check=True
    )
    file = tmp_path / "engine.toml"
    file.write_text('title = "Hanging"\nclass = "mine.Hanging"\nclasspath = ["classes"]\n')
    options = ("--engine", str(file), "--start-timeout", "5", "--accept-load")
    done = gridbench("data", str(setup), *options)
    well(done, status=2)
    assert (
        "Hanging does not start: member 0 has not joined within 5 s, nor have 2 others"
        in done.stderr
    )
    assert "  | member 0 waits for what does not come" in done.stderr
    assert "--start-timeout" in done.stderr


def test_no_java(gridbench: Run, setup: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = gridbench("data", str(setup), "--accept-load", env={"PATH": str(empty), "JAVA_HOME": ""})
    well(done, status=2)
    assert "java" in done.stderr.lower()
    assert "install" in done.stderr


def test_data_that_do_not_fit_are_reported_before(
    gridbench: Run, tmp_path: Path, setup: Path
) -> None:
    text = setup.read_text().replace("<ObjectSize>1<", "<ObjectSize>102400<")
    setup.write_text(text)
    done = gridbench("data", str(setup), "--engine", "hazelcast", "--out", "out", "--accept-load")
    well(done, status=2)
    assert "do not fit" in done.stderr
    assert not (tmp_path / "out" / FILE).exists()


@pytest.mark.skipif(bool(sshd.why_not()), reason=sshd.why_not())
def test_members_and_clients_on_hosts(gridbench: Run, tmp_path: Path, setup: Path) -> None:
    options = ("--engine", "hazelcast", "--warm", "0.2", "--out", "out", "--accept-load")
    well(gridbench("data", str(setup), *options, "--emulate", "ssh", "--nodes", "4"))
    (case,) = cases(tmp_path / "out")
    right(case)
    assert len({member.host for member in case.members}) == MEMBERS
    assert case.placed == "members on 3 hosts, clients on 1 host"


@pytest.mark.datagrids
@pytest.mark.skipif(bool(slurm.why_not()), reason=slurm.why_not())
def test_members_and_clients_in_jobs_of_slurm(gridbench: Run, tmp_path: Path, setup: Path) -> None:
    options = ("--engine", "hazelcast", "--warm", "0.2", "--out", "out", "--accept-load")
    well(gridbench("data", str(setup), *options, "--emulate", "slurm", "--nodes", "2"))
    (case,) = cases(tmp_path / "out")
    right(case)


def test_redis_is_there() -> None:
    assert not lacking("redis-server", "redis-benchmark")
    assert shutil.which("java")
