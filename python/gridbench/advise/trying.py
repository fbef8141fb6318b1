"""Advice put to the test: the advised split is run, and others beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from gridbench.advise.advice import COMPARED, Advice
from gridbench.advise.runs import SCENARIO, CaseRunner, host_of
from gridbench.advise.search import total_of
from gridbench.advise.trial import LeftOut, Trial, TriedSplit
from gridbench.advise.work import DivisibleWork
from gridbench.analysis.columns import Floats
from gridbench.engines.servers import Servers
from gridbench.errors import InputError
from gridbench.formats import about, as_given, counted, duration
from gridbench.machine.judgement import DISTURBED
from gridbench.machine.options import Policy
from gridbench.model.model import PipelineModel
from gridbench.process.child import ProcessTemplate
from gridbench.progress import Steps
from gridbench.run.participants import Participant, find_participant
from gridbench.scenario.grids import ScenarioCase, TaskTimes
from gridbench.scenario.plan import Judge, ScenarioItem, WorkerPlace, items_of
from gridbench.scenario.run_case import RUNS_CASES


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEffort:
    """How much is tried."""

    rounds: int = 3
    """How often each split is run."""
    limit: float = 60.0
    """Seconds that a split may be expected to take; others are left out."""


def effort_of(*, trying: bool, rounds: int | None, limit: float | None) -> TrialEffort | None:
    """Trials from the command line; None: no trial. InputError for nonsense."""
    if not trying:
        for option, value in (("--rounds", rounds), ("--try-limit", limit)):
            if value is not None:
                raise InputError(f"{option} is for what is tried", remedy="add --try")
        return None
    effort = TrialEffort()
    if rounds is not None:
        effort = replace(effort, rounds=rounds)
    if limit is not None:
        if not (math.isfinite(limit) and limit > 0):
            raise InputError(
                f"--try-limit must be a number of seconds above 0, not {as_given(limit, '')}",
                remedy="give how long a run may be expected to take, such as 60",
            )
        effort = replace(effort, limit=limit)
    return effort


_SEED = 1
"""Of the order of runs."""
_AGAIN = 2
"""Times the rounds that the two are run again which are compared at the end."""
_CALM = 0.02
"""Range of the runs of a split, as share of their median, in which luck makes no difference."""
_LONGER = 2.0
"""Times the limit that a run may take: what is expected to be shorter may be longer."""
_ALL_DISTURBED = f"{DISTURBED}: other programs used the machine during each of its runs"
_BESIDE = 10.0
"""Seconds more for that: processes start, and what they measured is looked at."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A split to try, as a case, and what it is expected to take, in seconds."""

    case: ScenarioCase
    advised: bool
    expected: float


def participant_of(model: PipelineModel, servers: Servers | None = None) -> Participant:
    """The engine, to be run on this machine or on servers. InputError if that cannot be."""
    if servers is not None:
        participant = find_participant(model.fit.place.engine)
        participant.require_servers()
        return participant
    if model.linked:
        raise InputError(
            "the model is of workers behind links or on a network, and --try runs them beside the"
            " client",
            remedy="leave out --try, name servers to try it on by --grid or --server, or give a"
            " model of runs on one host",
        )
    return find_participant(model.fit.place.engine)


def candidates(advice: Advice) -> list[Candidate]:
    """The advised split; and round numbers of tasks, on the advised cores and on all that there
    are, or as many as there are tasks; if the fewest cores are wanted, not on more. By number of
    tasks, then of cores."""
    split, work = advice.split, advice.work
    most = split.cores if advice.within else work.cores
    splits = {(split.tasks, split.cores)}
    for tasks in COMPARED:
        splits |= {(tasks, min(tasks, cores)) for cores in (split.cores, most)}
    found = []
    for tasks, cores in sorted(splits):
        situation = work.divided(tasks, cores)
        case = ScenarioCase(
            scenario=SCENARIO,
            cores=cores,
            tasks=tasks,
            sleep=work.seconds / tasks,
            bytes_in=round(situation.bytes_in),
            bytes_shared=round(situation.bytes_shared),
            bytes_out=round(situation.bytes_out),
        )
        advised = (tasks, cores) == (split.tasks, split.cores)
        expected = total_of(advice.model, work, tasks, cores)
        found.append(Candidate(case, advised, expected))
    return found


def try_out(
    advice: Advice,
    participant: Participant,
    effort: TrialEffort,
    console: Console,
    policy: Policy,
    *,
    servers: Servers | None = None,
) -> Trial:
    """Run the splits that fit, interleaved in random order; then the advised one and the best of
    the others again. A split with a failed run is not run again. Runs that other programs
    disturbed do not count; if that is accepted, they do, and nothing is claimed.

    InputError if the engine cannot be used.
    """
    engine, warm = participant.name, advice.work.warm
    judge = Judge(
        [participant],
        times=TaskTimes(body=advice.work.body),
        place=WorkerPlace(nodes=len(servers.hosts), servers=True) if servers else WorkerPlace(),
        warm=warm,
        servers=servers,
    )
    chosen: list[Candidate] = []
    left_out: list[LeftOut] = []
    for one in candidates(advice):
        reason = _why_not(one, advice.work.most_tasks, effort, judge, engine)
        if reason:
            left_out.append(_left_out(one, reason))
        else:
            chosen.append(one)
    items = items_of([one.case for one in chosen], [engine], effort.rounds, _SEED)
    more = 2 * _AGAIN * effort.rounds if len(chosen) > 1 else 0
    if items:
        seconds = judge.seconds(items) * (1 + more / len(items))
        console.print(
            f"trying {counted(len(chosen), 'split')} of the work,"
            f" {counted(effort.rounds, 'time')} each: about {about(seconds)}"
        )
    progress = Steps(console, "trying: run", len(items) + more)
    body = advice.work.body
    with (
        ProcessTemplate(RUNS_CASES, engine) as template,
        CaseRunner(
            engine, template, warm=warm, body=body, progress=progress, servers=servers
        ) as runs,
    ):
        limit = _LONGER * effort.limit + _BESIDE
        trial_runs = _TrialRuns(runs, advice.work, judge, progress, limit=limit, policy=policy)
        totals = trial_runs.run(items)
        trial = Trial(rounds=effort.rounds, seed=_SEED, tried=_tried(chosen, totals, {}))
        pair = [
            one.case for one in chosen if one.case not in trial_runs.failed and _is_of(one, trial)
        ]
        if len(pair) == 2 and (trial.noise is None or trial.noise > _CALM):
            again = trial_runs.run(items_of(pair, [engine], _AGAIN * effort.rounds, _SEED))
            if again.keys() >= set(pair) and not trial_runs.failed.keys() & set(pair):
                trial = replace(trial, tried=_tried(chosen, totals, again))
    left_out += [
        _left_out(one, trial_runs.failed.get(one.case, _ALL_DISTURBED))
        for one in chosen
        if one.case not in totals
    ]
    host = advice.model.fit.place.host if isinstance(advice.model, PipelineModel) else ""
    return replace(
        trial,
        left_out=tuple(sorted(left_out, key=lambda one: (one.tasks, one.cores))),
        failed=tuple(
            _left_out(one, trial_runs.failed[one.case])
            for one in chosen
            if one.case in trial_runs.failed
        ),
        runs=trial_runs.runs,
        disturbed=trial_runs.disturbed,
        accepted=policy.accept,
        model_host="" if host == host_of(servers) else host,
    )


class _TrialRuns:
    """Runs cases, and notes what went wrong."""

    def __init__(
        self,
        runs: CaseRunner,
        work: DivisibleWork,
        judge: Judge,
        progress: Steps,
        *,
        limit: float,
        policy: Policy,
    ) -> None:
        self.failed: dict[ScenarioCase, str] = {}
        """The first failure of each."""
        self.runs = 0
        """That did not fail."""
        self.disturbed = 0
        """Of these, by other programs."""
        self._runs = runs
        self._work = work
        self._judge = judge
        self._progress = progress
        self._limit = limit
        self._policy = policy

    def run(self, items: Sequence[ScenarioItem]) -> dict[ScenarioCase, tuple[float, ...]]:
        """The totals of each case with at least one valid run, in seconds."""
        totals: dict[ScenarioCase, tuple[float, ...]] = {}
        for item in items:
            if item.case in self.failed:
                self._progress.skip()
                continue
            ran = self._runs.run(
                item.case,
                facts=self._judge.facts(item),
                limit=self._limit,
                times=self._times(item),
            )
            total = ran.outcome.answer.total_s
            if ran.problem or total is None:
                self.failed[item.case] = ran.problem or "its total is not known"
                continue
            self.runs += 1
            self.disturbed += ran.disturbed
            if self._policy.accept or not ran.disturbed:
                totals[item.case] = (*totals.get(item.case, ()), total)
        return totals

    def _times(self, item: ScenarioItem) -> Floats | None:
        """Of its tasks, if they differ: in each round drawn again, for all splits."""
        work, tasks = self._work, item.case.tasks
        if work.uneven is None:
            return None
        return work.uneven.times(work.seconds, tasks, item.round)


def _why_not(
    one: Candidate, most_tasks: int, effort: TrialEffort, judge: Judge, engine: str
) -> str:
    """Why a split is left out; empty if it is not."""
    if one.case.tasks > most_tasks:
        return f"the work cannot be divided into more than {most_tasks:,} tasks"
    if one.expected > effort.limit:
        return f"time: {duration(one.expected)} expected, and {duration(effort.limit)} are allowed"
    item = ScenarioItem(one.case, engine, 0)
    return judge.why_not(item, judge.need(item), None)


def _left_out(one: Candidate, reason: str) -> LeftOut:
    return LeftOut(tasks=one.case.tasks, cores=one.case.cores, advised=one.advised, reason=reason)


def _is_of(one: Candidate, trial: Trial) -> bool:
    """Whether it is the advised split or the best of the others."""
    pair = [split for split in (trial.advised, trial.rival) if split is not None]
    return (one.case.tasks, one.case.cores) in [(split.tasks, split.cores) for split in pair]


def _tried(
    chosen: Sequence[Candidate],
    totals: Mapping[ScenarioCase, tuple[float, ...]],
    again: Mapping[ScenarioCase, tuple[float, ...]],
) -> tuple[TriedSplit, ...]:
    return tuple(
        TriedSplit(
            tasks=one.case.tasks,
            cores=one.case.cores,
            advised=one.advised,
            expected=one.expected,
            totals=totals[one.case],
            again=again.get(one.case, ()),
        )
        for one in chosen
        if one.case in totals
    )
