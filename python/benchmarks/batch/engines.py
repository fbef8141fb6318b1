"""Any engine of gridbench on its cluster: how long it takes to start, and then for many tasks."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from benchmarks.figures import AreaCase, Values
from benchmarks.launch import launch_with_benchmarks
from gridbench.bench.client import LimitReached
from gridbench.engines.environments import environment
from gridbench.engines.registry import find_engine, installed_engines, make_engine
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.process.leftovers import Leftovers
from gridbench_testbed.batch import slurm
from gridbench_testbed.links.network import uninterrupted

ON_SLURM = ("emulated-slurm-dask", "emulated-slurm-hyperqueue")
"""Other engines that Slurm starts the workers of."""
AGAIN = ", again"
LIMIT = 60.0
"""Seconds for a run of one engine, from the start of its batch system on."""
_HOSTS = 60.0  # seconds more for the batch system to go
_GRACE = 20.0  # seconds for an engine to tell how far it came, and to take down what it has made
_EACH_PROCESSOR = 12


def few_of(workers: int) -> int:
    """How many workers other engines are measured with, of `workers`.

    Their workers and tasks are Python processes, each of which takes a second of a processor and
    more to start, and some of them a part of one while they wait: a hundred are not to be had on
    few processors.
    """
    return min(workers, _EACH_PROCESSOR * (os.cpu_count() or 1))


def peers_on_slurm() -> tuple[str, ...]:
    """Those of them that this gridbench has drivers for."""
    known = installed_engines()
    return tuple(name for name in ON_SLURM if name in known)


def on_cluster(engine: str, workers: int, tasks: int, seconds: float, limit: float) -> Values:
    """What the engine's client (clusters/on_batch.py) finds within `limit` seconds.

    Raises LimitReached if it does not end by then, which tells how far it came.
    """
    name = engine.removesuffix(AGAIN)
    launch = launch_with_benchmarks(name)
    job = {"place": find_engine(name).value, "workers": workers, "tasks": tasks, "seconds": seconds}
    words = [*launch.command, "-m", "benchmarks.clusters.on_batch", json.dumps(job)]
    with Leftovers() as leftovers, tempfile.TemporaryFile("w+") as errors:
        started = subprocess.Popen(
            words,
            env=launch.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            output, _ = started.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise LimitReached(f"did not end in {as_given(limit)}{_how_far(started)}") from None
        finally:
            with uninterrupted():
                _tell_to_end(started)
                leftovers.end(started, patience=5.0)
        errors.seek(0)
        if started.returncode != 0:
            lines = [line.strip() for line in errors.read().splitlines() if line.strip()]
            raise RuntimeError(f"ended with {started.returncode}: {' / '.join(lines[-4:])}")
    values: Values = _last_line(output)
    return values


def _how_far(client: subprocess.Popen[bytes]) -> str:
    """End the client; what it says of how far it came."""
    client.terminate()
    try:
        output, _ = client.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        return ", and did not say how far it came"
    return f": {_last_line(output)['came']}" if output else ""


def _last_line(output: bytes) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(output.decode().splitlines()[-1])
    return values


def _tell_to_end(client: subprocess.Popen[bytes]) -> None:
    """Have the client cancel its jobs and end its batch system, if it still runs."""
    if client.poll() is None:
        client.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.communicate(timeout=_GRACE)


def lacks(engine: str) -> str:
    """What there is not that the engine needs here, and how to get it; empty if all is there."""
    name = engine.removesuffix(AGAIN)
    own = environment(name)
    try:
        if own is None:
            make_engine(find_engine(name))
        else:
            own.require()
    except InputError as error:
        return str(error)
    return slurm.why_not() if name in ON_SLURM else ""


def cases_of(
    engines: Sequence[str],
    workers: int,
    *,
    tasks: int,
    seconds: float,
    limit: float = LIMIT,
    prefix: str = "",
) -> list[AreaCase]:
    """One for each engine; a name that ends with `AGAIN` is that engine once more."""
    return [
        AreaCase(prefix + engine, on_cluster, {
                "engine": engine, "workers": workers, "tasks": tasks, "seconds": seconds,
                "limit": limit,
            }, missing=lacks(engine), most_runs=5, timeout=limit + _HOSTS)
        for engine in engines
    ]  # fmt: skip
