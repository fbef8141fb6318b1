"""What a host counts of itself: of real work, of machines that this one is not, and over rounds."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gridbench.machine.processes import processor_time
from gridbench.machine.processors import unused
from gridbench.sync.host_counters import (
    MOST,
    CounterReading,
    Counters,
    CounterSampler,
    WatchedPrograms,
)
from running import DEADLINE

MEGABYTE = 1 << 20
STAT = "cpu  100 0 50 {idle} {waiting} 0 25 10 0 0\ncpu0 100 0 50 1000 20 0 25 10 0 0\n"

# A program of any name that computes for so many seconds when a line comes, until no more come.
_COMPUTE = """
import sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
print(flush=True)
for line in sys.stdin:
    if line.startswith("gb-"):
        open("/proc/self/comm", "w").write(line.strip())
        line = "0"
    end = time.process_time() + float(line)
    while time.process_time() < end:
        pass
    print(flush=True)
"""


class Program:
    """One that computes with given values."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.pid = process.pid
        self._process = process
        self._wait()

    def compute(self, seconds: float) -> None:
        self._tell(str(seconds))

    def rename(self, name: str) -> None:
        self._tell(name)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        self._wait()

    def _wait(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "\n"


@contextmanager
def program(name: str) -> Iterator[Program]:
    with subprocess.Popen(
        [sys.executable, "-c", _COMPUTE, name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield Program(process)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """The files of a host that has a disk of two partitions, mirrored to another, and a bond."""
    proc, sys_ = tmp_path / "proc", tmp_path / "sys"
    disk = "{} 0 {} 10 0 {read} 0 20 0 {written} 0 0 {busy} {queued} 0 0 0 0 0 0\n"
    write(proc / "sys/kernel/random/boot_id", "1234-5678\n")
    write(proc / "stat", STAT.format(idle=1000, waiting=20))
    write(
        proc / "diskstats",
        "".join(
            disk.format(8, name, read=1000, written=2000, busy=500, queued=900)
            for name in ("sda", "sda1", "sda2", "cciss/c0d0", "loop0", "ram3", "zram0", "md0", "x")
        ),
    )
    write(
        proc / "net/dev",
        "Inter-| Receive | Transmit\n face |bytes\n"
        + "".join(
            f"{name:>6}:{1000 * n} 1 0 0 0 0 0 0 {2000 * n} 1 0 0 0 0 0 0\n"
            for n, name in enumerate(("lo", "eth0", "eth1", "bond0", "ifb0", "veth1"), 1)
        ),
    )
    write(proc / "meminfo", "MemTotal: 2048 kB\nMemAvailable: 512 kB\nDirty: 8 kB\nWriteback: 4 kB")
    for name in ("cpu", "memory"):
        write(proc / "pressure" / name, "some avg10=0.00 total=3000000\nfull avg10=0.00 total=9\n")
    for name in ("sda", "cciss!c0d0", "loop0", "ram3", "zram0", "md0/slaves/sda"):
        (sys_ / "block" / name).mkdir(parents=True)
    for name, speed in (("lo", ""), ("eth0", "1000"), ("eth1", "-1"), ("bond0", "2000"),
                        ("veth1", "10000")):  # fmt: skip
        write(sys_ / "class/net" / name / "speed", speed)
    for name in ("eth0/device", "eth1/device", "bond0/lower_eth0", "bond0/lower_eth1"):
        (sys_ / "class/net" / name).mkdir()
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def counters(host: Path) -> Counters:
    return Counters(host / "proc", host / "sys")


def test_only_whole_disks_and_interfaces_that_lie_upon_no_others_count(host: Path) -> None:
    source = counters(host)
    assert source.boot == "1234-5678"
    read = source.read()
    assert set(read.disks) == {"sda", "cciss/c0d0"}
    disk = read.disks["sda"]
    assert (disk.read, disk.written) == (1000 * 512, 2000 * 512)
    assert (disk.busy, disk.queued) == (0.5, 0.9)
    assert read.network == {
        "lo": (1000, 2000), "eth0": (2000, 4000), "eth1": (3000, 6000), "veth1": (6000, 12000),
    }  # fmt: skip
    # Not known is that of eth1, and virtual interfaces have none of their own.
    assert read.speeds == {"eth0": 125e6}
    assert (read.memory, read.available, read.dirty) == (2 << 20, 512 << 10, 12 << 10)
    assert read.pressure == {"cpu": 3.0, "memory": 3.0}


def test_samples_are_differences(host: Path) -> None:
    source = counters(host)
    source.cores = 4
    before = replace(source.read(), at=10.0)
    write(host / "proc/stat", STAT.format(idle=1300, waiting=120))
    text = (host / "proc/diskstats").read_text()
    text = text.replace("2000 0 0 500 900", "6000 0 0 2300 6900", 1)
    (host / "proc/diskstats").write_text(text)
    text = (host / "proc/net/dev").read_text().replace(":1000 1", ":9000 1")
    (host / "proc/net/dev").write_text(
        text.replace(":2000 1", ":100002000 1").replace("0 12000", "0 212000")
    )
    write(host / "proc/meminfo", "MemTotal: 2048 kB\nMemAvailable: 256 kB\nDirty: 108 kB")
    write(host / "proc/pressure/cpu", "some avg10=0.00 total=3500000\n")
    found = replace(source.read(), at=12.0).sample_since(before, instant=11.0)
    ticks = os.sysconf("SC_CLK_TCK")
    assert (found.at, found.seconds) == (1.0, 2.0)
    assert found.processors == pytest.approx(4 - 400 / ticks / 2)
    assert found.waiting == pytest.approx(100 / ticks / 2)
    assert (found.disk, found.disk_queue) == ("sda", 3.0)
    assert found.disk_busy == pytest.approx(0.9)
    assert (found.disk_read, found.disk_written) == (0, 4000 * 512 / 2)
    assert (found.network_in, found.network_out) == (50e6, 100e3)
    assert found.loopback == 4000  # what it has sent to itself, counted once
    assert (found.link, found.link_used) == ("eth0", 0.4)
    assert (found.dirty, found.dirtied) == (108 << 10, 96 << 10)
    assert found.pressure == {"cpu": 0.25, "memory": 0.0}


def test_what_has_come_since_counts_from_nothing(host: Path) -> None:
    source = counters(host)
    after = replace(source.read(), at=2.0)
    before = replace(after, at=0.0, disks={}, network={})
    found = after.sample_since(before, instant=0.0)
    assert (found.disk_read, found.network_in) == (1000 * 512, 11_000 / 2)
    assert found.disk_busy == 0.25
    gone = replace(before, at=4.0, speeds={}).sample_since(after, instant=0.0)
    assert (gone.disk_read, gone.network_in, gone.disk) == (0, 0, "")


def test_a_host_that_tells_nothing_is_all_zeros(tmp_path: Path) -> None:
    source = counters(tmp_path)
    found = source.read().sample_since(source.read(), 0.0)
    numbers = [getattr(found, name) for name in ("processors", "disk_read", "network_in", "dirty")]
    assert numbers == [0, 0, 0, 0]
    assert (found.disk, found.link, found.pressure, source.boot) == ("", "", {}, "")


def test_old_kernels_take_nothing_away() -> None:
    assert unused("cpu 1 2 3 400 5 6 7").stolen == 0
    assert unused("cpu 1 2 3 400 5 6 7 800 9\nno more").stolen == 800 / os.sysconf("SC_CLK_TCK")


def test_what_is_written_to_a_disk_is_counted(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not block.exists():
        pytest.skip(f"{tmp_path} is on no disk")
    watcher = CounterSampler("here")
    watcher.begin(time.monotonic())
    with (tmp_path / "file").open("wb") as file:
        file.write(os.urandom(8 * MEGABYTE))
        file.flush()
        os.fsync(file.fileno())
    use = watcher.finish()
    watcher.close()
    assert use.whole is not None
    assert use.whole.disk_written * use.whole.seconds >= 8 * MEGABYTE
    assert use.whole.disk_busy > 0
    assert use.whole.disk
    assert use.memory > use.whole.available > 0
    assert use.boot


def test_programs_that_are_watched_are_seen() -> None:
    with ExitStack() as stack:
        first, second = (stack.enter_context(program("gb-watched")) for _ in range(2))
        other = stack.enter_context(program("gb-not-watched"))
        watcher = CounterSampler("here")
        watcher.begin(time.monotonic(), ["gb-watched", "gb-nobody"], every=1000)
        first.compute(0.3)
        second.compute(0.1)
        other.compute(0.2)
        use = watcher.finish()
        watcher.close()
    assert use.whole is not None
    used = {name: share * use.whole.seconds for name, share in use.whole.watched.items()}
    busiest = {name: share * use.whole.seconds for name, share in use.whole.watched_busiest.items()}
    # A little more, as lines are read and written; but not what the third one used.
    assert 0.4 <= used["gb-watched"] < 0.6
    assert 0.3 <= busiest["gb-watched"] < used["gb-watched"]
    assert used["gb-nobody"] == busiest["gb-nobody"] == 0
    assert set(used) == {"gb-watched", "gb-nobody"}
    assert use.whole.processors > 0


def test_programs_that_come_and_go_are_counted() -> None:
    programs = WatchedPrograms(["gb-comes"])
    assert programs.look() == {"gb-comes": {}}
    with program("gb-comes") as short:
        short.compute(0.1)
        (one,) = programs.look()["gb-comes"]
        before = programs.look()["gb-comes"][one]
    with program("gb-comes") as late:
        seen = programs.look()["gb-comes"]
        late.compute(0.1)
        again = programs.look()["gb-comes"]
    assert (one.pid, late.pid) == (short.pid, next(p.pid for p in again if p != one))
    assert before >= 0.1
    # What has ended keeps what it has used.
    assert seen[one] == again[one] == before
    assert sum(again.values()) >= 0.2


def test_a_program_is_known_by_its_name_soon_after_it_was_started() -> None:
    """What a shell starts has the shell's name first."""
    programs = WatchedPrograms(["gb-renamed"])
    script = "import sys\nsys.stdin.readline()\n" + _COMPUTE
    with subprocess.Popen(
        [sys.executable, "-c", script, "gb-renamed"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert programs.look() == {"gb-renamed": {}}
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        Program(process)
        assert [one.pid for one in programs.look()["gb-renamed"]] == [process.pid]


def test_processes_are_looked_for_when_the_host_has_started_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed: list[list[int]] = []

    def listing() -> list[int]:
        listed.append(sorted(known))
        return listed[-1]

    monkeypatch.setattr("gridbench.sync.host_counters.ids", listing)
    programs, known = WatchedPrograms(["gb-late"]), {os.getpid()}
    for _ in range(3):
        assert programs.look(forks=5) == {"gb-late": {}}
    assert len(listed) == 2  # a second time, as names of new processes may change
    with program("gb-late") as late:
        known.add(late.pid)
        assert programs.look(forks=5) == programs.look(forks=6, find=False) == {"gb-late": {}}
        assert [one.pid for one in programs.look(forks=6)["gb-late"]] == [late.pid]


def test_a_host_tells_that_it_has_started_processes() -> None:
    source = Counters()
    source.watch(["gb-late"])
    for _ in range(3):
        source.read()
    with program("gb-late") as late:
        assert [one.pid for one in source.read().watched["gb-late"]] == [late.pid]
    source.watch(["gb-late"])
    assert source.read().watched == {"gb-late": {}}


def test_a_program_that_comes_during_a_round_is_seen() -> None:
    watcher = CounterSampler("here")
    watcher.watch(["gb-during"])
    watcher.begin(time.monotonic(), ["gb-during"], every=1000)
    with program("gb-during") as process:
        process.compute(0.1)
        use = watcher.finish()
    watcher.begin(time.monotonic(), ["gb-during"], every=1000)
    again = watcher.finish()
    watcher.close()
    assert use.whole is not None
    assert use.whole.watched["gb-during"] * use.whole.seconds >= 0.1
    assert again.whole is not None
    assert again.whole.watched == {"gb-during": 0.0}


def test_what_gets_its_name_late_has_used_nothing_yet() -> None:
    """When it used the processor before is not known."""
    programs = WatchedPrograms(["gb-second"])
    with program("gb-first") as process:
        process.compute(0.2)
        for _ in range(2):
            programs.look()
        process.rename("gb-second")
        assert programs.look() == {"gb-second": {}}
        programs.look_at_all_again()
        (used,) = programs.look()["gb-second"].values()
        assert used == 0
        process.compute(0.1)
        (used,) = programs.look()["gb-second"].values()
    assert 0.1 <= used < 0.2


def test_long_names_are_known_by_what_linux_keeps_of_them() -> None:
    with program("a-very-long-name-of-a-server") as server:
        found = WatchedPrograms(["a-very-long-name-of-a-server"]).look()
    assert [one.pid for one in found["a-very-long-name-of-a-server"]] == [server.pid]


def test_an_id_that_is_used_again_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with program("gb-again") as process:
        process.compute(0.1)
        programs = WatchedPrograms(["gb-again"])
        (first,) = programs.look()["gb-again"].items()
        monkeypatch.setattr("gridbench.sync.host_counters.processor_time", lambda _: 0.0)
        programs.look()
        found = programs.look()["gb-again"]
    # The old one keeps what it has used; the new one, here under the same id, starts over.
    assert found == dict([first]) | {first[0]: 0.0}


def test_processor_time_is_that_of_the_process() -> None:
    own = processor_time(os.getpid())
    assert own is not None
    assert own <= time.process_time()
    with program("gb-time") as process:
        process.compute(0.1)
        used = processor_time(process.pid)
    assert used is not None
    assert used >= 0.1
    assert processor_time(process.pid) is None


class Counted(Counters):
    """Says when so many readings were taken."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.reached = threading.Event()
        self._left = most

    def read(self, *, find: bool = True) -> CounterReading:
        self._left -= 1
        if self._left == 0:
            self.reached.set()
        return super().read(find=find)


def test_a_short_round_is_not_looked_into() -> None:
    watcher = CounterSampler("here")
    instant = time.monotonic() + 1000
    watcher.begin(instant)
    use = watcher.finish()
    watcher.close()
    assert (use.host, use.cores, use.during) == ("here", os.cpu_count(), ())
    assert use.whole is not None
    assert use.whole.at < 0


@pytest.mark.parametrize("looks", [1, MOST - 1, MOST, MOST + 1, 2 * MOST + 1])
def test_a_long_round_has_as_many_samples_as_are_kept(looks: int) -> None:
    counted = Counted(looks + 1)  # one before the first look
    watcher = CounterSampler("here", counted)
    instant = time.monotonic()
    watcher.begin(instant, every=0.0002)
    assert counted.reached.wait(DEADLINE)
    use = watcher.finish()
    watcher.close()
    assert use.whole is not None
    assert 0 < len(use.during) <= MOST
    assert use.during[-1].at == use.whole.at
    assert math.fsum(one.seconds for one in use.during) == pytest.approx(use.whole.seconds)
    for name in ("disk_read", "disk_written", "loopback"):
        parts = math.fsum(getattr(one, name) * one.seconds for one in use.during)
        assert parts == pytest.approx(getattr(use.whole, name) * use.whole.seconds)
    assert sum(one.dirtied for one in use.during) == use.whole.dirtied
    assert all(one.at > 0 for one in use.during)


def test_rounds_follow_each_other_and_one_can_be_abandoned() -> None:
    counted = Counted(3)
    watcher = CounterSampler("here", counted)
    watcher.begin(time.monotonic(), every=0.0002)
    assert counted.reached.wait(DEADLINE)
    watcher.begin(time.monotonic(), every=1000)
    use = watcher.finish()
    watcher.close()
    assert use.during == ()
    assert [thread for thread in threading.enumerate() if thread.name == "counters"] == []
