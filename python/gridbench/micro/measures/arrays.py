"""Arrays: as an argument, there and back, shared by all workers, and solving equations."""

from __future__ import annotations

import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import numpy.typing as npt

from gridbench.bench.client import EngineClient, MeasuredValues, WrongResult, timed_until
from gridbench.process.barrier import Meeting
from gridbench.workload.calls import ends, read, read_and_meet, same, solve

_inherited: Any = None
"""What the workers of a forked pool inherit."""
_CHECKED = 1e-6  # how far the two sides of a solved system may be apart


def _array(shape: tuple[int, ...] | int, dtype: str, kind: str) -> npt.NDArray[Any]:
    """An array as users have it, or one in the memory that gridrpc shares with workers."""
    if kind == "gridrpc.empty":
        import gridrpc

        return gridrpc.empty(shape, dtype)
    return np.empty(shape, dtype)


def argument(client: EngineClient, size: int, array: str) -> MeasuredValues:
    """`ms`: median time of a call with an array of `size` bytes; its ends and length come back.

    The array is another one in each call, in that its ends change. `copies`: bytes that a call
    moved, by the size of the array, from engines that tell.
    """
    engine = client.engine
    data = _array(size, "u1", array)
    data[:] = 7
    number = 0

    def call() -> None:
        nonlocal number
        number = (number + 1) % 251
        data[0] = data[-1] = number
        if engine.result(engine.call(ends, data)) != (size, number, number):
            raise WrongResult("the function got another array than was sent")

    found = _times(call, client.budget)
    future = engine.call(ends, data)
    engine.result(future)
    moved = engine.moved(future)
    if moved is not None:
        found.values["copies"] = moved / size
    return found


def echo(client: EngineClient, size: int, array: str) -> MeasuredValues:
    """`ms`: median time of a call that gets an array and returns it."""
    engine = client.engine
    data = _array(size, "u1", array)
    data[:] = 7
    number = 0

    def call() -> None:
        nonlocal number
        number = (number + 1) % 251
        data[0] = data[-1] = number
        if ends(engine.result(engine.call(same, data))) != (size, number, number):
            raise WrongResult("another array came back than was sent")

    found = _times(call, client.budget)
    if not np.array_equal(engine.result(engine.call(same, data)), data):
        raise WrongResult("the array that came back is not the same")
    return found


def _times(call: Any, budget: float) -> MeasuredValues:
    timed_until(call, budget / 10, least=1, most=100)
    times = [1e3 * t for t in timed_until(call, budget, least=3, most=20_000)]
    return MeasuredValues({"ms": statistics.median(times), "count": len(times)})


def remote_solve(client: EngineClient, order: int, array: str) -> MeasuredValues:
    """`ratio`: time of NumPy's solve in a worker by that in this process, measured in turns."""
    engine = client.engine
    draw = np.random.default_rng(1)
    matrix, right = _array((order, order), "f8", array), _array(order, "f8", array)
    draw.random(out=matrix)
    draw.random(out=right)
    here: list[float] = []
    there: list[float] = []

    def turn() -> None:
        begin = time.perf_counter()
        local = solve(matrix, right)
        middle = time.perf_counter()
        remote = engine.result(engine.call(solve, matrix, right))
        end = time.perf_counter()
        if not np.allclose(remote, local, rtol=_CHECKED, atol=_CHECKED):
            raise WrongResult("the system was not solved")
        here.append(middle - begin)
        there.append(end - middle)

    timed_until(turn, client.budget / 5, least=1, most=5)
    here.clear()
    there.clear()
    timed_until(turn, 2 * client.budget, least=3, most=100)
    ratios = [remote / local for local, remote in zip(here, there, strict=True)]
    return MeasuredValues({
        "ratio": statistics.median(ratios),
        "local_ms": 1e3 * statistics.median(here),
        "remote_ms": 1e3 * statistics.median(there),
        "count": len(ratios),
    })  # fmt: skip


def shared(client: EngineClient, size: int) -> MeasuredValues:
    """`first`, `later`: seconds until all workers have read an array given once.

    It is made after the workers were started, and is a new one each time. The workers stay in
    the task until all have read, so that each of them does. `copies`: by how many times the
    array's size the memory of all processes grew.
    """
    engine = client.engine
    _share(client, np.zeros(1, np.uint8))
    first, copies = _share(client, np.full(size, 1, np.uint8))
    # As long as it takes at first: slow engines get one more time, fast ones a few.
    rest = [_share(client, np.full(size, 2, np.uint8))[0]]
    while len(rest) < 5 and first + sum(rest) < client.budget:
        rest.append(_share(client, np.full(size, 2 + len(rest), np.uint8))[0])
    del engine
    return MeasuredValues({"first": first, "later": statistics.median(rest), "copies": copies})


def _share(client: EngineClient, array: npt.NDArray[np.uint8]) -> tuple[float, float]:
    from gridbench.process.memory import footprint, tree

    engine, expected = client.engine, read(array)
    before = footprint(tree(os.getpid()))
    with Meeting(client.patience) as meeting:
        begin = time.monotonic()
        data = engine.put(array)
        calls = engine.call_on_each(read_and_meet, data, meeting.place)
        seconds = max(meeting.gather(client.workers)) - begin
        grown = footprint(tree(os.getpid())) - before
        meeting.end()
        if any(result != expected for result in engine.gather(calls)):
            raise WrongResult("a worker read other data than were shared")
    return seconds, grown / array.nbytes


def inherited(client: EngineClient, size: int) -> MeasuredValues:
    """`first`, `later`: seconds until all workers of a pool have read data that were there before
    they were forked, so that nothing is sent; `first` includes the fork."""
    global _inherited
    _inherited = np.full(size, 1, np.uint8)
    expected = read(_inherited)
    times = []
    with ProcessPoolExecutor(client.workers, mp_context=get_context("fork")) as pool:
        for _ in range(3):
            with Meeting(client.patience) as meeting:
                begin = time.monotonic()
                futures = [
                    pool.submit(_read_inherited, meeting.place) for _ in range(client.workers)
                ]
                times.append(max(meeting.gather(client.workers)) - begin)
                meeting.end()
                if any(future.result() != expected for future in futures):
                    raise WrongResult("a worker read other data than it inherited")
    return MeasuredValues({"first": times[0], "later": min(times[1:])})


def _read_inherited(place: str) -> int:
    return read_and_meet(_inherited, place)
