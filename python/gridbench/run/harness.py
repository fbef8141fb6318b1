"""What the benchmark itself costs for each task: a pass on an engine that does nothing."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from gridbench.engines.null_engine import NullEngine
from gridbench.run.client import GLANCE, LocalClient
from gridbench.run.plan import Plan

_PASSES = 3
_TASKS = 500
_CLOSING = 1.0  # seconds, which nothing that does nothing needs


def harness_seconds(plan: Plan) -> float | None:
    """Seconds for each task of a pass without workers, data or sleep, from the first submit to
    the last result; every engine's run has them in it. The shortest of some passes, as one takes a
    millisecond or two and any pause of the machine would be most of it. None: nothing came back in
    time."""
    passes = (_pass(plan) for _ in range(_PASSES))
    return min((one for one in passes if one is not None), default=None)


def _pass(plan: Plan) -> float | None:
    tasks = min(_TASKS, len(plan.sleeps))
    client = LocalClient(NullEngine())
    nothing = replace(
        plan, warm=True, sleeps=np.zeros(tasks), task_bytes=0, shared_bytes=0, output_bytes=0
    )
    try:
        client.begin(nothing, check=False)
        rows = []
        deadline = time.monotonic() + plan.start_timeout
        while not client.finished and time.monotonic() < deadline:
            rows += client.take(GLANCE)
    finally:
        client.close(_CLOSING)
    if not rows:
        return None
    return (max(row.retrieve for row in rows) - min(row.submit for row in rows)) / len(rows)
