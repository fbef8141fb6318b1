"""Workers brought up from nothing: what areas `start` and `memory` both measure, in one run.

The client has imported all it needs, then asks for the workers and submits as many sleeping tasks
as there are workers. The sleep is longer than bringing up takes, so that each worker has to take
one task; that this was so is checked by their process ids. All workers are at work when the last
of the tasks began, by the stamp that the worker took on the monotonic clock of this host. It is
the same for all kinds of workers, also the native ones, which cannot wait for each other.

The task is `time.sleep`, which no worker has to load; that of the pool also returns the stamp,
which in a grid is part of the call's profile. A function from a module of the user's own is
another matter: workers of the pool inherit the module, those of the grid import it one by one.
That is measured as a case of its own.
"""

from __future__ import annotations

import os
import time
from typing import Any

from gridbench.bench.crews import NATIVE, POOL, PYTHON, SLEEP, crew
from gridbench.bench.figures import Case, Values
from gridbench.bench.processes import footprint, tree
from gridbench.bench.work import stand

WORKERS = 100
_SLEEP = 1.5  # seconds; much longer than bringing up takes
_REST = 0.2  # seconds for the workers to become idle


def bring_up(kind: str, workers: int, sleep: float, own: bool) -> Values:
    """Seconds until all are at work; bytes that spawner and workers hold when idle again.

    `own`: the task is a function of a module that a worker has to have.
    """
    begin = time.monotonic()
    with crew(kind, workers) as running:
        task = stand if own else SLEEP[kind]
        calls = [running.submit(task, sleep) for _ in range(workers)]
        began = [_began(call, own) for call in calls]
        different = len({pid for _, pid in began})
        if different < workers:
            raise RuntimeError(f"only {different} of {workers} workers took a task: sleep longer")
        time.sleep(_REST)
        _, *others = tree(os.getpid())
        return {
            "at_work": max(when for when, _ in began) - begin,
            "bytes": footprint(others),
            "processes": len(others),
        }


def _began(call: Any, own: bool) -> tuple[float, int]:
    """When the task began and in which process: what it returned, or the worker's stamp."""
    result: tuple[float, int] = call.result()
    return result if own else (call.profile.calc_in, call.profile.pid)


def cases() -> tuple[Case, ...]:
    """The grids with `time.sleep` and with a function of a module, and the pool."""
    return tuple(
        Case(
            name=name(kind, own),
            function=bring_up,
            arguments={"kind": kind, "workers": WORKERS, "sleep": _SLEEP, "own": own},
        )
        for kind, own in ((PYTHON, False), (PYTHON, True), (NATIVE, False), (POOL, True))
    )


def name(kind: str, own: bool = False) -> str:
    """The name of the case of this kind."""
    task = "own function" if own and kind != POOL else "time.sleep"
    return f"{WORKERS} cold workers, {kind}, {task}"
