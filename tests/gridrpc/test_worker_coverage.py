"""coverage.py in workers, as docs/workers.md says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from processes import LONG, environment

MODULE = """
def run(x):
    if x > 1:
        return "large"
    return "small"
"""
SCRIPT = """
import os, sys
import gridrpc, measured
with gridrpc.Grid(workers=2, start_method=sys.argv[1]) as grid:
    calls = [grid.submit(measured.run, x) for x in (1, 2)]
    print([call.result() for call in calls])
"""


@pytest.mark.parametrize("method", ["auto", "spawn"])
def test_lines_that_workers_run(tmp_path: Path, method: str) -> None:
    (tmp_path / "measured.py").write_text(MODULE)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / ".coveragerc").write_text("[run]\npatch = subprocess\ninclude = measured.py\n")

    def coverage(*arguments: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "coverage", *arguments], cwd=tmp_path, env=environment(),
            capture_output=True, text=True, timeout=LONG, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    assert coverage("run", "script.py", method) == "['small', 'large']\n"
    coverage("combine")
    coverage("json", "-o", "measured.json")
    measured = json.loads((tmp_path / "measured.json").read_text())
    assert measured["files"]["measured.py"]["missing_lines"] == []
