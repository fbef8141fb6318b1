"""Shared memory of clients at the Unix socket of a server: large arguments are not copied."""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
import socket
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import gridrpc
from grids import PROGRAM, CompileIdl, opened
from processes import LONG, start_script, until
from servers import (
    ANY,
    ENDED,
    FAILURE,
    HOST_CALL,
    PING,
    REPLY,
    Server,
    Wire,
    frame,
    offering,
    serving,
)

pytestmark = pytest.mark.usefixtures("no_modules_here")

#: Elements of an array that goes in the message, and of ones that do not.
SIZES = [4, 100_000, 1_000_000]
SEGMENT, DROP_SEGMENT = 8, 13
#: Most segments that a server takes over one connection.
MOST_SEGMENTS = 64
LENGTH = 1 << 20
#: Seals of a segment, as <linux/fcntl.h> has them.
ADD_SEALS, SEAL, SHRINK, GROW, WRITE, FUTURE_WRITE = 1033, 1, 2, 4, 8, 16

IDL = """
Module memory;
Globals {
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
static void begin(const char *file) { close(open(file, O_WRONLY | O_CREAT, 0600)); }
}
Define double_it(IN long n, INOUT double x[n]) { for (long i = 0; i < n; i++) x[i] *= 2; }
Define copy(IN long n, IN double x[n], OUT double y[n]) { memcpy(y, x, 8 * n); }
Define sum(IN long n, IN double x[n], OUT double s[1])
    { *s = 0; for (long i = 0; i < n; i++) *s += x[i]; }
Define spoil(IN string begun, IN string gate, IN long n, INOUT double x[n])
    { begin(begun); while (access(gate, F_OK)) for (long i = 0; i < n; i++) x[i] = -1; }
Define wait(IN string begun, IN string gate, IN long n, IN double x[n], OUT double s[1])
    { begin(begun); while (access(gate, F_OK)) usleep(1000); *s = x[0] + x[n - 1]; }
"""


@pytest.fixture(params=["shared", "user"])
def server(
    request: pytest.FixtureRequest, tmp_path: Path, compile_idl: CompileIdl
) -> Iterator[Server]:
    """A server whose workers serve all users, or one."""
    config = offering(compile_idl(IDL)) + f"[modules.memory]\nisolation = '{request.param}'\n"
    with serving(tmp_path, config) as made:
        yield made


@contextmanager
def as_nobody() -> Iterator[None]:
    """Connections that begin meanwhile belong to another user."""
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def memory_of(pid: int) -> set[str]:
    """The segments that a process has mapped, by inode."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        return {line.split()[4] for line in lines if "memfd:gridrpc-segment" in line}
    return set()


def files_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def common_memory(server: Server) -> set[str]:
    """Segments that this process and a worker of the server have mapped."""
    workers = psutil.Process(server.pid).children(recursive=True)
    return memory_of(os.getpid()) & {one for worker in workers for one in memory_of(worker.pid)}


def warm(grid: gridrpc.Grid) -> None:
    """Connects, and starts the workers."""
    grid.function("memory/sum")(np.ones(1))


def check(grid: gridrpc.Grid, size: int, make: Callable[[int], Any]) -> None:
    x, y = make(size), make(size)
    x[...] = np.arange(size)
    y[...] = 0
    double_it, copy = grid.function("memory/double_it"), grid.function("memory/copy")
    assert double_it(x) is None
    np.testing.assert_array_equal(x, 2.0 * np.arange(size))
    assert double_it.submit(x).result(LONG) is None
    np.testing.assert_array_equal(x, 4.0 * np.arange(size))
    assert grid.submit("memory/sum", x).result(LONG) == [x.sum()]
    np.testing.assert_array_equal(copy(x), x)
    copy(x, out=y)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [np.empty, gridrpc.empty])
def test_arrays_arrive_and_return(server: Server, size: int, make: Callable[[int], Any]) -> None:
    with server.client() as grid:
        check(grid, size, make)
        check(grid, size, make)


def test_workers_use_the_memory_of_the_client(server: Server) -> None:
    with server.client() as grid:
        warm(grid)
        x = np.ones(100_000)
        assert not common_memory(server)
        grid.function("memory/double_it")(x)
        assert common_memory(server)
        # The server need not look at it.
        assert not memory_of(os.getpid()) & memory_of(server.pid)
    assert until(lambda: not common_memory(server))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
@pytest.mark.parametrize(("isolation", "is_common"), [("shared", False), ("user", True)])
def test_workers_of_several_users_get_copies(
    compile_idl: CompileIdl, monkeypatch: pytest.MonkeyPatch, isolation: str, is_common: bool
) -> None:
    # The other user cannot look for programs. A client of a server needs none.
    monkeypatch.setenv("GRIDRPC_PROGRAM", str(PROGRAM))
    monkeypatch.setattr("gridrpc._frozen._is_program", lambda _: True)
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="gridrpc-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        public = folder / "public"
        config = f"socket = '{public}'\n" + offering(compile_idl(IDL))
        config += f"[modules.memory]\nisolation = '{isolation}'\n"
        with serving(folder, config, socket=public) as server:
            with server.client() as first:
                # Imports what the other user could not read.
                check(first, 100_000, gridrpc.empty)
            assert until(lambda: not common_memory(server))
            with as_nobody(), opened(servers=[server.url()]) as grid:
                warm(grid)
                check(grid, 100_000, np.empty)
                check(grid, 100_000, gridrpc.empty)
                os.seteuid(0)
                assert bool(common_memory(server)) == is_common
            assert until(lambda: "nobody" in {one["user"] for one in server.audit("end")})


def test_python_functions_may_keep_their_arguments(tmp_path: Path) -> None:
    def keep(array: np.ndarray) -> float:
        keep.__dict__.setdefault("kept", []).append(array)
        return float(sum(one[0] for one in keep.__dict__["kept"]))

    config = offering(python=True) + "[everyone]\ncode = true\n"
    with serving(tmp_path, config) as server, server.client(trusted=True) as grid:
        total = 0.0
        for value in range(6):
            total += value
            assert grid.submit(keep, np.full(100_000, float(value))).result(LONG) == total


def test_memory_is_free_when_no_worker_uses_it_any_more(server: Server, tmp_path: Path) -> None:
    with server.client() as grid:
        warm(grid)
        begun, gate = tmp_path / "begun", tmp_path / "gate"
        spoiled: gridrpc.Call[None] = grid.submit(
            "memory/spoil", str(begun), str(gate), np.ones(100_000)
        )
        assert until(begun.exists)
        assert spoiled.cancel()
        # The worker still writes. What other calls use is not the same memory.
        arrays = [np.arange(100_000.0) for _ in range(8)]
        calls = [grid.function("memory/double_it").submit(one) for one in arrays]
        gate.touch()
        for one, call in zip(arrays, calls, strict=True):
            call.result(LONG)
            np.testing.assert_array_equal(one, 2 * np.arange(100_000.0))


def test_detached_calls_have_large_arguments(server: Server) -> None:
    x = np.arange(100_000.0)
    with server.client() as grid:
        warm(grid)
        grid.function("memory/double_it")(x)
        assert grid.attach(grid.detach("memory/sum", x)).result(LONG) == [x.sum()]


def test_more_calls_than_segments(server: Server) -> None:
    with server.client() as grid:
        warm(grid)
        arrays = [np.full(20_000, float(i)) for i in range(3 * MOST_SEGMENTS)]
        calls = [grid.function("memory/double_it").submit(one) for one in arrays]
        for number, (one, call) in enumerate(zip(arrays, calls, strict=True)):
            call.result(LONG)
            assert (one == 2.0 * number).all()


def test_more_results_than_segments(server: Server) -> None:
    with server.client() as grid:
        warm(grid)
        copy = grid.function("memory/copy")
        stored = [copy(np.full(20_000, float(i))) for i in range(2 * MOST_SEGMENTS)]
        assert all((one == float(number)).all() for number, one in enumerate(stored))


def test_descriptors_and_memory_end_with_the_connection(server: Server) -> None:
    with server.client() as grid:
        warm(grid)
        before = files_of(server.pid)
        for _ in range(5):
            with server.client() as other:
                other.function("memory/double_it")(np.ones(100_000))
                other.function("memory/copy")(gridrpc.empty(100_000))
        assert until(lambda: files_of(server.pid) <= before)
        warm(grid)
    assert until(lambda: not common_memory(server))


KILLED = """
import gridrpc, numpy
with gridrpc.Grid(servers=[URL]) as grid:
    calls = [grid.submit("memory/wait", BEGUN, GATE, numpy.ones(100_000)) for _ in range(2)]
    calls[0].result()
"""


def test_a_client_that_is_killed_leaves_nothing(server: Server, tmp_path: Path) -> None:
    with server.client() as grid:
        warm(grid)
        before = files_of(server.pid)
        script = KILLED.replace("URL", repr(server.url()))
        script = script.replace("GATE", repr(str(tmp_path / "gate")))
        script = script.replace("BEGUN", repr(str(tmp_path / "begun")))
        client = start_script(tmp_path, script)
        assert until((tmp_path / "begun").exists)
        client.send_signal(signal.SIGKILL)
        client.wait()
        check(grid, 100_000, np.empty)
        assert until(lambda: server.module("memory")["alive"] == 0)
        warm(grid)
        assert until(lambda: files_of(server.pid) <= before + 2)


# ---- Connections by hand


def segment(seals: int = SHRINK | GROW | SEAL, length: int = LENGTH) -> int:
    """A descriptor of memory with these seals."""
    file = os.memfd_create("hostile", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, length)
    fcntl.fcntl(file, ADD_SEALS, seals)
    return file


def announce(
    wire: Wire, files: list[int], *, number: int = 0, length: int = LENGTH, count: int | None = None
) -> None:
    """Announces a segment with these descriptors; `count`: as many as its header says."""
    message = bytearray(frame(SEGMENT, struct.pack("<IQ", number, length)))
    struct.pack_into("<H", message, 6, len(files) if count is None else count)
    socket.send_fds(wire.socket, [bytes(message)], files)
    for file in files:
        os.close(file)


def summed(wire: Wire, call: int, elements: int, *, number: int = 0, offset: int = 0) -> None:
    """Calls `sum` of elements in a segment."""
    array = struct.pack("<BBBHHQ", 5, 10, 0, 1, 1, elements)
    values = struct.pack("<H", 3) + struct.pack("<Bq", 1, elements) + array + b"\0"
    heads = struct.pack("<BQ", 0, len(values)) + struct.pack(
        "<BQIQ", 2, 8 * elements, number, offset
    )
    body = struct.pack("<QIIBH", call, 1, ANY, 0, 0) + struct.pack("<H", 2) + heads + values
    wire.send(HOST_CALL, body)


@contextmanager
def by_hand(server: Server) -> Iterator[Wire]:
    with server.connect() as wire:
        wire.serve()
        wire.name(1, "memory/sum")
        yield wire


def read_only() -> int:
    file = segment()
    with open(f"/proc/self/fd/{file}", "rb") as opened_again:
        os.close(file)
        return os.dup(opened_again.fileno())


def plain_file() -> int:
    with tempfile.TemporaryFile() as file:
        file.truncate(LENGTH)
        return os.dup(file.fileno())


def huge_pages() -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | os.MFD_HUGETLB
    file = os.memfd_create("hostile", flags)
    os.ftruncate(file, 2 * LENGTH)
    fcntl.fcntl(file, ADD_SEALS, SHRINK | SEAL)
    return file


def several(wire: Wire, numbers: Iterable[int]) -> None:
    with suppress(OSError):
        for number in numbers:
            announce(wire, [segment()], number=number)


BROKEN: dict[str, Callable[[Wire], None]] = {
    "without seals": lambda wire: announce(wire, [segment(0)]),
    "that may get more seals": lambda wire: announce(wire, [segment(SHRINK | GROW)]),
    "that may get shorter": lambda wire: announce(wire, [segment(GROW | SEAL)]),
    "that nobody may write to": lambda wire: announce(wire, [segment(SHRINK | WRITE | SEAL)]),
    "that others may not write to": lambda wire: announce(
        wire, [segment(SHRINK | FUTURE_WRITE | SEAL)]
    ),
    "read-only": lambda wire: announce(wire, [read_only()]),
    "shorter than it says": lambda wire: announce(wire, [segment()], length=LENGTH + 1),
    "huge": lambda wire: announce(wire, [segment()], length=1 << 63),
    "empty": lambda wire: announce(wire, [segment()], length=0),
    "a file": lambda wire: announce(wire, [plain_file()]),
    "a file with huge pages": lambda wire: announce(wire, [huge_pages()]),
    "no descriptor": lambda wire: announce(wire, [], count=1),
    "two descriptors": lambda wire: announce(wire, [segment(), segment()]),
    "a second descriptor": lambda wire: announce(wire, [segment(), segment()], count=1),
    "the same number": lambda wire: several(wire, [0, 0]),
    "too many": lambda wire: several(wire, range(MOST_SEGMENTS + 1)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_memory_that_breaks_the_rules_ends_its_connection(
    tmp_path: Path, compile_idl: CompileIdl, what: str
) -> None:
    config = offering(compile_idl(IDL))
    with serving(tmp_path, config) as server, server.client() as grid:
        warm(grid)
        before = files_of(server.pid)
        with by_hand(server) as wire:
            BROKEN[what](wire)
            with suppress(OSError):
                wire.send(PING, bytes(8))
            assert wire.has_ended()
        check(grid, 100_000, np.empty)
        assert until(lambda: files_of(server.pid) <= before + 2)


def test_descriptors_without_a_message_end_the_connection(
    tmp_path: Path, compile_idl: CompileIdl
) -> None:
    with serving(tmp_path, offering(compile_idl(IDL))) as server, server.client() as grid:
        warm(grid)
        before = files_of(server.pid)
        for serves in (False, True):
            with server.connect() as wire:
                if serves:
                    wire.serve()
                files = [segment() for _ in range(100)]
                with suppress(OSError):
                    for _ in range(40):
                        # The header of a message, which never ends.
                        socket.send_fds(wire.socket, [frame(PING, bytes(8))[:1]], files)
                for file in files:
                    os.close(file)
                assert wire.has_ended()
        assert until(lambda: files_of(server.pid) <= before)
        warm(grid)


def test_sections_outside_a_segment_are_errors_of_their_call(
    tmp_path: Path, compile_idl: CompileIdl
) -> None:
    with serving(tmp_path, offering(compile_idl(IDL))) as server, by_hand(server) as wire:
        file = segment()
        with mmap.mmap(file, LENGTH) as memory:
            memory[:32] = struct.pack("<4d", 1, 2, 3, 4)
        announce(wire, [file])
        outside: list[dict[str, int]] = [
            {"offset": LENGTH}, {"offset": LENGTH - 8}, {"offset": (1 << 64) - 16}, {"number": 7},
        ]  # fmt: skip
        for number, place in enumerate(outside):
            summed(wire, number, 4, **place)
            kind, body = wire.receive(ENDED, FAILURE, REPLY)
            assert b"outside the shared memory" in body, (kind, body)
        summed(wire, 10, 4)
        assert wire.receive(REPLY)[1].endswith(struct.pack("<d", 10))
        wire.send(DROP_SEGMENT, struct.pack("<I", 0))
        summed(wire, 11, 4)
        assert b"outside the shared memory" in wire.receive(ENDED, FAILURE, REPLY)[1]


def test_shared_memory_counts_for_the_limit_of_bytes(
    tmp_path: Path, compile_idl: CompileIdl
) -> None:
    config = offering(compile_idl(IDL)) + "[everyone]\nbytes = '1 MiB'\n"
    with serving(tmp_path, config) as server, server.client() as grid:
        warm(grid)
        x = np.ones(100_000)
        assert grid.submit("memory/sum", x).result(LONG) == [100_000]
        with pytest.raises(gridrpc.LimitReached, match="limit `bytes`"):
            grid.submit("memory/sum", np.ones(200_000)).result(LONG)
        assert grid.submit("memory/sum", x).result(LONG) == [100_000]
