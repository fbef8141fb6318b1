"""Native workers that Slurm starts, and how long it takes until all of them have done a task."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from gridbench.engines.gridrpc_batch import divided
from gridbench.native import module
from gridbench_testbed.batch.slurm import Slurm
from gridrpc import Grid

NODES = 4
PATIENCE = 300.0  # seconds for workers to come
_TASK = 0.02  # seconds


@contextmanager
def slurm_for(workers: int) -> Iterator[Slurm]:
    """A Slurm with so many processors, which commands of this process use."""
    nodes, each = divided(workers, NODES)
    with Slurm(nodes=nodes, processors=each) as rig:
        os.environ.update(rig.variables)
        yield rig


def one_request(workers: int, request: str, staging: str | Path = "") -> list[str]:
    """All workers from one request, spread over the nodes."""
    nodes, each = divided(workers, NODES)
    return [_server("cluster", nodes, each, request, staging)]


def one_each(workers: int, staging: str | Path = "") -> list[str]:
    """A request for each worker."""
    return [_server(f"w{number}", 1, 1, "array", staging) for number in range(workers)]


def _server(name: str, nodes: int, workers: int, request: str, staging: str | Path) -> str:
    keys = {"nodes": nodes, "workers": workers, "request": request, "start_timeout": PATIENCE}
    if staging:
        keys["staging"] = os.fspath(staging)
    return f"slurm://{name}?{urlencode(keys, quote_via=quote)}"


def until_all_worked(rig: Slurm, servers: Sequence[str], workers: int) -> float:
    """Seconds from nothing until each worker has done a task of 20 ms. No job is left then.

    Shorter ones would be done by the first workers before the last have one. Where that happens
    nevertheless, as the machine is busy, tasks twice as long follow until each worker has had one.
    """
    begin = time.perf_counter()
    with Grid(servers=servers, worker="native", modules=[module()]) as grid:
        if grid.workers != workers:
            raise RuntimeError(f"the servers have {grid.workers} workers, not {workers}")
        grid.wait_until_ready(PATIENCE)
        sleep = grid.function("gridbench_tasks/sleep")
        seen: set[int] = set()
        length = _TASK
        while len(seen) < workers:
            calls = [sleep.submit(length) for _ in range(workers)]
            for call in calls:
                call.result()
            # All nodes are this machine.
            seen |= {call.profile.pid for call in calls}
            length *= 2
        seconds = time.perf_counter() - begin
    rig.cancel_all()
    return seconds
