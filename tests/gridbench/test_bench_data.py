"""The benchmark of data grids: its tables, and that nothing is claimed of what is not steady."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import data_operations as scenarios
from benchmarks.data_operations import judged, steady
from benchmarks.figures import Area, Extent
from benchmarks.runner import AREAS
from datagrid_cases import four, windows_of
from gridbench.bench.points import DataPoint, Points
from gridbench.datagrid.record import DataGridCase, WarmUp
from gridbench.formats import amount
from gridbench.published.figures import data_grid_slides
from gridbench.quantities import parse_size
from running import REPOSITORY

RISEN = replace(four(), windows=windows_of(0.1, (2,) * 10 + (9,) * 10, (0,) * 20))
COLD = replace(four(), warm_up=WarmUp(seconds=1.0, steady=False, operations=9))
SHORT = replace(four(), windows=windows_of(0.1, (2,) * 9, (0,) * 9))


CASE = re.compile(
    r"scenario (?P<number>\d), (?P<label>\w+), (?P<members>\d+ members?),"
    r" (?P<clients>\d+ clients?), [\d,]+ tasks of (?P<made>[\d,]+) operations?, (?P<size>.+)"
)
"""What a value of the record is of."""


def rows_of(area: Area, **values: float) -> list[str]:
    """What its rows are called when its first case has these values, with the values."""
    point = DataPoint(workload=area.cases[0].name, round=0, values=values, at="2031-05-04")
    return [
        f"{row.what}: {amount(row.ours.median, 's')}" if row.ours.values else row.what
        for row in area.rows(Points([point]))
    ]


def test_each_scenario_has_a_table_of_rows_that_can_be_compared() -> None:
    areas = [AREAS["data"][f"scenario-{number}"](Extent.USUAL) for number in (1, 2, 3)]
    assert [area.part for area in areas] == ["scenario-1", "scenario-2", "scenario-3"]
    first, second, third = map(rows_of, areas)
    assert first == [
        *("read, 1 KB", "read, 100 KB", "read, 1 MB; tasks of 50", "read, 10 MB; tasks of 10"),
        *("update, 1 KB", "update, 100 KB", "update, 1 MB; tasks of 50"),
        "update, 10 MB; tasks of 10",
        *("insert, 1 KB", "insert, 100 KB", "insert, 1 MB; tasks of 20"),
        "insert, 10 MB; tasks of 2",
    ]
    assert second[:3] == ["read, 1 client", "read, 10 clients", "read, 100 clients"]
    assert third[-3:] == [
        "insert, 1 member; tasks of 500",
        "insert, 4 members",
        "insert, 8 members",
    ]
    assert "a task of 100 operations" in areas[0].title
    assert "a task of 1,000 operations" in areas[1].title


def test_several_data_grids_stand_below_each_other() -> None:
    area = scenarios.scenario_area(Extent.FULL, 2)
    assert rows_of(area)[:2] == ["read, 1 client, hazelcast", "read, 1 client, redis"]


@contextlib.contextmanager
def no_cluster(*_: Any, **__: Any) -> Iterator[Any]:
    yield SimpleNamespace(cluster=no_cluster)


def test_only_what_is_steady_has_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = iter([four(), RISEN, SHORT])
    monkeypatch.setattr(scenarios, "session_for", no_cluster)
    monkeypatch.setattr(scenarios, "measured", lambda *_: next(cases))
    found: dict[str, float] = {}
    parts = map(found.update, scenarios.run_scenario("hazelcast", 1, Extent.TRIAL.value))
    with pytest.raises(RuntimeError, match=r"^update, 1 KB: throughput rose by \d+ % from the"):
        list(parts)
    # Tasks of 20 operations, which take 0.6 s, count as those of 100 that the scenario has.
    assert rows_of(scenarios.scenario_area(Extent.TRIAL, 1), **found) == [
        "read, 1 KB; tasks of 20: 3.00 s",
        "update, 1 KB; tasks of 20",
        "insert, 1 KB (too short to judge whether it was steady); tasks of 20: 3.00 s",
    ]


@pytest.mark.parametrize("case", [RISEN, COLD])
def test_a_case_that_is_not_steady_is_no_figure(case: DataGridCase) -> None:
    with pytest.raises(RuntimeError, match=r"throughput (rose|did not become steady)"):
        steady(case)
    assert steady(four()) == four()
    assert steady(SHORT) == SHORT
    assert judged(four()) == {}
    assert len(judged(SHORT)) == 1


@pytest.mark.parametrize("part", ["driver", "latency", "omission"])
def test_figures_that_are_too_short_to_judge_are_marked(part: str) -> None:
    area = AREAS["data"][part](Extent.TRIAL)
    short = judged(SHORT) | judged(SHORT, "closed") | judged(SHORT, "service")
    marked = [what for what in rows_of(area, rate=1.0, **short) if "too short to judge" in what]
    assert marked
    assert not any("too short" in what for what in rows_of(area, rate=1.0))


def test_the_page_has_the_figures_of_its_data() -> None:
    folder = REPOSITORY / "docs"
    record = json.loads((folder / "benchmarks" / "data-scenarios.json").read_text())
    assert all(point["status"] == "ok" and not point["disturbed"] for point in record["points"])
    known: dict[tuple[str, str, str], float] = {}
    for point in record["points"]:
        for what, seconds in point["values"].items():
            found = CASE.fullmatch(what)
            assert found is not None, what
            along = {"1": found["size"], "2": found["clients"], "3": found["members"]}
            operations = 100 if found["number"] == "1" else 1000
            share = operations / int(found["made"].replace(",", ""))
            known[found["number"], along[found["number"]], found["label"]] = share * seconds
    page = (folder / "data.md").read_text()
    rows = re.findall(rf"^\| ([123]) {4 * r'[|] (.*?) '}\| ?(.*?) ?\|$", page, re.MULTILINE)
    slides = data_grid_slides()
    for number, along, *message, published in rows:
        for label, text in zip(("read", "update", "write"), message, strict=True):
            assert float(text) == pytest.approx(known.pop((number, along, label)), rel=5e-3)
        if number == "1":
            megabytes = parse_size("size", along) / 2**20
            assert float(published) == round(slides.update_time(megabytes), 1)
        elif published:
            assert float(published) == slides.unloaded.value
    assert len(rows) == 10
    assert not known
