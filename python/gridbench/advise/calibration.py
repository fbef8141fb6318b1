"""Calibration: short runs of an engine, chosen for a work, and the model that follows from them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from rich.console import Console

from gridbench.advise.model_cache import CachedModel, keep
from gridbench.advise.runs import SCENARIO, CaseRunner, among
from gridbench.advise.search import Split, best_split, total_of
from gridbench.advise.work import DivisibleWork
from gridbench.engines.servers import Servers
from gridbench.errors import BusyMachine, InputError
from gridbench.machine.judgement import disturbed_count, no_claim, remedy, sentence
from gridbench.machine.load import ClockReading
from gridbench.machine.options import Policy
from gridbench.model.model import PipelineModel, model_of
from gridbench.model.observation import Observation, Situation, observe
from gridbench.model.terms import Shape
from gridbench.process.child import ProcessTemplate
from gridbench.progress import Steps
from gridbench.run.participants import find_participant
from gridbench.scenario.grids import ScenarioCase
from gridbench.terminal import say

_MOST_CORES = 400
"""That are tried on the way to advice; more are extrapolated, with a note."""
_LONG, _SHORT = 0.05, 0.002
"""Seconds of a task: longer than handling all, and shorter."""
_MOST_TASKS = 1000
_OF_MOST_TASKS = 0.125
"""Seconds that so many take without overhead, at most: beyond, a run would tell of waiting."""
_MOST_BYTES = 100 * 2**20
"""Data that a run moves."""
_LEAST_BYTES = 4096


def first_cases(work: DivisibleWork, workers: int | None = None) -> list[ScenarioCase]:
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


def calibrating(work: DivisibleWork, workers: int | None = None) -> list[ScenarioCase]:
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


def _cores(work: DivisibleWork, workers: int | None) -> tuple[int, int, int, int]:
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
    work: DivisibleWork, most: int, how: Sequence[tuple[int, int, float]]
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


_AT_ONCE = 3
"""Runs between two looks at the answer."""
_REGRET = 1.03
"""Times the best total that the answer of before may take, and still be as good."""
_SAME_TOTAL = 0.1
"""Of the logarithm of its total: that may change by so much, and still be the same."""
_NOISE = 0.1
"""Of a run's overhead, as logarithm: what runs of the same case differ by."""
_LARGER = 2.0
"""Times the largest data that was measured, up to which it takes as long for each byte."""


class Search:
    """Remaining cases, and known observations.

    First come those without which there is no model. From then on the next is the one that tells
    most about the totals of the advised split and of its neighbours, by the model so far. When
    some more runs have changed neither the advice nor its expected total, it is the answer.
    """

    def __init__(
        self, work: DivisibleWork, known: Sequence[Observation], workers: int | None = None
    ) -> None:
        """`workers`: no run can have more; None: any number."""
        self.known = list(known)
        """Runs that count; those of the cases that `next` gives are to be added."""
        self._work = work
        done = {_key(one.situation) for one in known}
        every = calibrating(work, workers)
        self.left = [one for one in every if _key(_situation(one, work)) not in done]
        """Cases that may be run."""
        firsts = set(first_cases(work, workers))
        self._first = [one for one in self.left if one in firsts]
        self._chosen: list[ScenarioCase] = []
        self._answer: Split | None = None
        self._shape: Shape | None = None
        """How the engine works, by the first model: trying all takes longer than a run."""
        self.values: Mapping[str, float] = {}
        """Of the terms, by the last model, where the next search begins; empty: there is none."""

    def next(self) -> ScenarioCase | None:
        """The next case to be run; None: there have been enough, or there are no more."""
        queue = self._first or self._chosen
        if not queue and self.left:
            queue = self._chosen = self._choose()
        if not queue:
            return None
        case = queue.pop(0)
        self.left.remove(case)
        return case

    def _choose(self) -> list[ScenarioCase]:
        """The next few; none if the last ones have not changed the answer."""
        try:
            model = model_of(
                self.known, test=False, shape=self._shape, few=True, starts=0, begin=self.values
            )
        except InputError:  # of so many runs that have failed, or were disturbed
            return self.left[:_AT_ONCE]
        self._shape, self.values = model.fit.shape, model.fit.values
        before, self._answer = self._answer, best_split(model, self._work)
        if before is not None and _as_good(model, self._work, before, self._answer):
            return []
        return most_telling(model, self._work, self._answer, self.left)[:_AT_ONCE]


def _as_good(model: PipelineModel, work: DivisibleWork, before: Split, now: Split) -> bool:
    """Whether the answer of before still holds."""
    total = total_of(model, work, before.tasks, before.cores)
    return total <= now.total * _REGRET and abs(math.log(total / before.total)) <= _SAME_TOTAL


def most_telling(
    model: PipelineModel, work: DivisibleWork, answer: Split, cases: Sequence[ScenarioCase]
) -> list[ScenarioCase]:
    """The cases, first those whose run would narrow most what is not known of the answer.

    That is the logarithm of the overhead of the advised split, and of splits around it. Of each
    the variance that a run takes away is the square of its covariance with that of the run, by the
    variance of the run.
    """
    around = {
        (answer.tasks, answer.cores),
        (min(2 * answer.tasks, max(work.most_tasks, answer.tasks)), answer.cores),
        (answer.tasks, max(1, answer.cores // 2)),
    }
    wanted = [model.slopes(work.divided(*split)) for split in sorted(around)]
    unsure = np.array(wanted) @ model.fit.covariance

    def gain(case: ScenarioCase) -> float:
        slopes = model.slopes(_situation(case, work))
        own = float(slopes @ model.fit.covariance @ slopes)
        return float(((unsure @ slopes) ** 2).sum()) / (own + _NOISE**2)

    return sorted(cases, key=gain, reverse=True)


def covers(model: PipelineModel, work: DivisibleWork) -> bool:
    """Whether a model is of runs like those that would be made for the work."""
    measured = model.ranges
    if ("warm" if work.warm else "cold") not in measured.starts:
        return False
    cases = [_situation(case, work) for case in calibrating(work)]
    sizes = (
        (measured.bytes_in, max(one.bytes_in for one in cases)),
        (measured.bytes_shared, max(one.bytes_shared for one in cases)),
        (measured.bytes_out, max(one.bytes_out for one in cases)),
    )
    most = max(one.cores for one in cases)
    return (
        measured.cores.low <= most
        and measured.cores.holds(most)
        and all(largest <= span.high * _LARGER for span, largest in sizes)
    )


def _situation(case: ScenarioCase, work: DivisibleWork) -> Situation:
    return Situation(
        cores=case.cores,
        sleep=np.full(case.tasks, case.sleep),
        bytes_in=case.bytes_in,
        bytes_shared=case.bytes_shared,
        bytes_out=case.bytes_out,
        warm=work.warm,
    )


def _key(situation: Situation) -> tuple[object, ...]:
    sizes = (situation.bytes_in, situation.bytes_shared, situation.bytes_out)
    return (situation.cores, situation.tasks, float(situation.sleep.max()), *sizes, situation.warm)


_STARTS = 2
"""Places besides the first in which searches for the model begin: the user waits."""
_LIMIT = 60.0
"""Seconds that a run may take."""


def calibrate(
    engine: str,
    work: DivisibleWork,
    console: Console,
    policy: Policy,
    template: ProcessTemplate,
    *,
    stored: CachedModel | None = None,
    servers: Servers | None = None,
    seen: ClockReading | None = None,
) -> PipelineModel:
    """Run the engine on this machine and fit its model, which is kept; `template`: of the
    processes that run cases. To the runs of a model that was kept come those that the work needs
    besides. With `servers`, the workers are theirs, and the model is not kept: other servers can
    have the same names. `seen`: see `CaseRunner`.

    Each run is the one that tells most about the answer, and when more of them do not change it any
    more, there are no more. Runs that other programs disturbed do not go into the fit; where most
    are, and the user accepts that, all do, the model says so, and it is not kept. Raises
    BusyMachine if that is not accepted, InputError if the engine cannot be used or if too many of
    the runs fail.
    """
    participant = find_participant(engine)
    workers = None if servers is None else servers.workers
    search = Search(work, stored.observations if stored else (), workers)
    cases = len(search.left)
    console.print(f"calibrating {participant.name}: at most {cases} short runs")
    facts = participant.facts(max(case.cores for case in search.left), warm=work.warm)
    problems: list[str] = []
    progress = Steps(console, "calibrating: run", cases)
    quiet: list[Observation] = []
    disturbed: list[Observation] = []
    with CaseRunner(
        engine, template, warm=work.warm, progress=progress, servers=servers, seen=seen
    ) as runs:
        while case := search.next():
            ran = runs.run(case, facts=facts, limit=_LIMIT)
            one = ran.problem or observe(ran.folder, disturbed=ran.disturbed)
            if not isinstance(one, Observation):
                problems.append(f"{case.describe()}: {one}")
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
    found = [*(stored.observations if stored else ()), *quiet]
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
