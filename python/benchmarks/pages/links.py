"""What links of several rates carry on this machine. Needs root and iproute2; takes
two minutes."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from gridbench.atomic_write import write_file
from gridbench.run.machine import machine_facts, versions

ROOT = Path(__file__).resolve().parents[3]

RATES = ("10mbit", "100mbit", "1gbit", "2gbit", "5gbit", "10gbit")
SECONDS = 0.8


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages.links", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="[default: 3]")
    chosen = parser.parse_args()
    rounds = [[measured(rate) for rate in RATES] for _ in range(chosen.rounds)]
    found = {
        "machine": machine_facts(),
        "versions": versions(),
        "seconds": SECONDS,
        "rounds": rounds,
    }
    write_file(chosen.out, json.dumps(found, indent=1) + "\n")


def measured(rate: str) -> object:
    """What `gridbench links` says of two nodes behind links of that rate."""
    print(f"two nodes, {rate}", file=sys.stderr)
    command = ["links", "--nodes", "2", "--link", rate, "--seconds", str(SECONDS), "--json", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "gridbench", *command], stdout=subprocess.PIPE, check=True, cwd=ROOT
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
