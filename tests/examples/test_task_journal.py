"""The task farm of examples/montecarlo continues with what is missing, whatever ends it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_examples import SECONDS, copy_of, make

#: Bytes of a record: the number of a task, a count, and a checksum.
RECORD = 20
TASKS, POINTS = 60, 2_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The farm and its module."""
    folder = copy_of("montecarlo", tmp_path_factory.mktemp("farm"))
    make(folder, "pi.so", "clients", PKG_CONFIG_PATH=f"{sys.prefix}/lib/pkgconfig")
    return folder


@pytest.fixture
def farm(built: Path, tmp_path: Path) -> Path:
    """The same, with journals of the test's own."""
    shutil.copy(built / "pi_task_farm", tmp_path)
    shutil.copy(built / "pi.so", tmp_path)
    return tmp_path


def begun(farm: Path, *options: str, tasks: int = TASKS, points: int = POINTS) -> subprocess.Popen:
    return subprocess.Popen(
        ["./pi_task_farm", *options, "", str(tasks), str(points)],
        cwd=farm, env={**os.environ, "GRIDRPC_MODULE_PATH": "."}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def run(farm: Path, *options: str, status: int = 0, **work: int) -> tuple[str, str]:
    """What the farm prints, and what it says beside."""
    process = begun(farm, *options, **work)
    printed, said = process.communicate(timeout=SECONDS)
    assert process.returncode == status, said
    return printed, said


def records(farm: Path) -> int:
    """How many results the journal has."""
    file = farm / "pi.journal"
    if not file.exists():
        return 0
    _, _, behind = file.read_bytes().partition(b"bytes\n")
    return len(behind) // RECORD


def killed(farm: Path) -> int:
    """Kill the farm when it has some results; returns how many are in its journal."""
    process = begun(farm, "--journal", "pi.journal")
    end = time.monotonic() + SECONDS
    while records(farm) < 10 and time.monotonic() < end:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return records(farm)


def test_a_farm_that_was_killed_runs_what_is_missing(farm: Path) -> None:
    undisturbed, _ = run(farm)
    there = killed(farm)
    assert 10 <= there < TASKS
    printed, said = run(farm, "--journal", "pi.journal")
    assert f"journal pi.journal: {there} of {TASKS} tasks have their results" in said
    assert printed == undisturbed
    # Each task once, and nothing is run when nothing is missing.
    assert records(farm) == TASKS
    assert run(farm, "--journal", "pi.journal")[0] == undisturbed
    assert records(farm) == TASKS
    more, _ = run(farm, "--journal", "pi.journal", tasks=TASKS + 5)
    assert more == run(farm, tasks=TASKS + 5)[0]
    assert records(farm) == TASKS + 5


def test_what_was_half_written_is_cut_off(farm: Path) -> None:
    printed, _ = run(farm, "--journal", "pi.journal", tasks=8, points=1000)
    file = farm / "pi.journal"
    # Of one record the half, and room for two others, as file systems may have given it.
    file.write_bytes(file.read_bytes()[: -RECORD // 2] + bytes(2 * RECORD))
    again, said = run(farm, "--journal", "pi.journal", tasks=8, points=1000)
    assert "7 of 8 tasks have their results" in said
    assert again == printed
    assert records(farm) == 8


def test_another_number_of_points_is_noticed(farm: Path) -> None:
    run(farm, "--journal", "pi.journal", tasks=4, points=1000)
    before = (farm / "pi.journal").read_bytes()
    _, said = run(farm, "--journal", "pi.journal", status=1, tasks=4, points=1001)
    assert "computed with the parameters `pi_trial of 1000 points" in said
    assert "these are now `pi_trial of 1001 points" in said
    assert (farm / "pi.journal").read_bytes() == before


def test_a_damaged_journal_is_left_as_it_is(farm: Path) -> None:
    run(farm, "--journal", "pi.journal", tasks=8, points=1000)
    file = farm / "pi.journal"
    damaged = bytearray(file.read_bytes())
    damaged[-3 * RECORD] ^= 1
    file.write_bytes(damaged)
    _, said = run(farm, "--journal", "pi.journal", status=1, tasks=8, points=1000)
    assert f"it is damaged at byte {len(damaged) - 3 * RECORD}" in said
    assert file.read_bytes() == damaged
    file.write_text("something else")
    _, said = run(farm, "--journal", "pi.journal", status=1)
    assert "it is another kind of file" in said
    assert file.read_text() == "something else"


def test_two_farms_do_not_write_into_one_journal(farm: Path) -> None:
    first = begun(farm, "--journal", "pi.journal")
    end = time.monotonic() + SECONDS
    while records(farm) < 1 and time.monotonic() < end:
        time.sleep(0.002)
    _, said = run(farm, "--journal", "pi.journal", status=1)
    assert "another program uses it" in said
    printed, _ = first.communicate(timeout=SECONDS)
    assert printed.startswith("pi is about 3.14")


def test_a_full_disk_ends_the_farm_and_nothing_is_lost(farm: Path) -> None:
    disk = farm / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "none", disk]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        _, said = run(farm, "--journal", "disk/pi.journal", status=1, tasks=300, points=1000)
        assert "journal disk/pi.journal: it cannot be written: No space left" in said
        subprocess.run(["mount", "-o", "remount,size=64k", disk], check=True)
        printed, said = run(farm, "--journal", "disk/pi.journal", tasks=300, points=1000)
        assert " of 300 tasks have their results" in said
        assert printed == run(farm, tasks=300, points=1000)[0]
    finally:
        subprocess.run(["umount", disk], check=True)
