"""The benchmark of module functions, with small numbers."""

from __future__ import annotations

from benchmarks import modules
from benchmarks.figures import Row, Target
from benchmarks.measuring import measure
from gridbench.bench.points import DataPoint, Points
from quiet import as_if_quiet


def test_every_row_is_measured() -> None:
    area = modules.area_of(calls=50, large=3, size=800_000, order=60, sessions_of=(200, 400))
    samples = Points()
    measure(area, 1, samples)
    samples = as_if_quiet(samples)
    rows = area.rows(samples)
    assert [row.problems for row in rows] == [[]] * len(rows)
    assert all(row.ours.values for row in rows)
    descriptors = next(row for row in rows if row.what.startswith("descriptors"))
    assert descriptors.ours.median == 0
    assert descriptors.reached is True
    assert [row.what for row in rows if row.target is not None and row.reached is None] == []


def test_a_bound_on_the_ratio_to_a_limit() -> None:
    samples = Points()
    for number in range(3):
        samples.add(DataPoint(workload="ours", round=number, values={"s": 3.0 * (number + 1)}))
        samples.add(DataPoint(workload="limit", round=number, values={"s": 2.0 * (number + 1)}))
    row = Row(
        what="x",
        unit="s",
        ours=samples.of("ours", "s"),
        limit=samples.of("limit", "s"),
        target=Target(1.5, of_limit=True),
    )
    assert row.ratio_to_limit == 1.5
    assert row.reached is True
