"""Figures of docs/placement.md are those of the simulation."""

from __future__ import annotations

import re

from blocks import ROOT

from gridbench.formats import duration
from gridbench.placement.comparison import geometric
from gridbench.placement.record import POLICIES, ServerPolicy
from gridbench.placement.scenario import DEFAULT_SCENARIO
from gridbench.placement.simulation import planned_calls, simulate

PAGE = (ROOT / "docs/placement.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| ([\d,]+) \| ([\d,]+) \| (\d+) s \| (.*) \|$", re.MULTILINE)


def test_the_table_of_response_times_is_what_is_simulated() -> None:
    (head,) = re.findall(r"^\| servers \| clients \| interval \| (.*) \|$", PAGE, re.MULTILINE)
    policies: list[ServerPolicy] = [one for one in head.split(" | ") if one in POLICIES]
    assert len(policies) == 5
    rows = _ROW.findall(PAGE)
    assert len(rows) == 12
    for servers, clients, interval, cells in rows:
        scaled = DEFAULT_SCENARIO.scaled(*(int(one.replace(",", "")) for one in (servers, clients)))
        scenario = scaled.with_workload(load=0.6, duration=20.0).with_interval(float(interval))
        found: dict[ServerPolicy, list[float]] = {policy: [] for policy in policies}
        for seed in range(1, 6):
            plan = planned_calls(scenario, seed)
            for policy, means in found.items():
                means.append(simulate(scenario, policy, seed, plan=plan).totals.mean)
        times = {policy: geometric(means).value for policy, means in found.items()}
        best = min(times, key=lambda policy: times[policy])
        reported = [
            f"**{duration(times[one])}**" if one == best else duration(times[one])
            for one in policies
        ]
        assert cells.split(" | ") == reported
