"""The benchmark of clusters: each part measures all that it shows, with few workers."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.figures import Extent
from benchmarks.measuring import measure
from benchmarks.runner import AREAS
from gridbench.bench.points import Points
from gridbench_testbed.services.mounts import NetworkFolder, why_no_network_folder
from quiet import as_if_quiet

#: Jobs that tests of their engines run, or other parts.
_ELSEWHERE = (
    "jobs, emulated-slurm-array",
    "jobs, emulated-gridengine-jobs",
    "jobs, emulated-htcondor-jobs",
)


@pytest.mark.parametrize("part", AREAS["cluster"])
def test_every_row_of_a_part_is_measured(part: str) -> None:
    area = AREAS["cluster"][part](Extent.TRIAL)
    # What engines lack that live elsewhere is for their own tests to tell.
    cases = [case for case in area.cases if not (case.missing or case.name in _ELSEWHERE)]
    if why := area.cases[0].missing:  # ours
        pytest.skip(why)
    samples = Points()
    measure(dataclasses.replace(area, cases=cases), 1, samples)
    samples = as_if_quiet(samples)
    left_out = {case.name for case in area.cases} - {case.name for case in cases}
    rows = [
        row
        for row in area.rows(samples)
        if not any(problem.partition(":")[0] in left_out for problem in row.problems)
    ]
    assert [row.problems for row in rows] == [[]] * len(rows)
    assert all(row.ours.values for row in rows)
    assert any(row.what.startswith("noise") for row in rows)
    assert [row.what for row in rows if row.target is not None and row.reached is None] == []
    if area.picture is not None:
        assert "not measured" not in area.picture(samples)


def test_a_folder_comes_over_the_network() -> None:
    if why := why_no_network_folder():
        pytest.skip(why)
    with NetworkFolder() as folder:
        assert os.path.ismount(folder.path)
        script = folder.path / "script"
        script.write_text("#!/bin/sh\necho ran\n")
        script.chmod(0o755)
        assert subprocess.run([script], capture_output=True, check=True).stdout == b"ran\n"
        # What others write is seen at once.
        code = f"open({str(script)!r}, 'w').write('#!/bin/sh\\necho again\\n')"
        subprocess.run([sys.executable, "-c", code], check=True)
        assert subprocess.run([script], capture_output=True, check=True).stdout == b"again\n"
        path = folder.path
    assert not path.exists()
    assert str(path) not in Path("/proc/mounts").read_text()
