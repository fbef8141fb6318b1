"""Calls that do nothing: one after the other, many submitted singly, many by map."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gridbench.bench.client import Client, Found, WrongResult, check_all, timed_until
from gridbench.statistics.series import Histogram
from gridbench.workload.calls import null, same

if TYPE_CHECKING:
    from gridbench.engines.functions import Chunk, FunctionEngine

_BATCHES = 3
_MOST_ITEMS = 5_000_000
_STEP = 4
_HARDLY = 1.5  # times as long for that many more calls
_FEW = 20  # calls to warm up, or to find out how fast the engine is


def null_call(client: Client) -> Found:
    """`us`: median time of a call that does nothing, each after the one before has come back."""
    engine = client.engine

    def call() -> None:
        if engine.result(engine.call(null)) is not None:
            raise WrongResult("a call that does nothing returned something")

    timed_until(call, client.budget / 10, least=3, most=1000)
    times = [1e6 * t for t in timed_until(call, client.budget, least=5, most=100_000)]
    return Found(
        {"us": statistics.median(times), "count": len(times)},
        {"us": Histogram.of(times).to_record()},
    )


def null_rate(client: Client) -> Found:
    """`per_second`: calls submitted singly, then gathered; the median of three batches."""
    engine = client.engine
    count = batch_size(engine, client.budget)
    rates = [count / submitted(engine, count) for _ in range(_BATCHES)]
    return Found({"per_second": statistics.median(rates), "count": count})


def batch_size(engine: FunctionEngine, seconds: float, most: int = 200_000) -> int:
    """How many null calls take about so many seconds; at most `most`."""
    submitted(engine, _FEW)  # the first time teaches the workers the function
    return count_for(lambda count: submitted(engine, count), seconds, least=_FEW, most=most)


def count_for(measure: Callable[[int], float], seconds: float, *, least: int, most: int) -> int:
    """How many calls take about so many seconds, where `measure` gives the seconds for some.

    More of them if that takes hardly longer: what an engine that reports once a second does in
    its first second says nothing of its rate.
    """
    count, passed = least, measure(least)
    while count < most:
        more = min(most, _STEP * count)
        took = measure(more)
        late = took < _HARDLY * passed
        count, passed = more, took
        if passed >= seconds / 2 and not late:
            break
    return count if passed > seconds else min(most, round(count * seconds / passed))


def submitted(engine: FunctionEngine, count: int) -> float:
    """Seconds for so many null calls, from the first submission to the last result."""
    begin = time.perf_counter()
    results = engine.gather([engine.call(null) for _ in range(count)])
    passed = time.perf_counter() - begin
    if len(results) != count:
        raise WrongResult(f"{len(results)} results of {count} calls")
    check_all(results, None, "calls")
    return passed


def map_rate(client: Client, chunk: Chunk) -> Found:
    """`per_second`: a function that returns its argument, over a range of numbers."""
    engine = client.engine

    def mapped(count: int) -> float:
        items = list(range(count))
        begin = time.perf_counter()
        results = list(engine.map(same, items, chunk))
        passed = time.perf_counter() - begin
        if results != items:
            raise WrongResult(f"map over {count} items gave other results, or in another order")
        return passed

    return Found(rate_by_map(mapped, chunk, client.budget))


def rate_by_map(mapped: Callable[[int], float], chunk: Chunk, budget: float) -> dict[str, float]:
    """The values of `map_rate`, where `mapped` gives the seconds for so many items."""
    least = 1000 if chunk == "auto" else 4 * chunk
    mapped(least)  # the first time teaches the workers the function
    count = count_for(mapped, budget / _BATCHES, least=least, most=_MOST_ITEMS)
    rates = [count / mapped(count) for _ in range(_BATCHES)]
    return {"per_second": statistics.median(rates), "count": count}
