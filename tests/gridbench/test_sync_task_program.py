"""The program with the built-in tasks, run for real."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gridbench.native import task_program
from gridbench.records import from_record
from gridbench.sync.record import Phase
from running import DEADLINE, until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount file systems")

NOBODY = 65534


def run(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    ran: subprocess.CompletedProcess[str] = subprocess.run(
        [task_program(), *map(str, arguments)],
        check=False,
        timeout=DEADLINE,
        text=True,
        **{"capture_output": True, **options},  # type: ignore[call-overload]
    )
    return ran


def phases(*arguments: str | Path) -> dict[str, Phase]:
    """What a task says that ends well, in its last line, by name."""
    ran = run(*arguments)
    assert (ran.returncode, ran.stderr) == (0, "")
    reported = json.loads(ran.stdout.splitlines()[-1])
    assert list(reported) == ["phases"]
    assert all(set(one) == set(Phase.__dataclass_fields__) for one in reported["phases"])
    return {one["name"]: from_record(Phase, one) for one in reported["phases"]}


def failure(*arguments: str | Path, status: int = 1, **options: object) -> str:
    """The line that a task says which does not end well."""
    ran = run(*arguments, **options)
    assert (ran.returncode, ran.stdout) == (status, "")
    assert ran.stderr.startswith(f"gridbench-task {arguments[0]}: ")
    assert ran.stderr.count("\n") == 1
    return ran.stderr


@contextmanager
def mounted(place: Path, kind: str, options: str = "defaults") -> Iterator[Path]:
    """A file system in memory."""
    place.mkdir()
    subprocess.run(["mount", "-t", kind, "-o", options, "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


# ---- Tasks that print nothing


def test_null_and_sleep_print_nothing() -> None:
    for arguments in (["null"], ["null", "anything"], ["sleep", "0"], ["sleep", "0.01"]):
        ran = run(*arguments)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", ""), arguments


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "1s", "1e99", ""])
def test_sleep_takes_seconds(seconds: str) -> None:
    assert "is not a number of seconds" in failure("sleep", seconds, status=2)


def test_without_a_task_it_says_what_there_is() -> None:
    for arguments in ([], ["sing"]):
        ran = run(*arguments)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "write-read" in ran.stderr
    assert "write-read" in run("--help").stdout


@pytest.mark.parametrize(
    "task", ["sleep", "write", "read", "write-read", "metadata", "cpu", "memory"]
)
def test_each_task_tells_its_options(task: str) -> None:
    ran = run(task, "--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"usage: gridbench-task {task}")
    assert all(len(line) <= 80 for line in ran.stdout.splitlines())


# ---- Files


def test_a_file_is_written_and_read_and_removed(tmp_path: Path) -> None:
    options = ("--directory", tmp_path, "--size", "1.5M", "--block", "1M", "--worker", "3")
    reported = phases("write-read", *options, "--fsync", "--drop")
    assert list(reported) == ["write", "read"]
    for phase in reported.values():
        assert (phase.bytes, phase.operations) == (3 << 19, 2)
        latency = phase.latency
        assert latency is not None
        assert 0 < latency.p50 <= latency.p90 <= latency.p99 <= latency.max <= phase.seconds
    assert not list(tmp_path.iterdir())
    phases("write-read", *options, "--keep")
    assert [path.name for path in tmp_path.iterdir()] == ["worker-3.data"]


def test_what_write_writes_read_reads(tmp_path: Path) -> None:
    options = ("--directory", tmp_path, "--size", "100000")
    phases("write", *options, "--block", "777")
    assert (tmp_path / "worker-0.data").stat().st_size == 100_000
    reported = phases("read", *options, "--block", "4k", "--drop")
    assert reported["read"].bytes == 100_000
    assert reported["read"].operations == 25
    # Rewritten, it is a new file: not what is left of a longer one.
    phases("write", "--directory", tmp_path, "--size", "50000")
    assert (tmp_path / "worker-0.data").stat().st_size == 50_000


def test_the_page_cache_is_passed_by(tmp_path: Path) -> None:
    reported = phases(
        "write-read", "--directory", tmp_path, "--size", "192K", "--block", "64k", "--direct"
    )
    assert reported["write"].operations == reported["read"].operations == 3


@as_root
def test_a_file_system_that_has_only_a_page_cache_is_reported(tmp_path: Path) -> None:
    with mounted(tmp_path / "ramfs", "ramfs") as folder:
        said = failure("write", "--directory", folder, "--direct")
        assert "does not let one pass by the page cache" in said
        assert f"{folder}/worker-0.data" in said
        assert said.endswith("leave out --direct\n")
        assert not list(folder.iterdir())


def test_wrong_data_is_an_error(tmp_path: Path) -> None:
    options = ("--directory", tmp_path, "--size", "64K")
    phases("write", *options)
    file = tmp_path / "worker-0.data"
    data = bytearray(file.read_bytes())
    data[40_000] ^= 1
    file.write_bytes(data)
    assert f"{file}: byte 40000 is not what worker 0 writes" in failure("read", *options)
    # Nor is the data of another worker, or of another place.
    phases("write", *options)
    file.rename(tmp_path / "worker-1.data")
    assert "byte 0 is not what worker 1 writes" in failure("read", *options, "--worker", "1")
    data = bytearray((tmp_path / "worker-1.data").read_bytes())
    data[4096:8192], data[8192:12288] = data[8192:12288], data[4096:8192]
    file.write_bytes(data)
    assert "byte 4096 is not what" in failure("read", *options)


def test_a_file_that_is_too_short_or_not_there_is_reported(tmp_path: Path) -> None:
    options = ("--directory", tmp_path, "--size", "64K", "--block", "16K")
    assert "write it first, by the task `write`" in failure("read", *options)
    phases("write", *options)
    os.truncate(tmp_path / "worker-0.data", 40_000)
    assert "the file ends at byte 40000, and more was to be read" in failure("read", *options)


def test_a_folder_that_is_not_there_is_reported_and_not_made(tmp_path: Path) -> None:
    folder = tmp_path / "missing"
    for task in ("write", "read", "write-read", "metadata"):
        said = failure(task, "--directory", folder)
        assert str(folder) in said
        assert "make the directory first, or see that it is mounted" in said
    assert not folder.exists()
    folder.write_text("a file")
    for task in ("write", "read", "metadata"):
        assert "Not a directory" in failure(task, "--directory", folder)
    assert folder.read_text() == "a file"


@pytest.mark.parametrize("task", ["write", "metadata"])
def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path, task: str) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    # Nobody has to get there, and root may write anywhere.
    for parent in folder.parents[:4]:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o011)
    program = tmp_path / "program"
    program.write_bytes(task_program().read_bytes())
    program.chmod(0o755)
    ran = subprocess.run(
        [program, task, "--directory", folder],
        capture_output=True,
        text=True,
        check=False,
        user=NOBODY if os.geteuid() == 0 else None,
    )
    assert ran.returncode == 1
    assert "Permission denied" in ran.stderr
    assert "choose another --directory, one that can be written" in ran.stderr
    assert not list(folder.iterdir())


@as_root
def test_a_full_disk_is_reported_and_nothing_stays(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "tmpfs", "size=1m") as folder:
        said = failure("write", "--directory", folder, "--size", "4M", "--block", "64K")
        assert f"{folder}/worker-0.data: writing at byte" in said
        assert "No space left on device" in said
        assert "make room there, or ask for less" in said
        assert not list(folder.iterdir())


def test_a_file_beyond_the_limit_of_a_process_is_reported(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    options = ("--directory", tmp_path, "--size", "4M", "--block", "64K")
    said = failure("write-read", *options, preexec_fn=limit)
    assert "writing at byte 1048576: File too large" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--size", "0"], "--size: `0` is nothing to work on"),
        (["--size", "-1M"], "--size: `-1M` is below 0"),
        (["--size", "2T"], "--size: `2T` is more than a terabyte"),
        (["--size", "9" * 500], "is more than a terabyte"),
        (["--size", "much"], "--size: `much` is not a size"),
        (["--block", "0"], "--block: `0` is nothing to work on"),
        (["--block", "2G"], "--block: is more than a gigabyte"),
        (["--size", "1000", "--direct"], "--size: 1000 is not a multiple of 4096"),
        (["--worker", "4", "--of", "4"], "--worker 4 is none of --of 4 workers"),
        (["--worker", "-1"], "--worker: `-1` is not a whole number"),
        (["--of", "0"], "--of: `0` is not a whole number"),
        (["--size"], "missing argument for option '--size'"),
        (["--speed", "9"], "there is no option --speed"),
        (["stray"], "unexpected argument"),
    ],
)
def test_wrong_options_are_reported(tmp_path: Path, options: list[str], expected: str) -> None:
    said = failure("write", "--directory", tmp_path, *options, status=2)
    assert expected in said
    assert len(said) < 200
    assert not list(tmp_path.iterdir())


def test_a_result_that_cannot_be_printed_is_reported(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ran = run(
            "cpu",
            "--operations",
            "1",
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
        )
    assert ran.returncode == 1
    assert "cannot print the result: No space left on device" in ran.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "task",
    [
        ("write", "--size", "8G", "--block", "4K"),
        ("write-read", "--size", "8G", "--block", "4K", "--keep"),
        ("metadata", "--count", "50000000"),
        ("metadata", "--count", "50000000", "--operations", "create"),
    ],
)
def test_what_a_signal_ends_leaves_nothing(
    tmp_path: Path, task: tuple[str, ...], number: signal.Signals
) -> None:
    with subprocess.Popen(
        [task_program(), *task, "--directory", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until(lambda: [path for path in tmp_path.rglob("*") if path.name != "worker-0"])
        process.send_signal(number)
        said = process.communicate(timeout=DEADLINE)
    assert (process.returncode, said) == (-number, ("", ""))
    assert not list(tmp_path.iterdir())


# ---- Directories and files


def test_each_kind_of_operation_is_a_phase(tmp_path: Path) -> None:
    reported = phases("metadata", "--directory", tmp_path, "--count", "20")
    assert {name: phase.operations for name, phase in reported.items()} == {
        "mkdir": 20,
        "create": 20,
        "stat": 40,
        "readdir": 21,
        "unlink": 40,
    }
    for phase in reported.values():
        assert phase.latency is not None
        assert 0 < phase.latency.p50 <= phase.latency.max <= phase.seconds
    assert not list(tmp_path.iterdir())


def test_calls_continue_with_what_earlier_ones_left(tmp_path: Path) -> None:
    def metadata(operations: str) -> dict[str, Phase]:
        arguments = ("--directory", tmp_path, "--count", "12", "--operations", operations)
        return phases("metadata", *arguments)

    assert metadata("mkdir")["mkdir"].operations == 12
    folder = tmp_path / "worker-0"
    assert len(list(folder.iterdir())) == 12
    assert metadata("stat")["stat"].operations == 12
    assert metadata("create,stat")["stat"].operations == 24
    assert metadata("readdir")["readdir"].operations == 13
    said = failure("metadata", "--directory", tmp_path, "--operations", "stat,mkdir")
    assert f"{folder}: mkdir: it has directories that an earlier mkdir made" in said
    assert len(list(folder.iterdir())) == 24
    assert metadata("unlink,create,unlink,mkdir,stat,unlink")["stat"].operations == 12
    assert not folder.exists()
    assert "it has nothing that mkdir or create made" in failure(
        "metadata", "--directory", tmp_path, "--operations", "unlink"
    )
    assert not folder.exists()


@pytest.mark.parametrize(("total", "workers"), [(20, 3), (2, 4), (12, 4), (0, 2)])
@pytest.mark.parametrize("shared", [False, True])
def test_workers_share_a_total(tmp_path: Path, total: int, workers: int, shared: bool) -> None:
    def work(worker: int, operations: str) -> int:
        options = ["--total", str(total), "--of", str(workers), "--worker", str(worker)]
        if shared:
            options.append("--shared")
        reported = phases("metadata", "--directory", tmp_path, "--operations", operations, *options)
        return reported[operations].operations

    made = [work(worker, "create") for worker in range(workers)]
    assert sum(made) == total
    assert max(made) - min(made) <= 1
    assert made == sorted(made, reverse=True)
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == total
    listings = [work(worker, "readdir") for worker in range(workers)]
    assert listings == [1] * workers
    assert [work(worker, "unlink") for worker in range(workers)] == made
    assert not list(tmp_path.iterdir())


def test_files_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    (tmp_path / "worker-10.dir.0").mkdir()
    reported = phases(
        "metadata", "--directory", tmp_path, "--shared", "--worker", "1", "--count", "3"
    )
    assert reported["readdir"].operations == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "worker-10.dir.0"]


@as_root
@pytest.mark.parametrize("operations", ["mkdir", "create"])
def test_a_file_system_without_room_for_more_files_is_reported(
    tmp_path: Path, operations: str
) -> None:
    with mounted(tmp_path / "few", "tmpfs", "size=1m,nr_inodes=20") as folder:
        options = ("--count", "100", "--operations", operations)
        said = failure("metadata", "--directory", folder, *options)
        assert f"{operations}: No space left on device" in said
        assert f"{folder}/worker-0/" in said
        assert not list(folder.iterdir())


# ---- Processor and memory


def test_operations_of_the_processor_are_counted() -> None:
    reported = phases("cpu", "--operations", "1000003")["cpu"]
    assert reported.operations == 1_000_003
    assert reported.seconds > 0
    assert phases("cpu", "--seconds", "0.05")["cpu"].seconds >= 0.05


def test_bytes_of_memory_are_counted() -> None:
    reported = phases("memory", "--size", "2400000", "--passes", "3")["memory"]
    assert (reported.bytes, reported.operations) == (3 * 2_400_000, 3)
    assert phases("memory", "--size", "1M", "--seconds", "0.05")["memory"].seconds >= 0.05

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    assert "there is no memory for" in failure("memory", "--size", "8G", preexec_fn=limit)
    assert "give one of --passes or --seconds" in failure(
        "memory", "--passes", "1", "--seconds", "1", status=2
    )
