"""Real runs of gridrpc-native on this machine, beside simulated ones.

Tasks sleep for 0.01 s to 3 s, 1 to 100 of them for each of 1 to 400 workers, with cold and warm
starts. All are compared with the profile that is built in; those with more workers than the others,
with a model that is fitted to the others. Takes about three minutes, on a machine that nobody else
uses: what others disturb is run again, up to three times.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

from gridbench.run.machine import machine_facts

WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 400)
EACH = ((1, 3.0), (3, 1.0), (10, 0.1), (100, 0.01))
"""Tasks of each worker, and their seconds."""
FITTED_TO = 200
"""The most workers of runs to which a model is fitted."""
TRIES = 3

SETUP = """\
<BenchmarkSetup>
<NTasks> {tasks} </NTasks>
<NNodes> {workers} </NNodes>
<InputFile> seconds </InputFile>
<TaskDataSize> 0 </TaskDataSize>
<SharedDataSize> 0 </SharedDataSize>
<WriteDataSize> 0 </WriteDataSize>
</BenchmarkSetup>
"""


def main() -> None:
    """Run and compare all, and keep the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages.simulated_runs", description=__doc__
    )
    parser.add_argument("--out", type=Path, help="keeps the figures as JSON")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        fitted, further = Path(name, "fitted"), Path(name, "further")
        for number, (workers, (each, seconds)) in enumerate(product(WORKERS, EACH)):
            start = ("cold", "warm")[(number + number // len(EACH)) % 2]
            folder = fitted if workers <= FITTED_TO else further
            told = f"{workers} workers, each {each} x {seconds} s, {start}"
            print(told, flush=True)
            if not measured(workers, each, seconds, start, folder / told):
                print(f"{told}: disturbed {TRIES} times, left out", file=sys.stderr)
        model = Path(name, "model.json")
        output_of("model", str(fitted), "--no-test", "--out", str(model), "-q")
        kept: dict[str, Any] = {
            "machine": machine_facts(),
            "fitted to at most": FITTED_TO,
            "built in": compared(Path(name)),
            "fitted": compared(further, "--profile", str(model)),
        }
    for way in ("built in", "fitted"):
        print(way, kept[way]["errors"])
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def measured(workers: int, each: int, seconds: float, start: str, folder: Path) -> bool:
    """Whether nobody disturbed it; the folder then has the run."""
    with tempfile.TemporaryDirectory() as name:
        setup, tasks = Path(name, "setup.xml"), workers * each
        setup.write_text(SETUP.format(tasks=tasks, workers=workers), encoding="ascii")
        Path(name, "seconds").write_text(f"{seconds}\n" * tasks, encoding="ascii")
        for _ in range(TRIES):
            shutil.rmtree(folder, ignore_errors=True)
            command = ["run", str(setup), "--start", start, "--no-check", "--wait-for-quiet=120"]
            ended = gridbench(*command, "--out", str(folder), "-q")
            if ended.returncode == 0:
                return True
            if ended.returncode != 3:
                sys.exit(ended.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    return False


def compared(folder: Path, *profile: str) -> dict[str, Any]:
    """Totals of the runs in a folder, measured and simulated, and their errors."""
    (found,) = json.loads(output_of("simulate", "--against", str(folder), *profile, "--json"))
    return dict(found)


def output_of(*arguments: str) -> str:
    """What gridbench prints; if it fails, this ends with its words."""
    ended = gridbench(*arguments)
    if ended.returncode:
        sys.exit(ended.stderr)
    return ended.stdout


def gridbench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of it."""
    command = [sys.executable, "-m", "gridbench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    main()
