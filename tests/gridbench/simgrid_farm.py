"""The pipeline model's cases in SimGrid: compiling simgrid/farm.cpp, and running it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from gridbench.model.pipeline import PipelineCase, PipelineParameters, Stamps

SOURCE = Path(__file__).parent / "simgrid" / "farm.cpp"
# Links with the rates that they are given, whatever TCP makes of them; and small stacks, as there
# may be many workers.
_OPTIONS = (
    "--cfg=network/model:CM02",
    "--cfg=network/bandwidth-factor:1",
    "--cfg=network/latency-factor:1",
    "--cfg=network/weight-S:0",
    "--cfg=network/TCP-gamma:0",
    "--cfg=network/crosstraffic:0",
    "--cfg=contexts/factory:raw",
    "--cfg=contexts/stack-size:16",
    "--cfg=contexts/guard-size:0",
    "--log=root.thres:warning",
)


def compile_farm(folder: Path) -> Path:
    """The program. CalledProcessError if SimGrid is not there: `make simgrid` installs it."""
    program = folder / "farm"
    command = ["g++", "-O2", "-std=c++17", str(SOURCE), "-o", str(program), "-lsimgrid"]
    subprocess.run(command, check=True)
    return program


def command(
    program: Path, folder: Path, case: PipelineCase, parameters: PipelineParameters
) -> list[str]:
    """What runs a case; its inputs are written to `folder`, and its stamps will be there."""
    case.sleep.tofile(folder / "times")
    case.ready.tofile(folder / "ready")
    sharing = "turn" if parameters.to_workers.sharing == "in turn" else "evenly"
    rates = [parameters.to_workers.rate, parameters.from_workers.rate]
    if manager := parameters.manager:
        rates += [manager.inward.rate, manager.outward.rate]
    files = [str(folder / name) for name in ("times", "ready", "stamps")]
    sizes = [f"{case.bytes_in:.0f}", f"{case.bytes_out:.0f}"]
    return [str(program), *files, sharing, *sizes, *(f"{rate:.17g}" for rate in rates), *_OPTIONS]


def stamps(folder: Path) -> Stamps:
    """What it has written; when data was sent, and which worker did what, is not among it."""
    found = np.fromfile(folder / "stamps").reshape(-1, 4)
    submit, calc_in, calc_out, retrieve = found.T
    unknown = np.full(len(found), np.nan)
    return Stamps(submit, unknown, calc_in, calc_out, retrieve, np.full(len(found), -1))


def largest_difference(one: Stamps, other: Stamps) -> float:
    """Between the same stamps of two runs, seconds."""
    names = ("submit", "calc_in", "calc_out", "retrieve")
    return max(float(np.abs(getattr(one, n) - getattr(other, n)).max()) for n in names)
