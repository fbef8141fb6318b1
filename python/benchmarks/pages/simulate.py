"""Measurements behind docs/simulate-accuracy.md.

    python -m benchmarks.pages.simulate costs [--out FILE.json]
    python -m benchmarks.pages.simulate runs [--out FILE.json]

`costs` compares time, memory and stamps of the pipeline model with SimGrid's on the same cases:
tasks of 1 MB over one link of 1 Gbit/s, ten for each core, of uneven times. Large grids are
simulated by `gridbench simulate` alone. A simulation that takes too long is ended and shown so.

`runs` compares real runs of gridrpc-native on this machine with simulated ones. Tasks sleep for
0.01 s to 3 s, 1 to 100 of them for each of 1 to 400 workers, with cold and warm starts. All are
compared with the built-in profile; those with more workers than the others, with a model that is
fitted to the others. It takes about three minutes on a quiet machine; disturbed runs are repeated
up to three times.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pages.recipes import ROOT, gridbench, run
from gridbench.model.pipeline import Link, PipelineCase, PipelineParameters, Sharing, evaluate
from gridbench.run.machine import machine_facts

sys.path.insert(0, str(ROOT / "tests" / "gridbench"))

import simgrid_farm

SHARINGS: tuple[Sharing, ...] = ("in turn", "evenly")
LARGE = {"symphony": False, "ninfg": False, "gridrpc": True}
"""Profiles with a simulated large grid, and whether its folder is written as well."""


@dataclass(frozen=True, slots=True)
class Took:
    """What a process and those below it took."""

    processor: float
    """Seconds."""
    elapsed: float
    """Seconds."""
    memory: float
    """The peak of one process, MB."""


def measure_simulations(chosen: argparse.Namespace) -> None:
    """Print tables, and keep the values of large grids."""
    if chosen.cores:
        beside_simgrid(chosen.cores, chosen.limit)
    large_grids(chosen.large, chosen.limit, chosen.out)


def large_grids(cores: int, limit: float, out: Path | None) -> None:
    """What `gridbench simulate` takes for ten tasks on each of so many cores."""
    work = ["--cores", str(cores), "--tasks", str(10 * cores), "--sleep", "30", "--stddev", "3"]
    work += ["--input", "100KB"]
    found: dict[str, dict[str, float]] = {}
    print("| profile | processor, s | time, s | MB |")
    print("|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        for profile, written in LARGE.items():
            command = [sys.executable, "-m", "gridbench", "simulate", "--profile", profile, *work]
            command += ["--out", str(Path(name, profile))] if written else []
            took = measured(lambda: quietly(command), limit)  # noqa: B023 - called at once
            if took is None:
                print(f"| {profile} | ended | | |", flush=True)
                continue
            shown = f"{took.processor:.1f} | {took.elapsed:.1f} | {took.memory:.0f}"
            print(f"| {profile} | {shown} |", flush=True)
            found[profile] = {"written": written, **asdict(took)}
    if out is not None:
        record = {"machine": machine_facts(), "work": work, "profiles": found}
        out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def quietly(command: list[str]) -> None:
    """Run it without showing what it prints."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def beside_simgrid(counts: list[int], limit: float) -> None:
    """The model and SimGrid, for each number of cores."""
    print("| cores | tasks | link | model, s | MB | SimGrid, s | MB | largest difference, s |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = simgrid_farm.compile_farm(folder)
        for cores in counts:
            for sharing in SHARINGS:
                print(row(program, folder, cores, sharing, limit), flush=True)


def row(program: Path, folder: Path, cores: int, sharing: Sharing, limit: float) -> str:
    """One case, as a row of the table."""
    link = Link(rate=125e6, sharing=sharing)
    parameters = PipelineParameters(to_workers=link, from_workers=Link(rate=125e6))
    times = np.maximum(0, np.random.default_rng(1).normal(30, 3, 10 * cores))
    case = PipelineCase(times, np.zeros(cores), bytes_in=1 << 20)
    ours = measured(lambda: ours_to(folder, case, parameters), limit)
    command = simgrid_farm.command(program, folder, case, parameters)
    theirs = measured(lambda: quietly(command), limit)
    difference = "-"
    if ours and theirs:
        found = np.load(folder / "ours.npy").reshape(-1, 4)
        difference = f"{np.abs(found - np.fromfile(folder / 'stamps').reshape(-1, 4)).max():.1e}"
    return (
        f"| {cores:,} | {10 * cores:,} | {sharing} | {cell(ours)} | {cell(theirs)} | {difference} |"
    )


def ours_to(folder: Path, case: PipelineCase, parameters: PipelineParameters) -> None:
    """The model's stamps, written to a file."""
    stamps = evaluate(case, parameters)
    columns = [stamps.submit, stamps.calc_in, stamps.calc_out, stamps.retrieve]
    np.save(folder / "ours.npy", np.stack(columns, axis=1))


def measured(work: Callable[[], object], limit: float) -> Took | None:
    """What the work takes in a process of its own; None if it took too long."""
    began = time.monotonic()
    child = os.fork()
    if not child:
        # A group of its own: what it starts ends with it.
        os.setpgid(0, 0)
        work()
        os._exit(0)
    while (elapsed := time.monotonic() - began) < limit:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            if status:
                sys.exit(f"a simulation failed: status {status}")
            return Took(usage.ru_utime + usage.ru_stime, elapsed, usage.ru_maxrss / 1024)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.wait4(child, 0)
    return None


def cell(found: Took | None) -> str:
    """Time and memory."""
    return f"{found.processor:.1f} | {found.memory:.0f}" if found else "ended | "


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


def compare_runs(chosen: argparse.Namespace) -> None:
    """Run and compare all, and keep the figures."""
    with tempfile.TemporaryDirectory() as name:
        fitted, further = Path(name, "fitted"), Path(name, "further")
        for number, (workers, (each, seconds)) in enumerate(product(WORKERS, EACH)):
            start = ("cold", "warm")[(number + number // len(EACH)) % 2]
            folder = fitted if workers <= FITTED_TO else further
            text = f"{workers} workers, each {each} x {seconds} s, {start}"
            print(text, flush=True)
            if not measured_run(workers, each, seconds, start, folder / text):
                print(f"{text}: disturbed {TRIES} times, left out", file=sys.stderr)
        model = Path(name, "model.json")
        run("model", fitted, "--no-test", "--out", model, "-q", stdout=subprocess.DEVNULL)
        stored: dict[str, Any] = {
            "machine": machine_facts(),
            "fitted to at most": FITTED_TO,
            "built in": compared(Path(name)),
            "fitted": compared(further, "--profile", str(model)),
        }
    for way in ("built in", "fitted"):
        print(way, stored[way]["errors"])
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def measured_run(workers: int, each: int, seconds: float, start: str, folder: Path) -> bool:
    """Whether nobody disturbed it; the folder then has the run."""
    with tempfile.TemporaryDirectory() as name:
        setup, tasks = Path(name, "setup.xml"), workers * each
        setup.write_text(SETUP.format(tasks=tasks, workers=workers), encoding="ascii")
        Path(name, "seconds").write_text(f"{seconds}\n" * tasks, encoding="ascii")
        for _ in range(TRIES):
            shutil.rmtree(folder, ignore_errors=True)
            command = ["run", str(setup), "--start", start, "--no-check", "--wait-for-quiet=120"]
            ended = gridbench(*command, "--out", folder, "-q", capture_output=True)
            if ended.returncode == 0:
                return True
            if ended.returncode != 3:
                sys.exit(ended.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    return False


def compared(folder: Path, *profile: str) -> dict[str, Any]:
    """Totals of the runs in a folder, measured and simulated, and their errors."""
    words = ("simulate", "--against", str(folder), *profile, "--json")
    (found,) = json.loads(run(*words, stdout=subprocess.PIPE))
    return dict(found)


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages.simulate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    each = parser.add_subparsers(required=True, metavar="{costs,runs}")
    costs, runs = each.add_parser("costs"), each.add_parser("runs")
    costs.add_argument("--cores", type=int, nargs="*", default=[1_000, 10_000])
    costs.add_argument("--large", type=int, default=100_000, help="cores of large grids")
    costs.add_argument("--out", type=Path, help="keep what large grids took as JSON")
    costs.add_argument("--limit", type=float, default=300.0, help="seconds for each simulation")
    costs.set_defaults(measure=measure_simulations)
    runs.add_argument("--out", type=Path, help="keep the figures as JSON")
    runs.set_defaults(measure=compare_runs)
    chosen = parser.parse_args()
    chosen.measure(chosen)


if __name__ == "__main__":
    main()
