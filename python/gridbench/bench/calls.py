"""Area `calls`: calls that do nothing, one after the other, and many at once.

The Python grid is measured twice in every round, as if it were two engines: what differs between
the two is noise, and a difference to a peer that is no larger says nothing.
"""

from __future__ import annotations

import statistics
import time

from gridbench.bench.crews import NATIVE, NULL, POOL, PYTHON, crew, warm_up
from gridbench.bench.figures import Area, Case, Row, Samples, Target, Values
from gridbench.bench.limits import ping_pong

_WORKERS = 2
_AGAIN = f"null calls, {PYTHON} again"
_LIMIT = "round trips over a socket"
_NOISE = (("null call", "us"), ("null calls per second", "per_second"))


def null_calls(kind: str, single: int, many: int) -> Values:
    """Median time of a call in us, one after the other; calls per second, all at once."""
    null = NULL[kind]
    with crew(kind, _WORKERS) as running:
        warm_up(kind, running, _WORKERS)
        for _ in range(min(single, 200)):
            running.submit(null).result()
        times = []
        for _ in range(single):
            begin = time.perf_counter()
            running.submit(null).result()
            times.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        calls = [running.submit(null) for _ in range(many)]
        for call in calls:
            call.result()
        passed = time.perf_counter() - begin
    return {"us": statistics.median(times) * 1e6, "per_second": many / passed}


def area(full: bool) -> Area:
    """In full there are more calls in a run."""
    return area_of(single=10_000, many=50_000) if full else area_of(single=2_000, many=10_000)


def area_of(*, single: int, many: int) -> Area:
    """With so many calls one after the other, and so many at once."""
    numbers = {"single": single, "many": many}
    named = [(_name(kind), kind) for kind in (PYTHON, NATIVE, POOL)] + [(_AGAIN, PYTHON)]
    cases = [
        Case(name=name, function=null_calls, arguments={"kind": kind, **numbers})
        for name, kind in named
    ]
    limit = Case(name=_LIMIT, function=ping_pong, arguments={"calls": single})
    return Area(
        "calls",
        f"Null calls, {_WORKERS} workers; limit: Python ping-pong over a Unix socket",
        (*cases, limit),
        _rows,
        # A call takes twice as long where its two processes sit on different processors, which
        # is settled anew in each run: many short runs tell more than a few long ones.
        rounds=3,
    )


def _name(kind: str) -> str:
    return f"null calls, {kind}"


def _rows(samples: Samples) -> list[Row]:
    pool = _name(POOL)
    rows = [
        Row(
            what=f"noise: {what}, {PYTHON} against itself, larger by smaller",
            unit="x",
            ours=samples.of(_name(PYTHON), quantity).difference_to(samples.of(_AGAIN, quantity)),
            digits=2,
        )
        for what, quantity in _NOISE
    ]
    for language, kind, bound in (("Python", PYTHON, 0.2), ("native", NATIVE, None)):
        rows.append(
            Row(
                what=f"null call, {language} function, one after the other",
                unit="us",
                ours=samples.of(_name(kind), "us"),
                peer=samples.of(pool, "us"),
                limit=samples.of(_LIMIT, "us"),
                target=None if bound is None else Target(bound, of_peer=True),
                digits=1,
            )
        )
    for language, kind, bound in (("Python", PYTHON, 10), ("native", NATIVE, 20)):
        rows.append(
            Row(
                what=f"null calls per second, {language} function, submitted one by one, gathered",
                unit="/s",
                ours=samples.of(_name(kind), "per_second"),
                peer=samples.of(pool, "per_second"),
                target=Target(bound, at_least=True, of_peer=True),
                digits=0,
            )
        )
    return rows
