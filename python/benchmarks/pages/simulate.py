"""What simulations take, and the pipeline model beside SimGrid on the same cases.

The cases of both are tasks of 1 MB over one link of 1 Gbit/s, ten for each core, uneven times;
time, memory and stamps are compared. Large grids are simulated by `gridbench simulate` alone, and
kept as JSON. A simulation that takes longer than it may is ended, and shown as such.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from gridbench.model.pipeline import Link, PipelineCase, PipelineParameters, Sharing, evaluate
from gridbench.run.machine import machine_facts

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "gridbench"))

import simgrid_farm  # noqa: E402

SHARINGS: tuple[Sharing, ...] = ("in turn", "evenly")
LARGE = {"symphony": False, "ninfg": False, "gridrpc": True}
"""Profiles of which a large grid is simulated, and whether its folder is written as well."""


@dataclass(frozen=True, slots=True)
class Took:
    """What a process and those below it took."""

    processor: float
    """Seconds."""
    elapsed: float
    """Seconds."""
    memory: float
    """The peak of one process, MB."""


def main() -> None:
    """Print tables, and keep the values of large grids."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages.simulate", description=__doc__
    )
    parser.add_argument("--cores", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--large", type=int, default=100_000, help="cores of large grids")
    parser.add_argument("--out", type=Path, help="keeps what large grids took as JSON")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each simulation")
    chosen = parser.parse_args()
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


if __name__ == "__main__":
    main()
