"""Results of scenarios for tests: made by a formula, so that what they say is known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from gridbench.jsonl_store import Header
from gridbench.quantities import MB
from gridbench.scenario.grids import GridChoice, ScenarioCase, cases_of
from gridbench.scenario.results import FORM, CaseResult

START, PER_CORE, PER_TASK = 0.5, 0.01, 0.001
RATE = 100 * MB
"""Bytes per second, of all transfers together."""


def header_of(scenario: int, **options: object) -> Header:
    """What results of a scenario at full times have in common."""
    known = {
        "scenario": scenario, "time_scale": 1.0, "stddev": 0.0, "stddev_share": 0.0, "seed": 1,
        "split_data": False, "nodes": 1, "link_rate": None, "start": "cold",
    }  # fmt: skip
    return Header(
        machine={"host": "here", "cores": 2, "cores_usable": 2},
        versions={"python": "3.11"},
        options=known | options,
        started="2031-01-01T00:00:00+0000",
        seed=1,
    )


def result_of(
    case: ScenarioCase, engine: str = "gridrpc-native", *, slower: float = 1.0
) -> CaseResult:
    """One case: starting, tasks and data follow each other, and nothing overlaps."""
    start = (START + PER_CORE * case.cores) * slower
    shared = case.cores * case.bytes_shared / RATE * slower
    first = case.cores * case.bytes_in / RATE * slower
    data = case.tasks * (case.bytes_in + case.bytes_out) / RATE * slower
    ideal = math.ceil(case.tasks / case.cores) * case.sleep
    back = case.cores * case.bytes_out / RATE * slower
    return CaseResult(
        scenario=case.scenario, case=case.key, engine=engine, cores=case.cores, tasks=case.tasks,
        sleep_s=case.sleep, time_scale=1.0, bytes_in=case.bytes_in,
        bytes_shared=case.bytes_shared, bytes_out=case.bytes_out, status="done",
        total_s=ideal + start + shared + data + PER_TASK * case.tasks * slower, ideal_s=ideal,
        figures={
            "part_start_up": start + shared, "part_sleep": ideal, "first_start": start,
            "last_start": start + shared + first, "start_span": 0.01 + first,
            "return_span": 0.01 + back, "submit_step": 1e-5,
            **_pace("start_pace", case.cores, case.bytes_in),
            **_pace("return_pace", case.cores, case.bytes_out),
            "first_dispatch": start + first / 2, "later_dispatch": 1e-4 + first / 100,
            "first_return": 1e-4 + back / 2, "later_return": 1e-4, "clock_margin": 1e-6,
        },
        took_s=ideal + 2, load={"others": 0.01, "busy": 0.3, "memory_used": 1e8},
    )  # fmt: skip


def _pace(name: str, cores: int, size: int) -> dict[str, float]:
    step = 0.001 + size / RATE
    return {
        f"{name}_step": step, f"{name}_noise": step / 100, f"{name}_span": cores * step,
        f"{name}_tasks": float(cores),
    }  # fmt: skip


def all_done(scenario: int, engine: str = "gridrpc-native", **more: float) -> list[CaseResult]:
    """All cases of a scenario, each of them measured."""
    return [result_of(case, engine, **more) for case in cases_of(scenario, GridChoice())]


def results_of(scenario: int, engine: str = "gridrpc-native", **more: float) -> list[CaseResult]:
    """All cases of a scenario; the last three are invalid, skipped and failed."""
    found = all_done(scenario, engine, **more)
    missing = {"total_s": None, "figures": {}}
    found[-1] = replace(found[-1], status="failed", reason="<b>it broke</b>", **missing)  # type: ignore[arg-type]
    found[-2] = replace(found[-2], status="skipped", reason="time: too long", **missing)  # type: ignore[arg-type]
    found[-3] = replace(found[-3], status="invalid", reason="overloaded machine")
    return found


def write_folder(folder: Path, scenario: int, results: list[CaseResult]) -> Path:
    """These results as the scenario leaves them in the folder."""
    cases = FORM.open(folder, header_of(scenario), fresh=False)
    for result in results:
        cases.add(result)
    cases.close()
    return folder
