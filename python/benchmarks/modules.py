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
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from gridbench.bench.points import Points
from gridbench.bench.programs import built, numbers

_BYTES = 100_000_000
_ORDER = 1000
_SESSIONS = (25_000, 50_000, 100_000)

_PING_PONG, _AGAIN = "round trips in C", "round trips in C, again"
_COPY, _TCP = "memcpy", "TCP both ways"
_NULL_C, _NULL_PYTHON = "null calls from C", "null calls from Python"
_IN = {
    "C": "array in from C",
    "C, shared memory": "array in from C, shared memory",
    "Python": "array in from Python",
    "Python, gridrpc.empty": "array in from Python, gridrpc.empty",
}
_INOUT = "array there and back over TCP"
_SOLVE = {False: "dgesv, ordinary arrays", True: "dgesv, gridrpc.empty"}
_SESSION = "sessions"


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
    """Median s of a call with an array of which the function reads each page."""
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


def area(full: bool) -> Area:
    """In full there are more calls in a run."""
    return area_of(calls=20_000 if full else 5_000, large=15 if full else 7)


def area_of(
    *, calls: int, large: int, size: int = _BYTES, order: int = _ORDER,
    sessions_of: tuple[int, ...] = _SESSIONS,
) -> Area:  # fmt: skip
    """With so many small and large calls in a run, bytes in an array, equations, and sessions."""
    folder = str(built())
    many: dict[str, Any] = {"folder": folder, "count": calls}
    solving: dict[str, Any] = {"folder": folder, "count": large, "order": order}
    arrays: dict[str, Any] = {"folder": folder, "count": large, "size": size}
    cases = [
        AreaCase(_PING_PONG, round_trips, many),
        AreaCase(_AGAIN, round_trips, many),
        AreaCase(_NULL_C, null_from_c, many),
        AreaCase(_NULL_PYTHON, null_from_python, many),
        AreaCase(_COPY, copies, arrays),
        AreaCase(_TCP, exchanges, arrays),
        AreaCase(_INOUT, inout_over_tcp, arrays),
    ]
    for name, case in _IN.items():
        function = array_from_c if name.startswith("C") else array_from_python
        shared = {"shared": "," in name}
        cases.append(AreaCase(case, function, arrays | shared))
    for shares, case in _SOLVE.items():
        cases.append(AreaCase(case, solve, solving | {"shared": shares}))
    for count in sessions_of:
        arguments = {"folder": folder, "count": count}
        cases.append(AreaCase(f"{_SESSION} {count}", sessions, arguments))
    title = "Functions of compiled modules; limits: C programs without gridrpc"
    return Area("modules", title, tuple(cases), lambda samples: _rows(samples, sessions_of))


def _rows(samples: Points, sessions_of: tuple[int, ...]) -> list[Row]:
    trip, copy = samples.of(_PING_PONG, "us"), samples.of(_COPY, "seconds")
    tcp = samples.of(_TCP, "seconds")
    rows = [
        noise_row(
            "round trips in C against themselves, larger by smaller", trip, samples.of(_AGAIN, "us")
        )
    ]
    for name, case, bound in (("C", _NULL_C, 1.5), ("Python", _NULL_PYTHON, 1.8)):
        rows.append(
            Row(
                f"null call from {name}; limit: raw round trip",
                "us",
                samples.of(case, "us"),
                limit=trip,
                target=Target(bound, of_limit=True),
                digits=1,
            )
        )
    for name, case in _IN.items():
        copied = "," not in name
        rows.append(
            Row(
                f"100 MB array in, from {name}; limit: memcpy",
                "s",
                samples.of(case, "seconds"),
                limit=copy,
                target=Target(1 / 0.7 if copied else 0.1, of_limit=True),
                digits=4,
            )
        )
    rows.append(
        Row(
            "100 MB array there and back over TCP; limit: the bytes alone",
            "s",
            samples.of(_INOUT, "seconds"),
            limit=tcp,
            target=Target(1 / 0.8, of_limit=True),
        )
    )
    for shared, bound in ((False, 1.10), (True, 1.05)):
        rows.append(
            Row(
                f"{_SOLVE[shared]}, n = {_ORDER}, one thread: remote by local",
                "x",
                samples.of(_SOLVE[shared], "ratio"),
                target=Target(bound),
            )
        )
    for count in sessions_of:
        of = f"{_SESSION} {count}"
        rows.append(
            Row(
                f"{count} outstanding sessions from C, a wait_any each: us per session",
                "us",
                samples.of(of, "seconds").scaled(1e6 / count),
                digits=2,
            )
        )
    last = f"{_SESSION} {sessions_of[-1]}"
    rows.append(
        Row(
            f"descriptors that {sessions_of[-1]} sessions take",
            "",
            samples.of(last, "files"),
            target=Target(0),
            digits=0,
        )
    )
    rows.append(
        Row(
            f"peak memory of the client with {sessions_of[-1]} sessions",
            "MB",
            samples.of(last, "memory").scaled(1e-6),
            digits=0,
        )
    )
    return rows
