"""Asking a driver, in the Python that its engine lives in, what the engine is not made for.

    python -m gridbench.micro.probe MODULE:CLASS

prints it as JSON. Drivers import their engines, which cannot all be imported here.
"""

from __future__ import annotations

import json
import subprocess
import sys

from gridbench.bench.client import Client, NotStarted
from gridbench.formats import as_given
from gridbench.process.launch import Launch

_PATIENCE = 60.0  # seconds for an engine to be imported


class ProbeFailed(Exception):
    """The engine cannot be loaded, and why."""


def asked(place: str, launch: Launch) -> dict[str, str]:
    """What the engine cannot do: reasons by workload. Raises ProbeFailed."""
    try:
        ended = subprocess.run(
            [*launch.command, "-m", "gridbench.micro.probe", place],
            env=launch.variables, capture_output=True, text=True, check=False, timeout=_PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ProbeFailed(f"could not be imported within {as_given(_PATIENCE)}") from None
    lines = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
    if ended.returncode != 0:
        raise ProbeFailed(lines[-1][:300] if lines else f"ended with {ended.returncode}")
    cannot: dict[str, str] = json.loads(ended.stdout.splitlines()[-1])
    return cannot


def main(place: str) -> None:
    """In the engine's Python."""
    client = Client(name="", place=place, workers=0, budget=0, patience=0)
    try:
        print(json.dumps(dict(client.make().cannot)))
    except NotStarted as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
