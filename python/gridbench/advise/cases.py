"""The short runs that tell how an engine does a work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gridbench.advise.runs import SCENARIO
from gridbench.advise.work import Work
from gridbench.scenario.grids import ScenarioCase

_MOST_CORES = 400
"""That are tried on the way to advice; more are extrapolated, and that is said."""
_LONG, _SHORT = 0.05, 0.002
"""Seconds of a task: longer than handling all, and shorter."""
_MOST_TASKS = 1000
_OF_MOST_TASKS = 0.125
"""Seconds that so many take without overhead, at most: beyond, a run would tell of waiting."""
_MOST_BYTES = 100 * 2**20
"""Data that a run moves."""
_LEAST_BYTES = 4096


def first_cases(work: Work, workers: int | None = None) -> list[ScenarioCase]:
    """Those without which no model can be found; `workers`: no case can have more."""
    most, few, some, many = _cores(work, workers)
    found = [
        _case(many, many, _LONG),
        # As many as the answer may have.
        _case(many, _MOST_TASKS, _shortest(many)),
        _case(few, 2 * few, _SHORT),
        _case(some, some, _LONG),
        _case(few, 30 * few, _SHORT),
        _case(some, _MOST_TASKS, _shortest(some)),
        _case(many, 1, _LONG),
    ]
    found += _with_data(work, most, ((many, 1, 1.0), (few, 2, 4.0)))
    # All of it among as many tasks as the answer may have.
    in_many = _fit(work.bytes_in / _MOST_TASKS + work.bytes_in_each, _MOST_TASKS)
    out_of_many = _fit(work.bytes_out / _MOST_TASKS + work.bytes_out_each, _MOST_TASKS)
    if in_many or out_of_many:
        sizes = {"bytes_in": in_many, "bytes_out": out_of_many}
        found.append(_case(many, _MOST_TASKS, _shortest(many), **sizes))
    return list(dict.fromkeys(found))


def calibrating(work: Work, workers: int | None = None) -> list[ScenarioCase]:
    """Cases that determine the terms that the work touches, around its sizes; the first first.
    `workers`: no case can have more."""
    most, few, some, many = _cores(work, workers)
    found = first_cases(work, workers)
    for cores in (few, some, many):
        found += [
            _case(cores, cores, _LONG),
            _case(cores, 2 * cores, _LONG),
            _case(cores, 2 * cores, _SHORT),
            _case(cores, max(3 * cores, min(6 * cores, _MOST_TASKS)), _SHORT),
        ]
    found += _with_data(work, most, ((some, 2, 0.5), (some, 1, 2.0)))
    return list(dict.fromkeys(found))


def _shortest(cores: int) -> float:
    """Seconds of a task, of as many as the answer may have."""
    return min(_SHORT, _OF_MOST_TASKS * cores / _MOST_TASKS)


def _cores(work: Work, workers: int | None) -> tuple[int, int, int, int]:
    """As many as are tried at most; and three numbers up to these, or a little more, as far as
    there are so many workers."""
    most = min(work.cores, _MOST_CORES)
    few = max(1, most // 16)
    some = max(few + 1, most // 4)
    many = max(some + 1, most)
    if workers is None:
        return most, few, some, many
    return most, few, min(some, workers), min(many, workers)


def _with_data(
    work: Work, most: int, how: Sequence[tuple[int, int, float]]
) -> Iterator[ScenarioCase]:
    """For numbers of cores, tasks for each, and factors of sizes: a case for each kind of data."""
    # Of each task, if the work was divided among all cores.
    task_in = work.bytes_in / most + work.bytes_in_each
    task_out = work.bytes_out / most + work.bytes_out_each
    # What each task gets may be better shared, and what is shared may be better sent with tasks.
    shared = max(work.bytes_shared, work.bytes_in_each)
    task_in = max(task_in, work.bytes_shared)
    for cores, blocks, factor in how:
        tasks = cores * blocks
        if task_in:
            yield _case(cores, tasks, _LONG, bytes_in=_fit(task_in * factor, tasks))
        if task_out:
            yield _case(cores, tasks, _LONG, bytes_out=_fit(task_out * factor, tasks))
        if shared:
            yield _case(cores, tasks, _LONG, bytes_shared=_fit(shared * factor, 1))


def _case(
    cores: int,
    tasks: int,
    sleep: float,
    *,
    bytes_in: int = 0,
    bytes_shared: int = 0,
    bytes_out: int = 0,
) -> ScenarioCase:
    return ScenarioCase(
        scenario=SCENARIO,
        cores=cores,
        tasks=tasks,
        sleep=sleep,
        bytes_in=bytes_in,
        bytes_shared=bytes_shared,
        bytes_out=bytes_out,
    )


def _fit(size: float, times: int) -> int:
    """Bytes that can be moved so many times in a short run; 0 if there are none."""
    if not size:
        return 0
    return round(max(_LEAST_BYTES, min(size, _MOST_BYTES / times)))
