"""How well models predict that are fitted to task logs.

Writes logs of two systems of the original benchmark by simulation, fits a model to those of each,
and keeps the errors of logs held out, and of the totals that are published. --logs: also those of
real runs. Takes some five minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.atomic_write import write_file
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel, model_of
from gridbench.model.model_kind import read_source
from gridbench.model.observation import Situation
from gridbench.model.saved import errors_of
from gridbench.published.figures import table, tasks_of
from gridbench.run.machine import machine_facts
from gridbench.simulate.profiles import system
from gridbench.simulate.simulation import SimulatedWorkload, simulate
from gridbench.simulate.timeline import table_of, write_log

MB = 2**20
PUBLISHED = {"symphony": ("5.5.6-1", "5.5.6-2"), "ninfg": ("5.5.6-3", "5.5.6-4")}
"""Totals of scenario 6: without data, and with 1 MB for each task."""
MOST = 100
"""Cores of these, and of the logs."""


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages.logs", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json")
    parser.add_argument("--logs", type=Path, nargs="+", default=[], metavar="LOG")
    parser.add_argument("--told", default="", help="in words, how the runs of these logs were made")
    chosen = parser.parse_args()
    found: dict[str, Any] = {"simulated": {name: simulated(name) for name in PUBLISHED}}
    if chosen.logs:
        model = fitted(chosen.logs)
        found["real"] = {
            "told": chosen.told,
            "machine": machine_facts(),
            "logs": model.fit.known,
            "held_out": errors(model),
        }
    write_file(chosen.out, json.dumps(found, indent=1) + "\n")


def simulated(name: str) -> dict[str, Any]:
    """Of a system's logs."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, work in enumerate(works()):
            done = simulate(work, system(name))
            paths.append(Path(folder) / f"{number}.log")
            write_log(paths[-1], done, table_of(done))
        model = fitted(paths)
    return {
        "logs": model.fit.known,
        "cores": [model.ranges.cores.low, model.ranges.cores.high],
        "held_out": errors(model),
        "published": list(totals(name, model)),
    }


def works() -> list[SimulatedWorkload]:
    """Situations that a user might have logs of."""
    found = []
    for cores in (10, 50, MOST):
        found += [
            SimulatedWorkload(cores=cores, tasks=cores * blocks, sleep=2.0) for blocks in (1, 4)
        ]
        found.append(SimulatedWorkload(cores=cores, tasks=cores * 10, sleep=0.5))
        for size, blocks, sleep in ((MB / 10, 2, 2.0), (MB, 2, 2.0), (10 * MB, 1, 20.0)):
            tasks = cores * blocks
            found.append(SimulatedWorkload(cores=cores, tasks=tasks, sleep=sleep, bytes_in=size))
            found.append(SimulatedWorkload(cores=cores, tasks=tasks, sleep=sleep, bytes_out=size))
            found.append(
                SimulatedWorkload(cores=cores, tasks=cores, sleep=sleep, bytes_shared=size)
            )
    return found


def fitted(paths: Sequence[Path]) -> PipelineModel:
    """The model of these logs. InputError if they do not do."""
    source = read_source(paths)
    if not source.observations:
        raise source.none_serves()
    return model_of(source.observations, test=True)


def errors(model: PipelineModel) -> dict[str, Any]:
    """Of the logs held out, by the way of holding them out."""
    return {one.name: errors_of(one) for one in model.held_out}


def totals(name: str, model: PipelineModel) -> list[dict[str, Any]]:
    """The published totals of the system beside those of the model."""
    rows = []
    for of, size in zip(PUBLISHED[name], (0.0, MB), strict=True):
        for row in table(of):
            tasks = int(row["tasks"])
            sleep = np.full(tasks, float(row["sleep_s"]))
            situation = Situation(cores=min(tasks, MOST), sleep=sleep, bytes_in=size)
            real, reported = float(row["total_s"]), model.total(situation)
            what = f"{tasks_of(row)}, {'1 MB' if size else 'no data'}"
            rows.append(
                {"what": what, "real": real, "model": reported, "error": reported / real - 1}
            )
    return rows


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(f"bench-logs: {error}", file=sys.stderr)
        sys.exit(2)
