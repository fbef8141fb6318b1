"""The benchmark of synchronised tasks: each part measures all that it shows, with small numbers."""

from __future__ import annotations

import pytest

from benchmarks import sync_instants as instants
from benchmarks.figures import Extent
from benchmarks.measuring import measure
from benchmarks.runner import AREAS
from benchmarks.sync_instants import workers_at
from gridbench.bench.points import Points
from quiet import as_if_quiet
from running import Run


@pytest.mark.parametrize("part", AREAS["sync"])
def test_every_row_of_a_part_is_measured(part: str) -> None:
    area = AREAS["sync"][part](Extent.TRIAL)
    if missing := {case.missing for case in area.cases if case.missing}:
        pytest.skip("; ".join(sorted(missing)))
    samples = Points()
    measure(area, 1, samples)
    samples = as_if_quiet(samples)
    rows = area.rows(samples)
    assert [row.problems for row in rows] == [[]] * len(rows)
    assert all(row.ours.values for row in rows)
    assert any(row.what.startswith("noise") for row in rows)
    assert [row.what for row in rows if row.target is not None and row.reached is None] == []
    if area.picture is not None:
        assert "not measured" not in area.picture(samples)


def test_a_task_that_fails_is_no_figure() -> None:
    with workers_at(2) as workers, pytest.raises(RuntimeError, match=r"^1 of 2 tasks of `shell` "):
        workers.run("shell", "exit {worker}")


def test_stamps_that_are_missing_are_reported() -> None:
    first, second = 1_800_000_000_000_000_000, 1_800_000_000_500_000_000
    both = [f"[1] node1\n{first}\n{second}\n", f"{second}\n{second + 1_000_000_000}\n"]
    assert instants._apart(both, 2) == {"skew": 0.5, "span": 1.5}
    with pytest.raises(RuntimeError, match="3 tasks have printed 4 stamps"):
        instants._apart(both, 3)


def test_a_part_that_does_not_exist_is_reported(refused_benchmarks: Run) -> None:
    done = refused_benchmarks("sync", "--case", "speed")
    assert done.returncode == 2
    assert "the cases are null, hosts, simultaneity, files, gfarm, redis\n" in done.stderr
