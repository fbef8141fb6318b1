"""Sessions with many maps: those that nobody uses hold no threads and no open files."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import gridrpc
from gridrpc import JournalError
from gridrpc._session import registry
from gridrpc._session.map_pool import MOST_IDLE
from grids import PROGRAM
from noting import not_today, noted, waits
from processes import LONG, environment, running, until
from sessions import at, command, ran


def start(name: str, descriptors: int, folder: Path) -> psutil.Process:
    """The process of a session with two workers, under a hard limit of descriptors."""
    script = f"ulimit -n {descriptors} && exec {PROGRAM} session start -q {name} --workers 2"
    subprocess.run(["sh", "-c", script], env=environment(), cwd=folder, check=True, timeout=LONG)
    return psutil.Process(registry.record_of(name).pid)


@pytest.fixture(scope="module", autouse=True)
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psutil.Process]:
    """The process of the session `parking`, whose limit allows eight maps to run at a time."""
    folder = tmp_path_factory.mktemp("parking")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        yield start("parking", 8 * 16, folder)
        command("stop", "parking", "--forget", cwd=folder)


@pytest.fixture
def grid() -> Iterator[gridrpc.AttachedGrid]:
    with gridrpc.attach("parking") as grid:
        yield grid
        for key in grid.maps:
            grid.forget(key)


def is_open(process: psutil.Process, key: str) -> bool:
    return any(Path(file.path).stem == key for file in process.open_files())


def park(grid: gridrpc.AttachedGrid, process: psutil.Process, key: str) -> None:
    """Use so many other maps that one is parked."""
    assert is_open(process, key)
    for n in range(MOST_IDLE + 1):
        grid.fetch(grid.detach(abs, -n))
    assert until(lambda: not is_open(process, key), 5)


def test_calls_hold_neither_threads_nor_descriptors(tmp_path: Path) -> None:
    # 200 threads, and three files for each, before maps were parked.
    calls, limit = 200, 256
    # 16 maps run, and as many stay open, with two files for each; and the program is attached.
    most_threads, most_files = 16 + 4, 2 * (16 + 16) + 4
    process = start("many", limit, tmp_path)
    threads, files = process.num_threads(), process.num_fds()
    with gridrpc.attach("many") as grid:
        keys = [grid.detach(waits, f"{tmp_path}", 10 + n) for n in range(calls)]
        # All of them wait: for one of the two workers, or for the gate.
        assert sum(one["results"] for one in grid.maps.values()) == 0
        assert process.num_threads() <= threads + most_threads
        assert process.num_fds() <= files + most_files
        (tmp_path / "gate").touch()
        assert [grid.fetch(key, LONG) for key in keys] == [10 + n for n in range(calls)]
        # Those of the connection are left.
        assert until(lambda: process.num_threads() <= threads + 2)
        assert process.num_fds() <= files + most_files
    process.kill()
    assert until(lambda: not running({process.pid}))
    process = start("many", limit, tmp_path)
    with gridrpc.attach("many") as grid:
        assert process.num_threads() <= threads + 2
        assert process.num_fds() <= files + most_files
        assert [grid.fetch(key, LONG) for key in keys] == [10 + n for n in range(calls)]
        assert process.num_fds() <= files + most_files
        assert len(grid.maps) == calls
    assert len(ran(tmp_path)) == calls
    command("stop", "many", "--forget", cwd=tmp_path)


def large(folder: str, item: int) -> tuple[int, bytes]:
    """A result that fills half a message. The first item ends last."""
    while item == 0 and not os.path.exists(f"{folder}/gate"):
        time.sleep(0.005)
    return item, bytes(3 << 20)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_program_reads_on_in_a_parked_map(
    grid: gridrpc.AttachedGrid, process: psutil.Process, tmp_path: Path, ordered: bool
) -> None:
    grid.submit("work", large, *at(tmp_path, range(8)), chunk=1)
    assert until(lambda: grid.maps["work"]["results"] == 7)
    (tmp_path / "gate").touch()
    assert until(lambda: grid.maps["work"]["results"] == 8)
    results = grid.results("work", ordered=ordered)
    items = [next(results)[0] for _ in range(3)]
    park(grid, process, "work")
    items += [item for item, _ in results]
    assert items[0 if ordered else -1] == 0
    assert sorted(items) == list(range(8))


def test_the_status_of_a_parked_map(
    grid: gridrpc.AttachedGrid, process: psutil.Process, tmp_path: Path
) -> None:
    assert list(grid.map("work", noted, *at(tmp_path, range(5)))) == [0, 10, 20, 30, 40]
    before = grid.maps["work"]
    assert (before["items"], before["results"], before["complete"]) == (5, 5, True)
    park(grid, process, "work")
    assert grid.maps["work"] == before
    assert "map work: noted, 5 of 5 results\n" in command("show", "parking", cwd=tmp_path)
    assert not is_open(process, "work")


def test_a_parked_map_continues(
    grid: gridrpc.AttachedGrid, process: psutil.Process, tmp_path: Path
) -> None:
    assert sum(grid.map("work", noted, *at(tmp_path, range(5)))) == 100
    park(grid, process, "work")
    assert sum(grid.map("work", noted, *at(tmp_path, range(8)))) == 280
    assert sorted(ran(tmp_path)) == list(range(8))
    park(grid, process, "work")
    with pytest.raises(JournalError, match="was begun with `noted`, not with `large`"):
        grid.submit("work", large, *at(tmp_path, range(8)))
    with pytest.raises(JournalError, match="another item 0"):
        grid.submit("work", noted, *at(tmp_path, range(1, 8)))
    assert sum(grid.results("work")) == 280
    park(grid, process, "work")
    restarted = grid.map("work", noted, *at(tmp_path, range(5)), if_changed="restart")
    assert sum(restarted) == 100
    assert len(ran(tmp_path)) == 13


def test_a_parked_map_is_removed(
    grid: gridrpc.AttachedGrid, process: psutil.Process, tmp_path: Path
) -> None:
    assert sum(grid.map("gone", noted, *at(tmp_path, range(5)))) == 100
    park(grid, process, "gone")
    assert list(registry.folder_of("parking").glob("gone.*"))
    grid.forget("gone")
    assert "gone" not in grid.maps
    assert not list(registry.folder_of("parking").glob("gone.*"))
    with pytest.raises(LookupError, match=r"no map `gone`; there are: .* and [0-9]+ others"):
        grid.fetch("gone")


def test_a_map_that_a_program_still_sends_is_parked(
    grid: gridrpc.AttachedGrid, process: psutil.Process, tmp_path: Path
) -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        time.sleep(0.3)  # so that what is there is sent
        yield 3
        assert until(lambda: grid.maps["work"]["results"] >= 3)
        park(grid, process, "work")
        yield from range(4, 6)

    assert sum(grid.map("work", noted, [f"{tmp_path}"] * 6, items())) == 150
    assert sorted(ran(tmp_path)) == list(range(6))


def test_errors_stay_when_other_maps_are_used(grid: gridrpc.AttachedGrid, tmp_path: Path) -> None:
    key = grid.detach(not_today, f"{tmp_path}", 5)
    for _ in range(2):
        with pytest.raises(ValueError, match="not today"):
            grid.fetch(key)
        for n in range(MOST_IDLE + 1):
            grid.fetch(grid.detach(abs, -n))
    assert grid.maps[key]["failed"] == 1
    assert ran(tmp_path) == [5]


def briefly(item: int) -> int:
    time.sleep(0.1)
    return item


def test_long_maps_leave_threads_to_others(grid: gridrpc.AttachedGrid) -> None:
    for n in range(8):
        grid.submit(f"long-{n}", briefly, range(2_000))
    # The others take a quarter of an hour.
    assert grid.fetch(grid.detach(abs, -1), LONG) == 1
    assert all(grid.maps[f"long-{n}"]["results"] < 2_000 for n in range(8))
