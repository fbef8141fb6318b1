"""The minimum effective task grain, METG: how short tasks may be until overhead takes over.

Tasks that keep a processor busy for a given time go to 2 workers; efficiency is the time that
they need by the time that they had: tasks x task time / (workers x elapsed). METG(50 %) is the
shortest task time at which efficiency is 50 %.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gridbench.bench.client import Client, Found, WrongResult
from gridbench.micro.measures.calls import batch_size, submitted
from gridbench.workload.calls import spin

if TYPE_CHECKING:
    from gridbench.engines.functions import Chunk

_SHORTEST = 1e-6  # seconds of a task
_IDEAL = 0.05  # seconds that a try takes at least, if there is no overhead
_MOST = 3.0  # seconds that a try may take, about
_CLOSE = 1.15  # the factor between the ends of the interval that is searched no further
_STEP = 4.0

Try = Callable[[float], float]


def metg(client: Client, by_map: bool, chunk: Chunk, longest: float) -> Found:
    """`us_50`, `us_90`: METG; the tries, as `task_us` and `efficiency`, are the samples.

    Single submissions, or a map with `chunk` items to a call: a number that is lowered where each
    worker would not get several chunks, or "auto". `longest`: the seconds of a task beyond which
    nothing is tried. A value at the end of the range of task times says that the METG is no longer,
    or no shorter, than that.
    """
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
            raise WrongResult(f"{count} tasks did not all run for as long as they were told to")
        tries[task] = count * task / (workers * elapsed)
        return tries[task]

    guess = min(longest, max(_SHORTEST, overhead / (10 if by_map else 1)))
    values = {
        "us_50": 1e6 * _search(efficiency, 0.5, guess, longest),
        "us_90": 1e6 * _search(efficiency, 0.9, guess, longest),
    }
    ordered = sorted(tries)
    return Found(
        values,
        {"task_us": [1e6 * t for t in ordered], "efficiency": [tries[t] for t in ordered]},
    )


def _search(efficiency: Try, share: float, guess: float, longest: float) -> float:
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
