"""Area `tasks`: many workers, tasks that sleep, from t = 0 to the last result, warm."""

from __future__ import annotations

import time

from gridbench.bench.crews import NATIVE, POOL, PYTHON, SLEEP, crew, warm_up
from gridbench.bench.figures import Area, Case, Measured, Row, Samples, Target, Values

_FEW = "100 native workers, 200 tasks of 1 s"
_SHORT = "100 Python workers, 1000 tasks of 0.1 s"
_MANY = "400 native workers, 1200 tasks of 1 s"


def farm(kind: str, workers: int, tasks: int, sleep: float) -> Values:
    """Seconds from the first submission until the client has the last result.

    `start`: seconds from asking for the workers until all have answered.
    """
    asked = time.monotonic()
    with crew(kind, workers) as running:
        warm_up(kind, running, workers)
        begin = time.monotonic()
        calls = [running.submit(SLEEP[kind], sleep) for _ in range(tasks)]
        for call in calls:
            call.result()
        return {"total": time.monotonic() - begin, "start": begin - asked}


def area(full: bool) -> Area:
    """The same numbers of workers and tasks, in full or not."""
    del full
    few = {"workers": 100, "tasks": 200, "sleep": 1.0}
    short = {"workers": 100, "tasks": 1000, "sleep": 0.1}
    many = {"workers": 400, "tasks": 1200, "sleep": 1.0}
    return Area(
        "tasks",
        "Tasks that sleep, warm: first submission to last result; limit: the ideal",
        (
            Case(name=_FEW, function=farm, arguments={"kind": NATIVE, **few}),
            Case(name=_SHORT, function=farm, arguments={"kind": PYTHON, **short}),
            Case(name=f"{_SHORT}, pool", function=farm, arguments={"kind": POOL, **short}),
            Case(name=_MANY, function=farm, arguments={"kind": NATIVE, **many}),
        ),
        _rows,
    )


def _rows(samples: Samples) -> list[Row]:
    return [
        Row(
            what=_FEW,
            unit="s",
            digits=4,
            ours=samples.of(_FEW, "total"),
            limit=Measured.exactly(2.0),
            target=Target(2.02),
        ),
        Row(
            what=_SHORT,
            unit="s",
            digits=4,
            ours=samples.of(_SHORT, "total"),
            peer=samples.of(f"{_SHORT}, pool", "total"),
            limit=Measured.exactly(1.0),
            target=Target(1.03),
        ),
        Row(
            what=_MANY,
            unit="s",
            digits=4,
            ours=samples.of(_MANY, "total"),
            limit=Measured.exactly(3.0),
            target=Target(3.1),
        ),
        Row(what="start-up of the 400", unit="s", ours=samples.of(_MANY, "start")),
    ]
