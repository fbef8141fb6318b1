"""The data that a report's pictures are drawn from, embedded in the page once, as JSON.

A page has to stay usable and small enough to be sent, so it carries a part of many tasks, and says
so; the timeline has all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gridbench.analysis.breakdown import Distribution
from gridbench.analysis.columns import Floats, Integers, numbered, seconds
from gridbench.analysis.summary import thinned
from gridbench.report.run_analysis import BETWEEN_CLOCKS, Study, counts, label
from gridbench.timeline import SCHEMA

MOST_TASKS = 1_500
"""That a page carries, of all runs together."""
FEWEST_TASKS = 200
"""Of each run, however many there are."""
MOST_STEPS = 400
"""Of the critical path: the last ones."""
CURVE_POINTS = 1_000
OWN = "sleep"
"""The part that is no cost, and is not drawn."""
DECIMALS = 7
"""Of a second: finer than any of the stamps can be trusted."""


def page_data(studies: Sequence[Study]) -> dict[str, Any]:
    """Everything the page's script needs."""
    most = most_tasks(studies)
    return {"runs": [_run(study, most) for study in studies]}


def most_tasks(studies: Sequence[Study]) -> int:
    """How many tasks of each of these runs a page carries at most."""
    return max(FEWEST_TASKS, MOST_TASKS // max(1, len(studies)))


def _run(study: Study, most: int) -> dict[str, Any]:
    steps = thinned(study.concurrency, CURVE_POINTS)
    cost = study.cost.parts() if study.cost else {}
    return {
        "name": study.run.name,
        "engine": study.run.engine,
        "end": _number(study.end),
        "totals": list(map(_number, _totals(study))),
        "counts": bool(study.rounds.totals) if study.rounds else counts(study),
        "workers": study.run.nnodes,
        "cold": study.run.cold,
        "clock_error": study.clock_error,
        "unsure": [label(name) for name in sorted(BETWEEN_CLOCKS)],
        "running": {"time": _numbers(steps.time), "running": steps.running.tolist()},
        "cost": {label(name): _number(value) for name, value in cost.items() if name != OWN},
        "phases": {
            label(name): _number(value)
            for name, value in study.phases.means().items()
            if name != OWN
        },
        "overhead": {
            "round trip": _distribution(study.round_trip),
            "handling": _distribution(study.handling),
        },
        "lanes": list(study.lanes.names),
        "path": [
            [step.kind, int(study.lanes.lane[step.row]), _number(step.begin), _number(step.end)]
            for step in study.path[-MOST_STEPS:]
        ],
        "tasks": _tasks(study, most),
    }


def _totals(study: Study) -> tuple[float, ...]:
    """The total times of its rounds: of those that count or, if none does, of disturbed ones."""
    rounds = study.rounds
    return (rounds.totals or rounds.disturbed if rounds else ()) or (study.end,)


def _distribution(distribution: Distribution) -> dict[str, Any]:
    values, share = distribution.curve(CURVE_POINTS // 2)
    return {
        "values": _numbers(values, 9),
        "share": _numbers(share, 6),
        "figures": {name: _number(value) for name, value in distribution.figures().items()},
    }


def carried(study: Study, most: int) -> Integers:
    """The rows of the tasks that a page carries, in order: all, or `most`.

    A quarter of these are of the end of the critical path, a quarter the longest, and the rest an
    even sample of all others.
    """
    count = study.tasks
    if count <= most:
        return np.arange(count)
    taken = np.zeros(count, dtype=np.bool_)
    path = dict.fromkeys(step.row for step in reversed(study.path))
    taken[list(path)[: most // 4]] = True
    table = study.run.table
    length = np.nan_to_num(seconds(table, "retrieve") - seconds(table, "submit"), nan=-np.inf)
    taken[np.argsort(-length, kind="stable")[: most // 4]] = True
    others = np.flatnonzero(~taken)
    missing = most - int(taken.sum())
    taken[others[np.linspace(0, len(others) - 1, missing).round().astype(np.int64)]] = True
    return np.flatnonzero(taken)


def _tasks(study: Study, most: int) -> dict[str, Any]:
    table = study.run.table
    rows = carried(study, most)
    if len(rows) < table.num_rows:
        table = table.take(pa.array(rows))
    columns: dict[str, Any] = {}
    for field in SCHEMA:
        if pa.types.is_floating(field.type):
            columns[field.name] = _column(_numbers(seconds(table, field.name)))
        elif pa.types.is_integer(field.type):
            columns[field.name] = _column(table[field.name].to_pylist())
        else:
            words, codes = numbered(table, field.name)
            columns[field.name] = {"words": words, "codes": _column(codes.tolist())}
    return {
        "count": len(rows),
        "all": study.tasks,
        "columns": columns,
        "lane": study.lanes.lane[rows].tolist(),
        "first": (study.lanes.previous[rows] < 0).astype(int).tolist(),
        "input_begin": _numbers(study.input_begin[rows]),
    }


def _column(values: list[Any]) -> Any:
    """A column that holds one value only is that value."""
    if values and all(value == values[0] for value in values):
        return values[0]
    return values


def _numbers(values: Floats, decimals: int = DECIMALS) -> list[float | None]:
    return [v if math.isfinite(v) else None for v in np.round(values, decimals).tolist()]


def _number(value: float) -> float | None:
    return round(value, 9) if math.isfinite(value) else None
