"""What is measured of an engine's start, in the Python that it lives in."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gridbench.bench.client import Client
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
    client = Client(name=engine, place=place, workers=workers, budget=0.0, patience=LIMIT)
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
    script = Path(__file__).parent / "plain" / f"{engine}-start.py"
    # Engines leave files where they live. A short name, as Ray has sockets far below it.
    with tempfile.TemporaryDirectory(prefix="gb-", ignore_cleanup_errors=True) as folder:
        # Programs of its own are found by an engine as in an environment that was activated.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        places = dict.fromkeys(("HOME", "TMPDIR", "RAY_TMPDIR"), folder) | {"PATH": path}
        ended = subprocess.run(
            [sys.executable, str(script), str(workers), str(seconds)],
            env=os.environ | places | MPI_SETTINGS, cwd=folder,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if ended.returncode != 0:
        lines = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
        raise RuntimeError(f"its script ended with {ended.returncode}: {' / '.join(lines[-3:])}")
    return {"seconds": float(ended.stdout.splitlines()[-1])}
