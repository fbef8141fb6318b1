"""Some short runs of an engine, chosen for a work, and the model that follows from them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console

from gridbench.advise.runs import SCENARIO, Runs
from gridbench.advise.work import Work
from gridbench.errors import BusyMachine, InputError
from gridbench.machine.policy import Policy
from gridbench.machine.words import disturbed_count, no_claim, remedy, sentence
from gridbench.model.command import model_of
from gridbench.model.model import Model
from gridbench.model.observation import Observation, observe
from gridbench.progress import Steps
from gridbench.run.participants import find_participant
from gridbench.scenario.grids import Case

_MOST_CORES = 400
"""That are tried on the way to advice; more are extrapolated, and that is said."""
_LONG, _SHORT = 0.05, 0.002
"""Seconds of a task: longer than handling all, and shorter."""
_MOST_TASKS = 1000
_MOST_BYTES = 200 * 2**20
"""Data that a run moves."""
_LEAST_BYTES = 4096
_LIMIT = 60.0
"""Seconds that a run may take."""


def calibrate(engine: str, work: Work, console: Console, policy: Policy) -> Model:
    """Run the engine on this machine and fit its model: about one second for each run.

    Runs that other programs disturbed do not go into the fit; where most are, and the user accepts
    that, all do, and the model says so. Raises BusyMachine if that is not accepted, InputError if
    the engine cannot be used or if too many of the runs fail.
    """
    participant = find_participant(engine)
    cases = list(dict.fromkeys(calibrating(work)))
    console.print(f"calibrating {participant.name}: {len(cases)} short runs")
    facts = participant.facts(max(case.cores for case in cases), warm=work.warm)
    found: list[Observation] = []
    problems: list[str] = []
    progress = Steps(console, "calibrating: run", len(cases))
    disturbed: list[Observation] = []
    with Runs(engine, warm=work.warm, progress=progress) as runs:
        for case in cases:
            ran = runs.run(case, facts=facts, limit=_LIMIT)
            one = ran.problem or observe(ran.folder, disturbed=ran.disturbed)
            if isinstance(one, Observation):
                (disturbed if ran.disturbed else found).append(one)
            else:
                problems.append(f"{case.told()}: {one}")
    for problem in problems:
        console.print(f"a run was left out: {problem}", soft_wrap=True, markup=False)
    if not found and not disturbed:
        raise InputError(
            f"the engine `{engine}` could not be calibrated: {problems[0]}",
            remedy="try it with `gridbench run examples/compute/setup.xml`",
        )
    if not disturbed:
        return _fitted(participant.name, found, console)
    count = disturbed_count(len(disturbed), len(found) + len(disturbed), "calibrating runs")
    console.print(sentence(count), soft_wrap=True, markup=False)
    if len(disturbed) <= len(found):
        # Where the others are too few to fit a model to, most might as well be disturbed.
        with contextlib.suppress(InputError):
            return _fitted(participant.name, found, console)
    if not policy.accept:
        raise BusyMachine(no_claim(count), remedy=remedy())
    model = _fitted(participant.name, found + disturbed, console)
    return replace(model, disturbed=len(disturbed))


def _fitted(engine: str, found: list[Observation], console: Console) -> Model:
    console.print(f"{engine}: fitting a model to {len(found)} runs")
    return model_of(found, test=False)


def calibrating(work: Work) -> Iterator[Case]:
    """Cases that determine the terms that the work touches, around its sizes."""
    most = min(work.cores, _MOST_CORES)
    few = max(1, most // 16)
    some = max(few + 1, most // 4)
    many = max(some + 1, most)
    for cores in (few, some, many):
        yield _case(cores, cores, _LONG)
        yield _case(cores, 2 * cores, _LONG)
        yield _case(cores, 2 * cores, _SHORT)
        yield _case(cores, max(3 * cores, min(6 * cores, _MOST_TASKS)), _SHORT)
    yield _case(many, 1, _LONG)
    yield _case(few, 30 * few, _SHORT)
    # As many as the answer may have.
    yield _case(some, _MOST_TASKS, _SHORT)
    yield _case(many, _MOST_TASKS, _SHORT)
    # Of each task, if the work was divided among all cores.
    task_in = work.bytes_in / most + work.bytes_in_each
    task_out = work.bytes_out / most + work.bytes_out_each
    # What each task gets may be better shared, and what is shared may be better sent with tasks.
    shared = max(work.bytes_shared, work.bytes_in_each)
    task_in = max(task_in, work.bytes_shared)
    for cores, blocks, factor in ((many, 1, 1.0), (some, 2, 0.5), (few, 2, 4.0), (some, 1, 2.0)):
        tasks = cores * blocks
        if task_in:
            yield _case(cores, tasks, _LONG, bytes_in=_fit(task_in * factor, tasks))
        if task_out:
            yield _case(cores, tasks, _LONG, bytes_out=_fit(task_out * factor, tasks))
        if shared:
            yield _case(cores, tasks, _LONG, bytes_shared=_fit(shared * factor, 1))
    # All of it among as many tasks as the answer may have.
    in_many = _fit(work.bytes_in / _MOST_TASKS + work.bytes_in_each, _MOST_TASKS)
    out_of_many = _fit(work.bytes_out / _MOST_TASKS + work.bytes_out_each, _MOST_TASKS)
    if in_many or out_of_many:
        yield _case(many, _MOST_TASKS, _SHORT, bytes_in=in_many, bytes_out=out_of_many)


def _case(
    cores: int,
    tasks: int,
    sleep: float,
    *,
    bytes_in: int = 0,
    bytes_shared: int = 0,
    bytes_out: int = 0,
) -> Case:
    return Case(
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
