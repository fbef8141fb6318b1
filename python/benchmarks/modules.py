"""Area `modules`: functions of compiled modules, called from C and from Python.

The limits are C programs that do the same without gridrpc: a round trip over the same kind of
socket, a copy into warm memory, bytes to and fro over TCP, the same solver in this process.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gridrpc
from benchmarks.figures import (
    Area,
    AreaCase,
    Extent,
    PlannedRow,
    Target,
    Values,
    noise_row,
)
from gridbench.bench.programs import built, numbers

_ORDER = 1000


def round_trips(folder: str, count: int) -> Values:
    """Median us of a round trip between two C programs over a Unix socket."""
    return {"us": numbers(folder, "limits", "ping-pong", count)[0]}


def copies(folder: str, count: int, size: int) -> Values:
    """Median s of a copy into warm memory."""
    return {"seconds": numbers(folder, "limits", "memcpy", size, count)[0]}


def exchanges(folder: str, count: int, size: int) -> Values:
    """Median s for the bytes to another process and back over TCP."""
    return {"seconds": numbers(folder, "limits", "tcp", size, count)[0]}


def null_from_c(folder: str, count: int) -> Values:
    """Median us of a blocking call of a function without arguments."""
    return {"us": numbers(folder, "calls", "null", count)[0]}


def array_from_c(folder: str, count: int, size: int, shared: bool) -> Values:
    """Median s of a call whose function reads each page of an array."""
    mode = "touch-shared" if shared else "touch"
    return {"seconds": numbers(folder, "calls", mode, size, count)[0]}


def sessions(folder: str, count: int) -> Values:
    """Seconds for so many outstanding sessions; descriptors and bytes that they take."""
    seconds, files, memory = numbers(folder, "calls", "sessions", count)
    return {"seconds": seconds, "files": files, "memory": memory}


def _median(call: Callable[[], object], count: int, warm: int) -> float:
    for _ in range(warm):
        call()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def null_from_python(folder: str, count: int) -> Values:
    """The same from Python."""
    with gridrpc.Grid(workers=2, worker="native", modules=[folder]) as grid:
        null = grid.function("gridbench_work/null")
        return {"us": 1e6 * _median(null, count, warm=count // 10)}


def array_from_python(folder: str, count: int, size: int, shared: bool) -> Values:
    """The same from Python, with an ordinary array or one in shared memory."""
    length = size // 8
    array = gridrpc.empty(length) if shared else np.empty(length)
    array[:] = 1
    with gridrpc.Grid(workers=2, worker="native", modules=[folder]) as grid:
        touch = grid.function("gridbench_work/touch")
        return {"seconds": _median(lambda: touch(array), count, warm=2)}


def inout_over_tcp(folder: str, count: int, size: int) -> Values:
    """Median s of a call that changes an array of the caller's in place, over TCP."""
    array = np.ones(size // 8)
    with gridrpc.Grid(workers=1, worker="native", transport="tcp", modules=[folder]) as grid:
        change = grid.function("gridbench_work/change")
        seconds = _median(lambda: change(array), count, warm=2)
    if array[0] != count + 3 or array[1] != 1:
        raise RuntimeError("the array was not changed in place")
    return {"seconds": seconds}


def solve(folder: str, count: int, order: int, shared: bool) -> Values:
    """Median s of dgesv on a worker and in this process, measured in turns, and their ratio."""
    from ctypes import CDLL, byref, c_int, c_void_p

    local = CDLL("libopenblas.so.0").dgesv_
    random = np.random.default_rng(1)
    matrix = np.asfortranarray(random.random((order, order)))
    right = np.asfortranarray(random.random((order, 1)))
    make = gridrpc.empty_like if shared else np.empty_like
    a, b, pivots = make(matrix), make(right), np.empty(order, np.int32)
    n, one, info = c_int(order), c_int(1), c_int(0)
    here: list[float] = []
    there: list[float] = []
    with gridrpc.Grid(workers=1, worker="native", modules=[folder]) as grid:
        remote = grid.function("gridbench_work/dgesv")

        def call_remote() -> None:
            _, status = remote(a=a, b=b, lda=order, ldb=order, out={"ipiv": pivots})
            info.value = int(status[0])

        def call_local() -> None:
            pointers = [c_void_p(array.ctypes.data) for array in (a, pivots, b)]
            local(byref(n), byref(one), pointers[0], byref(n), pointers[1], pointers[2],
                  byref(n), byref(info))  # fmt: skip

        for number in range(-2, count):
            for times, call in ((here, call_local), (there, call_remote)):
                a[:], b[:] = matrix, right
                begin = time.perf_counter()
                call()
                if number >= 0:
                    times.append(time.perf_counter() - begin)
                if info.value != 0 or not np.allclose(matrix @ b, right):
                    raise RuntimeError("the system was not solved")
    ratios = [remote / local for local, remote in zip(here, there, strict=True)]
    return {
        "local": statistics.median(here),
        "remote": statistics.median(there),
        "ratio": statistics.median(ratios),
    }


def area(extent: Extent) -> Area:
    """In full there are more calls in a run."""
    return area_of(*((20_000, 15) if extent is Extent.FULL else (5_000, 7)))


def area_of(
    calls: int, large: int, size: int = 100_000_000, order: int = _ORDER,
    sessions_of: tuple[int, ...] = (25_000, 50_000, 100_000),
) -> Area:  # fmt: skip
    """With so many small and large calls in a run, bytes in an array, equations, and sessions."""
    folder = str(built())
    many: dict[str, Any] = {"folder": folder, "count": calls}
    solving: dict[str, Any] = {"folder": folder, "count": large, "order": order}
    arrays: dict[str, Any] = {"folder": folder, "count": large, "size": size}
    trips = AreaCase("round trips in C", round_trips, many)
    trips_again = AreaCase("round trips in C, again", round_trips, many)
    nulls = {
        "C": (AreaCase("null calls from C", null_from_c, many), 1.5),
        "Python": (AreaCase("null calls from Python", null_from_python, many), 1.8),
    }
    copied = AreaCase("memcpy", copies, arrays)
    exchanged = AreaCase("TCP both ways", exchanges, arrays)
    inout = AreaCase("array there and back over TCP", inout_over_tcp, arrays)
    arrived = {
        f"{caller}{memory}": AreaCase(
            f"array in from {caller}{memory}", function, arrays | {"shared": bool(memory)}
        )
        for caller, function, shared in (
            ("C", array_from_c, ", shared memory"),
            ("Python", array_from_python, ", gridrpc.empty"),
        )
        for memory in ("", shared)
    }
    solved = [
        (AreaCase(f"dgesv, {array}", solve, solving | {"shared": shared}), bound)
        for array, shared, bound in (
            ("ordinary arrays", False, 1.10),
            ("gridrpc.empty", True, 1.05),
        )
    ]
    open_sessions = {
        count: AreaCase(f"sessions {count}", sessions, {"folder": folder, "count": count})
        for count in sessions_of
    }
    last = open_sessions[sessions_of[-1]]
    rows = [
        noise_row(
            "round trips in C against themselves, larger by smaller", trips["us"], trips_again["us"]
        ),
        *(
            PlannedRow(
                f"null call from {caller}; limit: raw round trip", "us", case["us"],
                limit=trips["us"], target=Target(bound, of_limit=True), digits=1,
            )
            for caller, (case, bound) in nulls.items()
        ),
        *(
            PlannedRow(
                f"100 MB array in, from {how}; limit: memcpy", "s", case["seconds"],
                limit=copied["seconds"],
                target=Target(0.1 if case.arguments["shared"] else 1 / 0.7, of_limit=True),
                digits=4,
            )
            for how, case in arrived.items()
        ),
        PlannedRow(
            "100 MB array there and back over TCP; limit: the bytes alone", "s", inout["seconds"],
            limit=exchanged["seconds"], target=Target(1 / 0.8, of_limit=True),
        ),
        *(
            PlannedRow(
                f"{case.name}, n = {_ORDER}, one thread: remote by local", "x", case["ratio"],
                target=Target(bound),
            )
            for case, bound in solved
        ),
        *(
            PlannedRow(
                f"{count} outstanding sessions from C, a wait_any each: us per session", "us",
                case["seconds"] * (1e6 / count), digits=2,
            )
            for count, case in open_sessions.items()
        ),
        PlannedRow(
            f"descriptors that {sessions_of[-1]} sessions take", "", last["files"],
            target=Target(0), digits=0,
        ),
        PlannedRow(
            f"peak memory of the client with {sessions_of[-1]} sessions", "MB",
            last["memory"] * 1e-6, digits=0,
        ),
    ]  # fmt: skip
    cases = [
        trips, trips_again, *(case for case, _ in nulls.values()), copied, exchanged, inout,
        *arrived.values(), *(case for case, _ in solved), *open_sessions.values(),
    ]  # fmt: skip
    title = "Functions of compiled modules; limits: C programs without gridrpc"
    return Area("modules", title, cases, rows)
