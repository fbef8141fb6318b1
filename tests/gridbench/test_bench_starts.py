"""Engines are started by gridbench as by a plain script, and both do their tasks."""

from __future__ import annotations

from inspect import getsource

import pytest

from benchmarks.measuring import measure
from benchmarks.plain_starts import STARTS
from benchmarks.starts import area_of
from gridbench.bench.points import Points
from gridbench.engines.environments import environment


@pytest.mark.parametrize("engine", STARTS)
def test_an_engine_is_started_by_gridbench_and_by_its_script(engine: str) -> None:
    own = environment(engine)
    assert own is None or own.state().kind == "installed"
    points = Points()
    area = area_of([engine], 2, runs=1)
    measure(area, 1, points)
    (row,) = area.rows(points)
    assert row.problems == []
    assert row.peer is not None
    # A task sleeps for 0.1 s.
    assert min(row.ours.median, row.peer.median) >= 0.1


@pytest.mark.parametrize("engine", STARTS)
def test_a_script_is_short(engine: str) -> None:
    words = [line.split()[0] for line in getsource(STARTS[engine]).splitlines() if line.strip()]
    assert len([word for word in words if word not in ("def", "import", "from")]) <= 10
