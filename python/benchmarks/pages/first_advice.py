"""How long `gridbench advise` takes without a model that was kept.

It is asked for each of twelve jobs three times, half of them with data: 0.5 s to 100 s of work on 2
to 100 cores. Kept are the seconds of each call, and the intervals of its answer. Takes about three
minutes, on a machine that nobody else uses.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from benchmarks.runner import save_record
from gridbench.errors import InputError
from gridbench.machine.policy import WAIT, Policy
from gridbench.machine.quiet import settle
from gridbench.run.machine import machine_facts, versions

ROOT = Path(__file__).resolve().parents[3]

WORKS = ("0.5s --cores 2", "2s --cores 10", "10s --cores 50", "20s --cores 100", "60s --cores 20",
         "100s --cores 2")  # fmt: skip
DATA = ("--input 100MB", "--input-per-task 1MB", "--input 20MB --shared 5MB")
TIMES = 3


def main() -> int:
    """Measure, keep all of it, print what it took."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages.first_advice", description=__doc__
    )
    parser.add_argument("--out", type=Path, help="keep all values as JSON")
    parser.add_argument(
        "--accept-load",
        action="store_true",
        default=bool(os.environ.get("GRIDBENCH_ACCEPT_LOAD")),
        help="measure although other programs use the machine",
    )
    chosen = parser.parse_args()
    policy = Policy(accept=chosen.accept_load, wait=0.0 if chosen.accept_load else WAIT)
    console = Console(stderr=True, highlight=False)
    record: dict[str, Any] = {
        "machine": machine_facts(),
        "versions": versions(),
        "complete": False,
        "jobs": [],
    }
    save_record(chosen.out, record)  # a file that cannot be written is told before the work
    jobs = [
        *(f"--work {work}" for work in WORKS),
        *(f"--work {work} {DATA[number % len(DATA)]}" for number, work in enumerate(WORKS)),
    ]
    for job in jobs:
        found = [asked(job, policy, console) for _ in range(TIMES)]
        record["jobs"].append({"options": job, "answers": found})
        save_record(chosen.out, record)
        took = ", ".join(f"{one['seconds']:.2f} s" for one in found)
        print(f"{job}: {took}", flush=True)
    save_record(chosen.out, record | {"complete": True})
    for what, some in (("without data", jobs[: len(WORKS)]), ("with data", jobs[len(WORKS) :])):
        each = [
            one["seconds"]
            for job in record["jobs"]
            if job["options"] in some
            for one in job["answers"]
        ]
        print(f"{what}: {median(each):.1f} s, {min(each):.1f} to {max(each):.1f}")
    return 0


def asked(job: str, policy: Policy, console: Console) -> dict[str, Any]:
    """One call: its seconds, and the interval of the expected total."""
    settle(policy, console)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gridbench", "advise", *job.split()]
        accept = ["--accept-load"] if policy.accept else []
        begin = time.monotonic()
        ran = subprocess.run(
            [*command, "--task", "sleep", "--renew", "--json", "-q", *accept, "--out", folder],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        took = time.monotonic() - begin
    if ran.returncode:
        raise InputError(f"`gridbench advise {job}` has failed", remedy="see above")
    expected = json.loads(ran.stdout)["expected"]
    return {"seconds": took} | {name: expected[name] for name in ("low", "total", "high")}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        print(f"bench-first-advice: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
