"""Many tasks on many workers, and a million calls in one go."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

from gridbench.micro.client import Client, Found, WrongResult, check_all
from gridbench.micro.measures.calls import batch_size, submitted
from gridbench.micro.work import null, stand

_TENTHS = 10
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
    engine = client.engine
    rate = _rate(client)
    # The last of the time is for what comes back late, as long queues slow some engines down.
    count = min(count, max(_TENTHS, int(0.8 * seconds * rate)))
    before = _peak()
    marks = [0.0] * _TENTHS
    places = {(n + 1) * count // _TENTHS - 1: n for n in range(_TENTHS)}
    futures = []
    begin = time.perf_counter()
    for number in range(count):
        future = engine.call(null)
        futures.append(future)
        if number in places:
            engine.when_done(future, _marker(marks, places[number]))
        if number % _GLANCE == 0 and time.perf_counter() - begin > seconds:
            raise WrongResult(f"only {number} calls could be submitted in {seconds:g} s")
    results = engine.gather(futures)
    passed = time.perf_counter() - begin
    peak = _peak()
    check_all(results, None, "calls")
    until = time.perf_counter() + 5
    while not all(marks) and time.perf_counter() < until:
        time.sleep(0.01)
    tenth = count / _TENTHS
    values = {"seconds": passed, "count": count, "per_second": count / passed}
    values |= {"peak": peak, "grown": peak - before}
    # Engines that report many ends at one time tell nothing of single tenths.
    durations = [after - at for at, after in zip([begin, *marks], marks, strict=False)]
    if all(marks) and min(durations) > 0:
        values |= {"first_tenth": tenth / durations[0], "last_tenth": tenth / durations[-1]}
        values["steady"] = durations[0] / durations[-1]
        calls = [tenth * (n + 1) for n in range(_TENTHS)]
        rates = [tenth / duration for duration in durations]
        return Found(values, {"calls": calls, "per_second": rates})
    return Found(values)


def _rate(client: Client) -> float:
    """Null calls per second, about."""
    count = batch_size(client.engine, client.budget, most=100_000)
    return count / submitted(client.engine, count)


def _marker(marks: list[float], number: int) -> Callable[[], None]:
    def mark() -> None:
        marks[number] = time.perf_counter()

    return mark


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
