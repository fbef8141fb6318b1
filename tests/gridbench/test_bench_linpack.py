"""The benchmark of remote Linpack: each part measures all that it shows, with small numbers."""

from __future__ import annotations

import pytest

from benchmarks import linpack
from benchmarks.figures import AreaCase, Extent
from benchmarks.measuring import measure
from benchmarks.programs import missing_engine, missing_links
from benchmarks.runner import AREAS
from gridbench.bench.points import Points
from gridbench.linpack.record import SERVERS
from quiet import as_if_quiet


def _lacks(case: AreaCase) -> bool:
    """Whether this machine lacks something for it that a user installs, or rights."""
    return case.missing in {missing_links(), missing_engine("ray-serve")} - {""}


@pytest.mark.parametrize("part", AREAS["linpack"])
def test_every_row_of_a_part_is_measured(part: str) -> None:
    area = AREAS["linpack"][part](Extent.TRIAL)
    assert [case.missing for case in area.cases if case.missing and not _lacks(case)] == []
    samples = Points()
    measure(area, 1, samples)
    samples = as_if_quiet(samples)
    absent = [case.missing for case in area.cases if case.missing]
    for row in area.rows(samples):
        problems = [one for one in row.problems if not any(why in one for why in absent)]
        if part == "model" and any("too few" in one or "overtake" in one for one in problems):
            continue  # beside other tests, times are in no order
        assert problems == []
        if row.what.endswith("calls lost"):
            assert row.ours.values == [0.0]


def test_what_has_a_target() -> None:
    targets = {
        row.what: row.target
        for part in ("loopback", "model", "clients")
        for row in AREAS["linpack"][part](Extent.FULL).table  # type: ignore[union-attr]
        if row.target is not None
    }
    bounds = sorted(target.bound for target in targets.values())
    assert bounds == [0, 0, 0, 0.03, 0.05, 0.05, 0.05, 0.10, 0.10, 0.97, 0.97, 1.05, 1.05]


def test_what_a_command_says_is_reported() -> None:
    with pytest.raises(RuntimeError, match="--sizes"):
        linpack.model_errors("none", 1)


def test_all_servers_are_measured_alike() -> None:
    area = AREAS["linpack"]["servers"](Extent.USUAL)
    arguments = [{**case.arguments, "server": ""} for case in area.cases]
    assert [case.arguments["server"] for case in area.cases] == list(SERVERS)
    assert arguments[1:] == arguments[:-1]
