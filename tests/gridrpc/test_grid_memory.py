"""Bounds that the system sets to memory, mappings and descriptors: what a grid does below them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

import remote
from gridrpc import Grid
from processes import run_script, until

#: A result of this many numbers lies in shared memory.
MIDDLE = 4200


def test_more_results_are_kept_than_a_worker_has_descriptors(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        f"""
        import resource
        import gridrpc, numpy, remote

        resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
        with gridrpc.Grid(workers=1) as grid:
            kept = [grid.submit(numpy.full, {MIDDLE}, float(i)).result(60) for i in range(1000)]
            opened = grid.submit(remote.opens, 100).result(60)
        print(all((array == i).all() for i, array in enumerate(kept)), opened)
        """,
    )
    assert (done.stdout, done.returncode) == ("True 100\n", 0), done.stderr


def test_results_that_are_kept_leave_mappings_for_others(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import gridrpc, numpy, remote

        allowed = int(open("/proc/sys/vm/max_map_count").read())
        with gridrpc.Grid(workers=8) as grid:
            kept = list(grid.map(remote.filled, range(allowed // 3), chunk=1))
            with open("/proc/self/maps") as mapped:
                shared = sum("gridrpc-segment" in line for line in mapped)
        print(all((array == i).all() for i, array in enumerate(kept)), shared < allowed // 3.5)
        """,
    )
    assert (done.stdout, done.returncode) == ("True True\n", 0), done.stderr


def test_arguments_wait_though_there_are_few_descriptors(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        f"""
        import resource, time
        import gridrpc, numpy, remote

        resource.setrlimit(resource.RLIMIT_NOFILE, (150, 150))
        with gridrpc.Grid(workers=2) as grid:
            grid.wait_until_ready(60)
            slow = grid.submit(time.sleep, 0.2)
            arrays = [numpy.full({MIDDLE}, float(i)) for i in range(400)]
            calls = [grid.submit(numpy.sum, array) for array in arrays]
            print([call.result(60) for call in calls] == [array.sum() for array in arrays])
        """,
    )
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


def test_a_result_that_cannot_be_mapped_is_an_error_of_its_call(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import resource
        import gridrpc, numpy, remote

        with gridrpc.Grid(workers=1) as grid:
            worker = grid.submit(remote.pid).result(60)
            pages = int(open("/proc/self/statm").read().split()[0])
            most = pages * resource.getpagesize() + (64 << 20)
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
            error = grid.submit(numpy.zeros, 32 << 20).exception(60)
            print(type(error).__name__, error)
            print(grid.submit(remote.pid).result(60) == worker)
            print(grid.submit(numpy.zeros, 1 << 20).result(60).shape)
        """,
    )
    first, *rest = done.stdout.splitlines()
    assert first.startswith("MemoryError the result cannot be taken"), done.stdout + done.stderr
    assert (rest, done.returncode) == (["True", "(1048576,)"], 0), done.stderr


def segments(processes: list[psutil.Process]) -> dict[int, int]:
    """Bytes that the segments take that these processes have open, by the numbers of files."""
    sizes = {}
    for process in processes:
        folder = f"/proc/{process.pid}/fd"
        for name in os.listdir(folder):
            try:
                if "memfd:gridrpc-segment" in os.readlink(f"{folder}/{name}"):
                    status = os.stat(f"{folder}/{name}")
                    sizes[status.st_ino] = status.st_blocks * 512
            except FileNotFoundError:
                continue
    return sizes


def test_memory_that_nobody_uses_goes_after_some_seconds() -> None:
    ours = psutil.Process()
    before = set(ours.children())
    others = segments([ours]).keys()

    def in_use() -> int:
        return sum(size for file, size in segments(everybody).items() if file not in others)

    with Grid(workers=4) as grid:
        calls = [grid.submit(remote.same, np.ones(1 << 20)) for _ in range(8)]
        copies = [grid.submit(np.ones, 1 << 20) for _ in range(8)]
        assert all(call.result(60).sum() == 1 << 20 for call in calls + copies)
        data = grid.share(np.ones(1 << 20))
        assert grid.submit(np.sum, data).result(60) == 1 << 20
        (spawner,) = set(ours.children()) - before
        everybody = [ours, *spawner.children()]
        assert in_use() >= 8 << 20
        del calls, copies, data
        assert until(lambda: in_use() == 0)
        assert grid.submit(np.ones, 1 << 20).result(60).sum() == 1 << 20


def test_dropped_results_leave_no_descriptors_in_an_idle_grid() -> None:
    ours = psutil.Process()
    before = set(ours.children())
    others = segments([ours]).keys()

    def in_use(processes: list[psutil.Process]) -> int:
        return len(segments(processes).keys() - others)

    with Grid(workers=1) as grid:
        calls = [grid.submit(np.ones, MIDDLE) for _ in range(1000)]
        results = [call.result(60) for call in calls]
        (spawner,) = set(ours.children()) - before
        assert in_use([ours]) == 1000
        del calls, results
        assert until(lambda: in_use([ours]) == 0)
        assert in_use(spawner.children()) == 0


def test_a_worker_cannot_shorten_what_it_has_lent() -> None:
    with Grid(workers=1) as grid:
        array = grid.submit(np.ones, 1 << 16).result(60)
        refused, of = grid.submit(remote.shorten_segments).result(60)
        assert refused == of > 0
        assert array.sum() == 1 << 16


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of the test's own that allows 600 MB."""
    for root, file in (
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        ("/sys/fs/cgroup", "memory.max"),
    ):
        folder = Path(root) / f"gridrpc-{uuid.uuid4()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            if (folder / file).exists():
                (folder / file).write_text(str(600 << 20))
                yield folder
                return
        finally:
            until(lambda folder=folder: not (folder / "cgroup.procs").read_text(), 10)
            folder.rmdir()
    pytest.skip("no control group for memory can be made here")


def test_a_control_group_bounds_what_is_kept_and_what_is_taken(tmp_path: Path, group: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import os, sys

        with open(sys.argv[1] + "/cgroup.procs", "w") as members:
            members.write(str(os.getpid()))
        import gridrpc, numpy, remote

        with gridrpc.Grid(workers=1) as grid:
            size = 200 << 17
            print(grid.submit(numpy.sum, numpy.ones(size)).result(60) == size)
            data = grid.share(numpy.ones(size))
            print(grid.submit(numpy.sum, data).result(60) == size)
            try:
                grid.share(numpy.full(size, 2.0))
            except MemoryError as error:
                print("the control group allows" in str(error) or error)
            print(grid.submit(numpy.sum, data).result(60) == size)
        """,
        str(group),
    )
    assert (done.stdout, done.returncode) == ("True\nTrue\nTrue\nTrue\n", 0), done.stderr


def test_select_works_while_many_results_are_kept(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import gridrpc, numpy, os, select, socket

        def can_select():
            with socket.socket() as new:
                select.select([new], [], [], 0)
            return True
        def keeps(count):
            return [gridrpc.empty(50_000) for _ in range(count)] and can_select()
        with gridrpc.Grid(workers=2) as grid:
            kept = [grid.submit(numpy.full, 50_000, float(i)).result(60) for i in range(2000)]
            arrays = [gridrpc.empty(50_000) for _ in range(500)]
            many = len(os.listdir("/proc/self/fd")) > 1024
            print(can_select(), many, grid.submit(keeps, 1500).result(60))
        print(all((array == i).all() for i, array in enumerate(kept)))
        """,
    )
    assert (done.stdout, done.returncode) == ("True True True\nTrue\n", 0), done.stderr
