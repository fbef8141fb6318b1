"""Exclusive locks on results: another process gets an error that names the holder."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from gridbench.errors import InputError
from gridbench.micro.record import FORM
from gridbench.results_folder import LOCK, exclusive_file_lock, exclusive_lock
from gridbench.run.recorder import make_places, replaceable
from gridbench.sync.record import FILE
from running import PROGRAM, MakeSetup, Run, until

_HOLDS = """
import os, sys
from pathlib import Path
from rich.console import Console
from gridbench.results_folder import exclusive_lock, exclusive_file_lock
name, place, forks = sys.argv[1:]
with (exclusive_lock if name == "folder" else exclusive_file_lock)(Path(place), Console()):
    child = 0 if forks == "no" else os.fork()
    if forks == "yes" and not child:
        sys.stdin.read()
        os._exit(0)
    print(child, flush=True)
    sys.stdin.read()
"""
MICRO = ("micro", "null_call", "--quick", "--engine", "process-pool")


@contextmanager
def holder(
    place: Path, *, name: str = "folder", forks: str = "no"
) -> Iterator[subprocess.Popen[str]]:
    """A process that has a folder or file of results to itself. It has printed the process that it
    has forked, which ends as it does: with its input."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS, name, str(place), forks],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            yield process
        finally:
            process.communicate()


@pytest.mark.parametrize(
    "command",
    [
        (*MICRO, "--out", "out"),
        ("scenario", "3", "--quick", "--out", "out"),
        ("scenario", "1", "3", "--quick", "--out", "out"),
        ("data", "--out", "out"),
        ("data", "crossover", "--out", "out"),
        ("sync", "-w", "1", "--out", "out", "null"),
        ("run", "setup.xml", "--out", "out"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_command_says_who_uses_its_folder(
    command: tuple[str, ...], gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    make_setup()
    with holder(tmp_path / "out") as process:
        done = gridbench(*command, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.returncode == 2
    assert done.stderr.splitlines()[-2:] == [
        f"gridbench: error: out: is in use by another gridbench, process {process.pid}",
        "hint: wait until that has ended, or choose another --out",
    ]
    assert done.stdout == ""


def test_so_does_one_whose_results_are_a_file(benchmarks: Run, tmp_path: Path) -> None:
    with holder(tmp_path / "out.json", name="file") as process:
        done = benchmarks("journal", "--out", "out.json", "--fresh")
    assert done.returncode == 2
    text = f"gridbench: error: out.json: is in use by another gridbench, process {process.pid}\n"
    assert done.stderr.startswith(text)
    assert list(tmp_path.iterdir()) == []


def test_results_are_as_they_were_also_if_they_were_to_be_forgotten(
    gridbench: Run, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / FORM.file).write_text("of the first\n")
    with holder(tmp_path / "out"):
        assert gridbench(*MICRO, "--out", "out", "--fresh").returncode == 2
    assert (tmp_path / "out" / FORM.file).read_text() == "of the first\n"


def test_two_that_measure_at_once(
    gridbench: Run, tmp_path: Path, environment: dict[str, str]
) -> None:
    words = ("sync", "-w", "1", "--rounds", "200", "--out", "out", "sleep", "0.2")
    first = subprocess.Popen(
        [*PROGRAM, *words], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        rounds = tmp_path / "out" / FILE
        until(lambda: rounds.exists() and rounds.read_text().count("\n") >= 2)
        second = gridbench(*words)
        assert second.returncode == 2
        assert f"is in use by another gridbench, process {first.pid}\n" in second.stderr
    finally:
        first.kill()
        first.wait()
    # A killed one has left its lock file, but not the lock.
    assert (tmp_path / "out" / LOCK).read_text() == f"{first.pid} {platform.node()}\n"
    again = gridbench("sync", "-w", "1", "--rounds", "1", "--out", "out", "sleep", "0.2")
    assert again.returncode == 0, again.stderr
    assert "1 of 1 round is there" in again.stderr
    assert not (tmp_path / "out" / LOCK).exists()


def test_a_process_that_was_forked_does_not_keep_it(tmp_path: Path) -> None:
    with holder(tmp_path, forks="yes") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with exclusive_lock(tmp_path, Console()):
            assert (tmp_path / LOCK).read_text() == f"{os.getpid()} {platform.node()}\n"


def test_a_process_on_another_host_is_reported_with_it(tmp_path: Path) -> None:
    with holder(tmp_path):
        (tmp_path / LOCK).write_text("12 node7\n")
        with pytest.raises(InputError) as caught, exclusive_lock(tmp_path, Console()):
            pass
    assert caught.value.what == "is in use by another gridbench, process 12 on node7"


def test_a_folder_in_which_nothing_was_kept_is_removed_again(tmp_path: Path) -> None:
    with pytest.raises(KeyError), exclusive_lock(tmp_path / "runs" / "new", Console()):
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with exclusive_lock(tmp_path / "runs" / "new", Console()):
        (tmp_path / "runs" / "new" / "kept").touch()
    assert [path.name for path in (tmp_path / "runs" / "new").iterdir()] == ["kept"]
    # That of the user stays, though it is empty.
    (tmp_path / "mine").mkdir()
    with exclusive_lock(tmp_path / "mine", Console()):
        pass
    assert (tmp_path / "mine").is_dir()


def test_a_lock_file_alone_is_nothing_that_a_run_would_replace(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("of a killed one\n")
    assert replaceable(tmp_path, replace=False) == []
    assert make_places(tmp_path, ["a"], []) == {"a": tmp_path}
    (tmp_path / "mine").touch()
    with pytest.raises(InputError, match="is not empty, and holds no run"):
        replaceable(tmp_path, replace=False)


def test_a_folder_that_can_only_be_read_is_reported(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(place)], check=True)
    try:
        with pytest.raises(InputError) as caught, exclusive_lock(place, Console()):
            pass
        assert caught.value.what == "cannot use the output folder: Read-only file system"
        with pytest.raises(InputError) as caught, exclusive_file_lock(place / "x.json", Console()):
            pass
        assert caught.value.what == "cannot write the results: Read-only file system"
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_file_system_without_locks_is_reported_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lockf(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", lockf)
    said = io.StringIO()
    with exclusive_lock(tmp_path, Console(file=said)):
        pass
    assert said.getvalue() == (
        f"{tmp_path}: its file system has no locks (No locks available): see to it that no other"
        " gridbench uses it meanwhile\n"
    )
