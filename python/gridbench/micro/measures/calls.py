"""Null calls: one after the other, submitted singly, by map, from C, from several client
processes, and a million in one go.

    python -m gridbench.micro.measures.calls ARGUMENTS

is one of several clients. It writes an empty list when it is ready, waits for a line, makes calls
for a while, and writes how many it made and how many seconds that took, or an error message.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.bench.client import (
    EngineClient,
    MeasuredValues,
    NotStarted,
    WrongResult,
    check_all,
    timed_until,
)
from gridbench.bench.programs import numbers
from gridbench.formats import as_given
from gridbench.process.children import PYTHON
from gridbench.statistics.series import Histogram
from gridbench.workload.calls import null, same, take

if TYPE_CHECKING:
    from gridbench.engines.functions import Chunk, FunctionEngine

_BATCHES = 3
_MOST_ITEMS = 5_000_000
_STEP = 4
_HARDLY = 1.5  # times as long for that many more calls
_FEW = 20  # calls to warm up, or to find out how fast the engine is
_UNDER_WAY = 1000  # calls from C at one time
_TENTHS = 10
_TRIES = 3
_LATE_MARKS = 5.0  # seconds that reports of ends may come after the results
_GLANCE = 500  # submissions between looks at the clock


def null_call(client: EngineClient) -> MeasuredValues:
    """`us`: median time of a call that does nothing, each after the one before has come back."""
    engine = client.engine

    def call() -> None:
        if engine.result(engine.call(null)) is not None:
            raise WrongResult("a call that does nothing returned something")

    timed_until(call, client.budget / 10, least=3, most=1000)
    times = [1e6 * t for t in timed_until(call, client.budget, least=5, most=100_000)]
    return MeasuredValues(
        {"us": statistics.median(times), "count": len(times)},
        {"us": Histogram.of(times).to_record()},
    )


def null_rate(client: EngineClient) -> MeasuredValues:
    """`per_second`: calls submitted singly, then gathered; the median of three batches."""
    engine = client.engine
    count = batch_size(engine, client.budget)
    rates = [count / submitted(engine, count) for _ in range(_BATCHES)]
    return MeasuredValues({"per_second": statistics.median(rates), "count": count})


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


def map_rate(client: EngineClient, chunk: Chunk) -> MeasuredValues:
    """`per_second`: a function that returns its argument, over a range of numbers."""

    def check(items: list[int], results: list[int]) -> None:
        if results != items:
            raise WrongResult(
                f"map over {len(items)} items gave other results, or in another order"
            )

    return _rate_by_map(client, same, chunk, check)


def native_map_rate(client: EngineClient, chunk: Chunk) -> MeasuredValues:
    """`per_second`: a function of a native module that takes a number, over a range of them."""

    def check(items: list[int], results: list[None]) -> None:
        if results != [None] * len(items):
            raise WrongResult(f"map over {len(items)} items gave other results")

    return _rate_by_map(client, take, chunk, check)


def _rate_by_map(
    client: EngineClient,
    function: Callable[[int], Any],
    chunk: Chunk,
    check: Callable[[list[int], list[Any]], None],
) -> MeasuredValues:
    engine = client.engine

    def mapped(count: int) -> float:
        items = list(range(count))
        begin = time.perf_counter()
        results = list(engine.map(function, items, chunk))
        passed = time.perf_counter() - begin
        check(items, results)
        return passed

    least = 1000 if chunk == "auto" else 4 * chunk
    mapped(least)  # the first time teaches the workers the function
    count = count_for(mapped, client.budget / _BATCHES, least=least, most=_MOST_ITEMS)
    rates = [count / mapped(count) for _ in range(_BATCHES)]
    return MeasuredValues({"per_second": statistics.median(rates), "count": count})


def null_call_from_c(client: EngineClient, folder: str, count: int) -> MeasuredValues:
    """`us`: median time of a blocking call of a native function without arguments."""
    del client
    return MeasuredValues({"us": numbers(folder, "calls", "null", count)[0], "count": count})


def null_rate_from_c(client: EngineClient, folder: str, count: int) -> MeasuredValues:
    """`per_second`: calls submitted and waited for one by one, some of them under way."""
    del client
    rate = numbers(folder, "calls", "rate", count, _UNDER_WAY)[0]
    return MeasuredValues({"per_second": rate, "count": count})


def million(client: EngineClient, count: int, seconds: float) -> MeasuredValues:
    """`seconds` for `count` null calls submitted before any result is taken.

    An engine that is too slow for all of them gets as many as should fit into `seconds`: `count`
    says how many. `per_second` in all, of the `first_tenth` and the `last_tenth` of the calls,
    and `steady`, the last by the first; `peak` is the most memory that the client ever held,
    bytes, and `grown` by how much the calls raised it.
    """
    rate = _rate(client)
    before = _peak()
    for _ in range(_TRIES):
        # The last of the time is for what comes back late, as long queues slow some engines down.
        some = min(count, max(_TENTHS, int(0.8 * seconds * rate)))
        passed, marks = _in_one_go(client, some, seconds)
        if some == count or passed > seconds / 2:
            break
        # A short trial did not tell how fast the engine is once it has much to do.
        rate = some / passed
    peak = _peak()
    values = {"seconds": passed, "count": some, "per_second": some / passed}
    values |= {"peak": peak, "grown": peak - before}
    tenth = some / _TENTHS
    # Engines that report many ends at one time tell nothing of single tenths.
    durations = [after - at for at, after in zip([0.0, *marks], marks, strict=False)]
    if not all(marks) or min(durations) <= 0:
        return MeasuredValues(values)
    values |= {"first_tenth": tenth / durations[0], "last_tenth": tenth / durations[-1]}
    values["steady"] = durations[0] / durations[-1]
    calls = [tenth * (n + 1) for n in range(_TENTHS)]
    rates = [tenth / duration for duration in durations]
    return MeasuredValues(values, {"calls": calls, "per_second": rates})


def _in_one_go(client: EngineClient, count: int, seconds: float) -> tuple[float, list[float]]:
    """Seconds for so many calls, and when each tenth of them had ended; 0 for what is not known."""
    engine = client.engine
    marks = [0.0] * _TENTHS
    places = {(n + 1) * count // _TENTHS - 1: n for n in range(_TENTHS)}
    futures = []
    begin = time.perf_counter()

    def mark(number: int) -> None:
        marks[number] = time.perf_counter() - begin

    for number in range(count):
        future = engine.call(null)
        futures.append(future)
        if number in places:
            engine.when_done(future, partial(mark, places[number]))
        if number % _GLANCE == 0 and time.perf_counter() - begin > seconds:
            raise WrongResult(f"only {number} calls could be submitted in {as_given(seconds)}")
    results = engine.gather(futures)
    passed = time.perf_counter() - begin
    check_all(results, None, "calls")
    until = time.perf_counter() + _LATE_MARKS
    while not all(marks) and time.perf_counter() < until:
        time.sleep(0.01)
    return passed, marks


def _rate(client: EngineClient) -> float:
    """Null calls per second, about."""
    count = batch_size(client.engine, client.budget, most=100_000)
    return count / submitted(client.engine, count)


def _peak() -> float:
    """The most memory this process has had, bytes. `getrusage` would tell that of whoever started
    it, if that had more."""
    found = re.search(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024.0 if found else float("nan")


def rate_of_clients(client: EngineClient, clients: int) -> MeasuredValues:
    """`per_second`: null calls submitted singly, of all clients together."""
    arguments = [client.name, client.place, client.workers, client.patience, client.budget]
    processes = [
        subprocess.Popen(
            [*PYTHON, "-m", "gridbench.micro.measures.calls", json.dumps(arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(clients)
    ]  # fmt: skip
    try:
        for process in processes:
            _answer(process)
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        rates = [count / passed for count, passed in map(_answer, processes)]
        # They end together, so that none of them measures while others close.
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in processes:
            process.wait(client.patience)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return MeasuredValues({"per_second": sum(rates), "slowest": min(rates), "fastest": max(rates)})


def _answer(process: subprocess.Popen[str]) -> list[float]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise NotStarted(f"a client ended with status {process.wait()}")
    answer: list[float] | str = json.loads(line)
    if isinstance(answer, str):
        raise NotStarted(answer)
    return answer


def main(arguments: str) -> None:
    """One of the clients."""
    # What the engine prints is not the answer, and what it reads, as Open MPI's daemon does, is not
    # for it. Descriptors made by `dup` are not inherited.
    answers, orders = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(0))
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    name, place, workers, patience, seconds = json.loads(arguments)
    client = EngineClient(
        name=name, place=place, workers=workers, patience=patience, budget=seconds
    )
    try:
        engine = client.engine
        # Small batches, so that all clients make calls until the end of the time.
        batch = batch_size(engine, seconds / 10, most=20_000)
        print([], file=answers, flush=True)
        orders.readline()
        count, passed = 0, 0.0
        while passed < seconds:
            passed += submitted(engine, batch)
            count += batch
        print([count, passed], file=answers, flush=True)
        orders.read()
    except Exception as error:  # an engine is foreign code: it can fail in any way
        print(json.dumps(f"one of the clients: {error}"), file=answers, flush=True)
    finally:
        client.close()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
