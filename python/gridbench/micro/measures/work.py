"""Tasks that do something: as many as fit into the time, on a few workers."""

from __future__ import annotations

import math
import time

from gridbench.bench.client import Client, Found, WrongResult
from gridbench.workload.calls import do
from gridrpc._native import processors

_LEAST = 8  # tasks for each worker


def rate(client: Client, body: str, seconds: float) -> Found:
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
    return Found({"per_second": count / passed, "count": count})


def alone(client: Client, body: str, seconds: float) -> Found:
    """`per_second`: what one process does, one after the other, times as many as can be at work."""
    at_once = client.workers if body == "sleep" else min(client.workers, processors())
    count = _count(client, body, seconds)
    passed = sum(do(body, seconds) for _ in range(count))
    return Found({"per_second": at_once * count / passed, "count": count})


def _count(client: Client, body: str, seconds: float) -> int:
    """How many tasks keep the workers busy for as long as a quantity may take."""
    do(body, seconds)
    one = do(body, seconds)
    return max(_LEAST * client.workers, math.ceil(client.workers * client.budget / max(one, 1e-6)))
