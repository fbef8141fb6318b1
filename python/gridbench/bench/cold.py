"""Workers brought up from nothing: what areas `start` and `memory` both measure, in one run.

The client has imported all it needs, then asks for the workers and submits as many sleeping tasks
as there are workers. The sleep is longer than bringing up takes, so that each worker has to take
one task; that this was so is checked by their process ids. All workers are at work when the last
of the tasks began, by the stamp that the worker took on the monotonic clock of this host. It is
the same for all kinds of workers, also the native ones, which cannot wait for each other. Python
workers of the grid load the module of the task by name; those of the pool inherit it.
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


def bring_up(kind: str, workers: int, sleep: float) -> Values:
    """Seconds until all are at work; bytes that spawner and workers hold when idle again."""
    begin = time.monotonic()
    with crew(kind, workers) as running:
        task = SLEEP[kind] if kind == NATIVE else stand
        calls = [running.submit(task, sleep) for _ in range(workers)]
        began = [_began(kind, call) for call in calls]
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


def _began(kind: str, call: Any) -> tuple[float, int]:
    """When the task began and in which process: what it returned, or the native worker's stamp."""
    result: tuple[float, int] = call.result()
    return (call.profile.calc_in, call.profile.pid) if kind == NATIVE else result


def cases() -> tuple[Case, ...]:
    """One for each kind of workers."""
    return tuple(
        Case(
            name=name(kind),
            function=bring_up,
            arguments={"kind": kind, "workers": WORKERS, "sleep": _SLEEP},
        )
        for kind in (PYTHON, NATIVE, POOL)
    )


def name(kind: str) -> str:
    """The name of the case of this kind."""
    return f"{WORKERS} cold workers, {kind}"
