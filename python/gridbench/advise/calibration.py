"""Some short runs of an engine, chosen for a work, and the model that follows from them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace

from rich.console import Console

from gridbench.advise.model_cache import Kept, keep
from gridbench.advise.next_run import Search
from gridbench.advise.on_servers import among
from gridbench.advise.runs import Runs
from gridbench.advise.work import Work
from gridbench.engines.servers import Servers
from gridbench.errors import BusyMachine, InputError
from gridbench.machine.load import Moment
from gridbench.machine.policy import Policy
from gridbench.machine.words import disturbed_count, no_claim, remedy, sentence
from gridbench.model.model import PipelineModel, model_of
from gridbench.model.observation import Observation, observe
from gridbench.process.template import Template
from gridbench.progress import Steps
from gridbench.run.participants import find_participant
from gridbench.terminal import say

_STARTS = 2
"""Places besides the first in which searches for the model begin: the user waits."""
_LIMIT = 60.0
"""Seconds that a run may take."""


def calibrate(
    engine: str,
    work: Work,
    console: Console,
    policy: Policy,
    template: Template,
    *,
    kept: Kept | None = None,
    servers: Servers | None = None,
    seen: Moment | None = None,
) -> PipelineModel:
    """Run the engine on this machine and fit its model, which is kept; `template`: of the
    processes that run cases. To the runs of a model that was kept come those that the work needs
    besides. With `servers`, the workers are theirs, and the model is not kept: other servers can
    have the same names. `seen`: see `Runs`.

    Each run is the one that tells most about the answer, and when more of them do not change it any
    more, there are no more. Runs that other programs disturbed do not go into the fit; where most
    are, and the user accepts that, all do, the model says so, and it is not kept. Raises
    BusyMachine if that is not accepted, InputError if the engine cannot be used or if too many of
    the runs fail.
    """
    participant = find_participant(engine)
    workers = None if servers is None else servers.workers
    search = Search(work, kept.observations if kept else (), workers)
    cases = len(search.left)
    console.print(f"calibrating {participant.name}: at most {cases} short runs")
    facts = participant.facts(max(case.cores for case in search.left), warm=work.warm)
    problems: list[str] = []
    progress = Steps(console, "calibrating: run", cases)
    quiet: list[Observation] = []
    disturbed: list[Observation] = []
    with Runs(
        engine, template, warm=work.warm, progress=progress, servers=servers, seen=seen
    ) as runs:
        while case := search.next():
            ran = runs.run(case, facts=facts, limit=_LIMIT)
            one = ran.problem or observe(ran.folder, disturbed=ran.disturbed)
            if not isinstance(one, Observation):
                problems.append(f"{case.told()}: {one}")
                continue
            if servers is not None:
                one = among(one, servers)
            (disturbed if ran.disturbed else quiet).append(one)
            if policy.accept or not ran.disturbed:
                search.known.append(one)
    for problem in problems:
        say(console, f"a run was left out: {problem}")
    if not quiet and not disturbed:
        raise InputError(
            f"the engine `{engine}` could not be calibrated: {problems[0]}",
            remedy="try it with `gridbench run examples/compute/setup.xml`",
        )
    found = [*(kept.observations if kept else ()), *quiet]
    if disturbed:
        count = disturbed_count(len(disturbed), len(quiet) + len(disturbed), "calibrating runs")
        say(console, sentence(count))
        # Where the others are too few to fit a model to, most might as well be disturbed.
        model = None
        if len(disturbed) <= len(quiet):
            with contextlib.suppress(InputError):
                model = _fitted(participant.name, found, search.values, console)
        if model is None:
            if not policy.accept:
                raise BusyMachine(no_claim(count), remedy=remedy())
            model = _fitted(participant.name, found + disturbed, search.values, console)
            return replace(model, disturbed=len(disturbed))
    else:
        model = _fitted(participant.name, found, search.values, console)
    if servers is None:
        keep(model, found)
    return model


def _fitted(
    engine: str, found: list[Observation], begin: Mapping[str, float], console: Console
) -> PipelineModel:
    console.print(f"{engine}: fitting a model to {len(found)} runs")
    return model_of(found, test=False, few=True, starts=_STARTS, begin=begin)
