"""Many tasks on many workers, and a million calls in one go."""

from __future__ import annotations

import re
import time
from functools import partial
from pathlib import Path

from gridbench.bench.client import Client, Found, WrongResult, check_all
from gridbench.formats import as_given
from gridbench.micro.measures.calls import batch_size, submitted
from gridbench.workload.calls import null, stand

_TENTHS = 10
_TRIES = 3
_LATE_MARKS = 5.0  # seconds that reports of ends may come after the results
_GLANCE = 500  # submissions between looks at the clock


def tasks(client: Client, count: int, seconds: float) -> Found:
    """`seconds`: from the first submission of so many sleeping tasks to the last result."""
    engine = client.engine
    begin = time.monotonic()
    results = engine.gather([engine.call(stand, seconds) for _ in range(count)])
    passed = time.monotonic() - begin
    if len(results) != count or any(began < begin for began, _ in results):
        raise WrongResult(f"{count} tasks did not all come back well")
    workers = len({pid for _, pid in results})
    return Found({"seconds": passed, "per_second": count / passed, "workers": workers})


def million(client: Client, count: int, seconds: float) -> Found:
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
        return Found(values)
    values |= {"first_tenth": tenth / durations[0], "last_tenth": tenth / durations[-1]}
    values["steady"] = durations[0] / durations[-1]
    calls = [tenth * (n + 1) for n in range(_TENTHS)]
    rates = [tenth / duration for duration in durations]
    return Found(values, {"calls": calls, "per_second": rates})


def _in_one_go(client: Client, count: int, seconds: float) -> tuple[float, list[float]]:
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


def _rate(client: Client) -> float:
    """Null calls per second, about."""
    count = batch_size(client.engine, client.budget, most=100_000)
    return count / submitted(client.engine, count)


def _peak() -> float:
    """The most memory this process has had, bytes. `getrusage` would tell that of whoever started
    it, if that had more."""
    found = re.search(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024.0 if found else float("nan")
