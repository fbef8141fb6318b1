"""Workers that are brought up from nothing, and tasks on them.

This module imports next to nothing: how long an engine takes to come up is measured here.

METG is the minimum effective task granularity: how short tasks may be until overhead takes over.
Tasks of a given time go to 2 workers; efficiency is tasks x task time / (workers x elapsed).
METG(50 %) is the task time at which efficiency is 50 %.
"""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING

from gridbench.bench.client import EngineClient, MeasuredValues, NotStarted, WrongResult, one_line
from gridbench.workload.calls import do, spin, stand

if TYPE_CHECKING:
    from collections.abc import Callable

    from gridbench.engines.functions import Chunk

_REST = 0.3  # seconds for the workers to become idle
_AT_WORK = 1.0  # seconds that first tasks on native workers last, much longer than bringing up
_LEAST_TASKS = 8  # for each worker
_SHORTEST = 1e-6  # seconds of a task
_IDEAL = 0.05  # seconds that a try takes at least, if there is no overhead
_MOST = 3.0  # seconds that a try may take, about
_CLOSE = 1.15  # the factor between the ends of the interval that is searched no further
_STEP = 4.0


def bring_up(client: EngineClient, numpy_loaded: bool) -> MeasuredValues:
    """`first`, `all`: seconds until the first worker, and all, are at work on their first task.

    The clock starts before the engine's driver, and with it the engine, is imported; it stands
    still while a batch system is brought up, which sites have. Each task stays until all workers
    have one, so that no worker has two. `bytes` is what all processes but the client hold (PSS)
    when they are idle again, `client_bytes` what the client does.
    """
    from gridbench.process.barrier import Meeting, meet

    if numpy_loaded:
        import numpy as np

        del np
    try:
        with Meeting(client.patience) as meeting:
            begin = time.monotonic()
            engine = client.make()
            requested = time.monotonic()
            engine.prepare(client.workers)
            begin += time.monotonic() - requested
            engine.start(client.workers)
            calls = [engine.call(meet, meeting.place) for _ in range(client.workers)]
            arrivals = meeting.gather(client.workers)
            meeting.end()
            processes = len(set(engine.gather(calls)))
    except Exception as error:  # an engine is foreign code: it can fail in any way
        raise NotStarted(one_line(error)) from error
    if processes != client.workers:
        raise WrongResult(f"{client.workers} tasks at one time ran in {processes} processes")
    values = {"first": min(arrivals) - begin, "all": max(arrivals) - begin}
    return MeasuredValues(values | memory(client.workers))


def memory(workers: int) -> dict[str, float]:
    """Bytes that the client, and all processes below it, hold when they have come to rest.

    Nothing if there are fewer processes than workers: the engine keeps none that wait.
    """
    from gridbench.process.memory import footprint, tree

    time.sleep(_REST)
    client, *others = tree(os.getpid())
    if len(others) < workers:
        return {}
    return {
        "bytes": footprint(others),
        "client_bytes": footprint([client]),
        "processes": len(others),
    }


def native_bring_up(client: EngineClient, numpy_loaded: bool) -> MeasuredValues:
    """As `bring_up`, by tasks that sleep and the stamps of the workers."""
    if numpy_loaded:
        import numpy as np

        del np
    begin = time.monotonic()
    try:
        engine = client.make()
        engine.start(client.workers)
        calls = [engine.call(stand, _AT_WORK) for _ in range(client.workers)]
        engine.gather(calls)
    except Exception as error:  # whatever it is, nothing else can be measured
        raise NotStarted(one_line(error)) from error
    arrivals = [call.profile.calc_in for call in calls]
    processes = len({call.profile.pid for call in calls})
    if processes != client.workers:
        raise WrongResult(f"{client.workers} tasks at one time ran in {processes} processes")
    return MeasuredValues(
        {"first": min(arrivals) - begin, "all": max(arrivals) - begin} | memory(client.workers)
    )


def tasks(client: EngineClient, count: int, seconds: float) -> MeasuredValues:
    """`seconds`: from the first submission of so many sleeping tasks to the last result."""
    engine = client.engine
    begin = time.monotonic()
    results = engine.gather([engine.call(stand, seconds) for _ in range(count)])
    passed = time.monotonic() - begin
    if len(results) != count or any(began < begin for began, _ in results):
        raise WrongResult(f"{count} tasks did not all come back well")
    workers = len({pid for _, pid in results})
    return MeasuredValues({"seconds": passed, "per_second": count / passed, "workers": workers})


def native_tasks(client: EngineClient, count: int, seconds: float) -> MeasuredValues:
    """As `tasks`; the results are the seconds slept."""
    engine = client.engine
    begin = time.monotonic()
    results = engine.gather([engine.call(stand, seconds) for _ in range(count)])
    passed = time.monotonic() - begin
    if len(results) != count or any(slept < seconds for slept in results):
        raise WrongResult(f"{count} tasks did not all come back well")
    return MeasuredValues({"seconds": passed, "per_second": count / passed})


def work_rate(client: EngineClient, body: str, seconds: float) -> MeasuredValues:
    """`per_second`: tasks of this body and time, submitted singly, from the first submission to
    the last result. How long one takes is found out in the client, which imports the body too."""
    engine, workers = client.engine, client.workers
    engine.gather([engine.call(do, body, seconds) for _ in range(workers)])
    count = _count(client, body, seconds)
    begin = time.perf_counter()
    results = engine.gather([engine.call(do, body, seconds) for _ in range(count)])
    passed = time.perf_counter() - begin
    if len(results) != count or min(results) <= 0:
        raise WrongResult(f"{count} tasks did not all come back well")
    return MeasuredValues({"per_second": count / passed, "count": count})


def work_alone(client: EngineClient, body: str, seconds: float) -> MeasuredValues:
    """`per_second`: what one process does, one after the other, times as many as can be at work."""
    from gridrpc._native import processors

    at_once = client.workers if body == "sleep" else min(client.workers, processors())
    count = _count(client, body, seconds)
    passed = sum(do(body, seconds) for _ in range(count))
    return MeasuredValues({"per_second": at_once * count / passed, "count": count})


def _count(client: EngineClient, body: str, seconds: float) -> int:
    """How many tasks keep the workers busy for as long as a quantity may take."""
    do(body, seconds)
    one = do(body, seconds)
    return max(
        _LEAST_TASKS * client.workers, math.ceil(client.workers * client.budget / max(one, 1e-6))
    )


def metg(client: EngineClient, by_map: bool, chunk: Chunk, longest: float) -> MeasuredValues:
    """`us_50`, `us_90`: METG; the tries, as `task_us` and `efficiency`, are the samples.

    Single submissions, or a map with `chunk` items to a call: a number that is lowered where each
    worker would not get several chunks, or "auto". `longest`: the seconds of a task beyond which
    nothing is tried. A value at the end of the range of task times says that the METG is no longer,
    or no shorter, than that.
    """
    from gridbench.micro.measures.calls import batch_size, submitted

    engine, workers = client.engine, client.workers
    known = batch_size(engine, client.budget / 5)
    overhead = submitted(engine, known) / known
    tries: dict[float, float] = {}

    def efficiency(task: float) -> float:
        if task in tries:
            return tries[task]
        least = max(4 * workers, math.ceil(workers * _IDEAL / task))
        each = task / workers + (0 if by_map else overhead)
        count = max(4 * workers, min(least, int(_MOST / each)))
        begin = time.perf_counter()
        if by_map:
            size = chunk if chunk == "auto" else max(1, min(chunk, count // (8 * workers)))
            results = list(engine.map(spin, [task] * count, size))
        else:
            results = engine.gather([engine.call(spin, task) for _ in range(count)])
        elapsed = time.perf_counter() - begin
        # The clock's differences are rounded.
        if len(results) != count or min(results) < 0.99 * task:
            raise WrongResult(f"{count} tasks did not all run for the requested time")
        tries[task] = count * task / (workers * elapsed)
        return tries[task]

    guess = min(longest, max(_SHORTEST, overhead / (10 if by_map else 1)))
    values = {
        "us_50": 1e6 * _search(efficiency, 0.5, guess, longest),
        "us_90": 1e6 * _search(efficiency, 0.9, guess, longest),
    }
    ordered = sorted(tries)
    return MeasuredValues(
        values,
        {"task_us": [1e6 * t for t in ordered], "efficiency": [tries[t] for t in ordered]},
    )


def _search(
    efficiency: Callable[[float], float], share: float, guess: float, longest: float
) -> float:
    """The task time at which efficiency is `share`, by bisection of its logarithm."""
    low = high = guess
    while efficiency(low) >= share:
        if low <= _SHORTEST:
            return _SHORTEST
        low, high = max(_SHORTEST, low / _STEP), low
    while efficiency(high) < share:
        if high >= longest:
            return longest
        low, high = high, min(longest, high * _STEP)
    while high / low > _CLOSE:
        middle = math.sqrt(low * high)
        if efficiency(middle) < share:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high)
