"""Area `starts`: how long engines take to start, in gridbench and in a plain script of ten lines.

An engine that starts more slowly in gridbench than its users know it would be compared unfairly.
plain_starts.py starts each engine in its usual way, and has as many tasks done on as many workers.
It imports the engine before the clock starts, as gridbench does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import plain_starts
from benchmarks.figures import Area, AreaCase, Extent, PlannedRow, Target
from benchmarks.plain_starts import STARTS
from gridbench.bench.client import EngineClient
from gridbench.engines.environments import environment
from gridbench.engines.registry import find_engine
from gridbench.formats import as_given
from gridbench.workload.calls import stand

LIMIT = 180.0
"""Seconds for an engine to start, do its tasks and end."""
MPI_SETTINGS = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # more workers than processors
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
"""What users of Open MPI set in a shell, or pass to mpiexec."""


def in_gridbench(engine: str, place: str, workers: int, seconds: float) -> dict[str, float]:
    """Seconds from nothing but the imported driver (`place`) until as many tasks as workers are
    done."""
    client = EngineClient(name=engine, place=place, workers=workers, budget=0.0, patience=LIMIT)
    driver = client.make()
    driver.prepare(workers)
    begin = time.monotonic()
    driver.start(workers)
    driver.gather([driver.call(stand, seconds) for _ in range(workers)])
    passed = time.monotonic() - begin
    client.close()
    return {"seconds": passed}


def in_a_script(engine: str, workers: int, seconds: float) -> dict[str, float]:
    """What the engine's plain script prints: seconds for the same."""
    # Engines leave files where they live. A short name, as Ray has sockets far below it.
    with tempfile.TemporaryDirectory(prefix="gb-", ignore_cleanup_errors=True) as folder:
        # Programs of its own are found by an engine as in an environment that was activated.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        places = dict.fromkeys(("HOME", "TMPDIR", "RAY_TMPDIR"), folder) | {"PATH": path}
        ended = subprocess.run(
            [sys.executable, plain_starts.__file__, engine, str(workers), str(seconds)],
            env=os.environ | places | MPI_SETTINGS, cwd=folder,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if ended.returncode != 0:
        lines = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
        raise RuntimeError(f"its script ended with {ended.returncode}: {' / '.join(lines[-3:])}")
    return {"seconds": float(ended.stdout.splitlines()[-1])}


_WORKERS = {Extent.TRIAL: 2, Extent.USUAL: 16, Extent.FULL: 16}
_SECONDS = 0.1
_BOUND = 1.1
"""How many times the script's seconds an engine may take in gridbench."""


def area(extent: Extent) -> Area:
    """Engines that are not installed are left out."""
    here = [name for name in sorted(STARTS) if _is_here(name)]
    return area_of(here, _WORKERS[extent], runs=None if extent is Extent.FULL else 3)


def area_of(names: Sequence[str], workers: int, *, runs: int | None) -> Area:
    """These engines, with so many workers and tasks."""
    cases, rows = [], []
    for engine in names:
        ours, script = (
            AreaCase(
                f"start of {engine}, {way}", function,
                {"engine": engine, "workers": workers, "seconds": _SECONDS} | more,
                python_of=engine, most_runs=runs, timeout=LIMIT,
            )
            for way, function, more in (
                ("gridbench", in_gridbench, {"place": find_engine(engine).value}),
                ("script", in_a_script, {}),
            )
        )  # fmt: skip
        cases += [ours, script]
        bound, peer = Target(_BOUND, of_peer=True), script["seconds"]
        rows.append(PlannedRow(engine, "s", ours["seconds"], peer=peer, target=bound))
    title = (
        f"Engines in gridbench: from nothing until {workers} workers have done a task of"
        f" {as_given(_SECONDS)} each; peer: a plain script of ten lines"
    )
    return Area("starts", title, cases, rows)


def _is_here(engine: str) -> bool:
    own = environment(engine)
    return own is None or own.state().kind == "installed"
