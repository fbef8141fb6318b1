"""Which splits are tried how often, and what comes of given totals: no engine runs here."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from gridbench.advise import trying
from gridbench.advise.advice import COMPARED, Advice, advise
from gridbench.advise.trial import TriedSplit
from gridbench.advise.trying import Candidate, TrialEffort, candidates, effort_of, try_out
from gridbench.advise.uneven import Uneven
from gridbench.advise.work import DivisibleWork
from gridbench.analysis.columns import Floats
from gridbench.engines.servers import ServerHost, Servers
from gridbench.errors import InputError
from gridbench.machine.options import Policy
from gridbench.model.model import PipelineModel
from gridbench.progress import Steps
from gridbench.run.participants import find_participant
from gridbench.scenario.grids import ScenarioCase
from gridbench.scenario.plan import Judge
from gridbench.workload.numbers import LARGEST_KB

WORK = DivisibleWork(seconds=0.02, cores=3, most_tasks=12)
EFFORT = TrialEffort(rounds=3)

Splits = list[tuple[int, int]]


@dataclass
class Made:
    """Stands for runs: `total` tells the seconds of each, or why there are none."""

    total: Callable[[ScenarioCase, int], float | str | None]
    """Of a case, and how often it has been run before."""
    disturbed: bool = False
    cases: list[ScenarioCase] = field(default_factory=list)
    """That were run, in this order."""
    limits: set[float] = field(default_factory=set)
    times: list[Floats | None] = field(default_factory=list)

    def __call__(self, *_: object, **__: object) -> Made:
        return self

    def __enter__(self) -> Made:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(
        self, case: ScenarioCase, *, facts: object, limit: float, times: Floats | None
    ) -> object:
        del facts
        found = self.total(case, self.cases.count(case))
        self.cases.append(case)
        self.limits.add(limit)
        self.times.append(times)
        answer = SimpleNamespace(total_s=None if isinstance(found, str) else found)
        return SimpleNamespace(
            outcome=SimpleNamespace(answer=answer),
            problem=found if isinstance(found, str) else "",
            disturbed=self.disturbed,
        )


@pytest.fixture
def advice(model: PipelineModel) -> Advice:
    """For a work of 20 ms."""
    return advise(model, WORK)


Trying = Callable[..., Any]


@pytest.fixture
def tried(advice: Advice, monkeypatch: pytest.MonkeyPatch) -> Trying:
    """Tries the advice with runs that were never made, and tells what is printed."""

    def found(
        made: Made,
        of: Advice = advice,
        effort: TrialEffort = EFFORT,
        policy: Policy = Policy(),  # noqa: B008
        servers: Servers | None = None,
    ) -> Any:
        monkeypatch.setattr(trying, "CaseRunner", made)
        printed = io.StringIO()
        engine = find_participant("gridrpc-native")
        console = Console(file=printed, width=200)
        trial = try_out(of, engine, effort, console, policy, servers=servers)
        return trial, printed.getvalue()

    return found


def _splits(advice: Advice, most: int = 12) -> Splits:
    """Those that can be tried."""
    cases = [one.case for one in candidates(advice)]
    return [(one.tasks, one.cores) for one in cases if one.tasks <= most]


def _seconds(case: ScenarioCase, _: int) -> float:
    return 1.0 + case.tasks / 100 + case.cores / 1000


def test_each_split_is_run_in_each_round(advice: Advice, tried: Trying) -> None:
    made = Made(_seconds)
    trial, printed = tried(made)
    splits = _splits(advice)
    assert [(one.tasks, one.cores) for one in trial.tried] == splits
    counts = Counter((one.tasks, one.cores) for one in made.cases)
    # Runs that do not differ at all are not made again.
    assert counts == dict.fromkeys(splits, 3)
    assert (trial.rounds, trial.runs, trial.disturbed) == (3, 3 * len(splits), 0)
    assert [one.totals for one in trial.tried] == [
        (1 + tasks / 100 + cores / 1000,) * 3 for tasks, cores in splits
    ]
    assert all(one.again == () for one in trial.tried)
    # Twice what is allowed, and ten seconds for all that is beside the run.
    assert made.limits == {130.0}
    assert f"trying {len(splits)} splits of the work, 3 times each: about " in printed
    left_out = [one.tasks for one in trial.left_out]
    assert left_out == sorted(left_out)
    assert set(left_out) == {tasks for tasks in COMPARED if tasks > 12}
    assert trial.failed == ()


@pytest.mark.parametrize(("differ", "again"), [(1.9, 0), (2.0, 0), (2.1, 6)])
def test_the_two_to_compare_are_run_again_unless_they_hardly_differ(
    differ: float, again: int, advice: Advice, tried: Trying
) -> None:
    made = Made(lambda _, before: 100 + differ * (before == 1))
    trial, _ = tried(made)
    assert trial.advised is not None
    assert trial.rival is not None
    for one in trial.tried:
        assert len(one.again) == (again if one in (trial.advised, trial.rival) else 0)
        assert len(one.totals) == 3
    assert trial.runs == 3 * len(_splits(advice)) + 2 * again


def test_one_round_tells_nothing_of_how_runs_differ(advice: Advice, tried: Trying) -> None:
    made = Made(_seconds)
    trial, _ = tried(made, effort=TrialEffort(rounds=1))
    assert sorted(len(one.again) for one in trial.tried)[-2:] == [2, 2]
    assert len(made.cases) == len(_splits(advice)) + 4


def test_a_split_with_a_failed_run_is_not_run_again(
    advice: Advice, tried: Trying, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = (advice.split.tasks, advice.split.cores)
    made = Made(lambda case, _: "no luck" if (case.tasks, case.cores) == own else 1.0)
    progress: list[Steps] = []

    def steps(*given: Any) -> Steps:
        progress.append(Steps(*given))
        return progress[0]

    monkeypatch.setattr(trying, "Steps", steps)
    trial, _ = tried(made)
    assert [(one.tasks, one.cores) for one in made.cases].count(own) == 1
    assert trial.advised is None
    (failed,) = trial.failed
    assert (failed.tasks, failed.cores, failed.advised, failed.reason) == (*own, True, "no luck")
    assert failed in trial.left_out
    # The two other rounds of it count as over.
    assert progress[0].number == 2
    assert trial.runs == 3 * (len(_splits(advice)) - 1)


def test_a_split_that_fails_later_keeps_its_totals_and_is_not_compared(
    advice: Advice, tried: Trying
) -> None:
    own = (advice.split.tasks, advice.split.cores)

    def total(case: ScenarioCase, before: int) -> float | None:
        ends = (case.tasks, case.cores) != own or before < 2
        return 1.0 + before if ends else None

    made = Made(total)
    trial, _ = tried(made)
    assert trial.advised is not None
    assert trial.advised.totals == (1.0, 2.0)
    assert [one.reason for one in trial.failed] == ["its total is not known"]
    assert not {one.tasks for one in trial.left_out} & {own[0]}
    assert all(one.again == () for one in trial.tried)
    assert len(made.cases) == 3 * len(_splits(advice))


def test_a_comparison_that_fails_is_not_made(advice: Advice, tried: Trying) -> None:
    own = (advice.split.tasks, advice.split.cores)

    def total(case: ScenarioCase, before: int) -> float | str:
        ends = (case.tasks, case.cores) != own or before < 5
        return 1.0 + before if ends else "no luck"

    trial, _ = tried(Made(total))
    assert all(one.again == () for one in trial.tried)
    assert [one.reason for one in trial.failed] == ["no luck"]


def test_disturbed_runs_do_not_count(advice: Advice, tried: Trying) -> None:
    made = Made(_seconds, disturbed=True)
    trial, _ = tried(made)
    assert trial.tried == ()
    assert trial.runs == trial.disturbed == 3 * len(_splits(advice))
    assert not trial.accepted
    reasons = {(one.tasks, one.cores): one.reason for one in trial.left_out}
    for split in _splits(advice):
        assert "other programs used the machine during each of its runs" in reasons[split]
    order = [(one.tasks, one.cores) for one in trial.left_out]
    assert order == sorted(order)


def test_disturbed_runs_count_if_that_is_accepted(advice: Advice, tried: Trying) -> None:
    trial, _ = tried(Made(_seconds, disturbed=True), policy=Policy(accept=True))
    assert [(one.tasks, one.cores) for one in trial.tried] == _splits(advice)
    assert trial.accepted
    assert trial.runs == trial.disturbed


def test_what_is_expected_to_take_too_long_is_left_out(advice: Advice, tried: Trying) -> None:
    longest = max(candidates(advice), key=lambda one: one.expected * (one.case.tasks <= 12))
    assert longest.expected < 60
    trial, _ = tried(Made(_seconds), effort=TrialEffort(rounds=1, limit=longest.expected))
    assert len(trial.tried) == len(_splits(advice))
    made = Made(_seconds)
    trial, _ = tried(made, effort=TrialEffort(rounds=1, limit=longest.expected * 0.999))
    assert longest.case not in made.cases
    reasons = {(one.tasks, one.cores): one.reason for one in trial.left_out}
    assert reasons[longest.case.tasks, longest.case.cores].startswith("time: ")


def test_the_memory_of_servers_is_not_that_of_this_machine(
    model: PipelineModel, tried: Trying
) -> None:
    large = advise(model, replace(WORK, bytes_in_each=LARGEST_KB * 1024.0))
    for servers, begin in (
        (None, "memory: "),
        (
            Servers(Path("grid.toml"), (), (ServerHost("node1", "lab", 4, "TCP"),)),
            "the work cannot be",
        ),
    ):
        trial, _ = tried(Made(_seconds), large, TrialEffort(rounds=1, limit=1e9), servers=servers)
        assert trial.left_out[0].reason.startswith(begin)


def test_one_task_alone_has_nothing_to_be_compared_with(
    model: PipelineModel, tried: Trying
) -> None:
    alone = advise(model, replace(WORK, cores=1, most_tasks=1))
    made = Made(_seconds)
    trial, printed = tried(made, alone, TrialEffort(rounds=1))
    assert [(one.tasks, one.cores) for one in made.cases] == [(1, 1)]
    assert "trying 1 split of the work, 1 time each: about " in printed
    assert trial.rival is None


def test_where_nothing_can_be_tried_nothing_is_said(tried: Trying) -> None:
    made = Made(_seconds)
    trial, printed = tried(made, effort=TrialEffort(limit=1e-9))
    assert (made.cases, trial.tried, printed) == ([], (), "")


def test_uneven_tasks_are_drawn_again_in_each_round(model: PipelineModel, tried: Trying) -> None:
    uneven = Uneven(share=0.5)
    made = Made(_seconds)
    tried(made, advise(model, replace(WORK, uneven=uneven)), TrialEffort(rounds=2))
    for number in (0, 1):
        expected = uneven.times(WORK.seconds, 10, number)
        same = [
            case
            for case, times in zip(made.cases, made.times, strict=True)
            if times is not None and len(times) == 10 and (times == expected).all()
        ]
        assert same
        assert {case.tasks for case in same} == {10}
    even = Made(_seconds)
    tried(even)
    assert set(even.times) == {None}


def test_a_model_of_another_machine_is_reported(advice: Advice, tried: Trying) -> None:
    assert isinstance(advice.model, PipelineModel)
    trial, _ = tried(Made(_seconds))
    # The model is of a machine that is called `here`, which no machine of tests is.
    assert trial.model_host == "here"


def test_a_split_is_as_it_was_run() -> None:
    case = ScenarioCase(
        scenario=0, cores=2, tasks=4, sleep=1.0, bytes_in=0, bytes_shared=0, bytes_out=0
    )
    chosen = [Candidate(case, True, 2.5), Candidate(replace(case, tasks=5), False, 3.0)]
    (found,) = trying._tried(chosen, {case: (2.0, 3.0)}, {case: (4.0,)})
    assert found == TriedSplit(
        tasks=4, cores=2, advised=True, expected=2.5, totals=(2.0, 3.0), again=(4.0,)
    )
    # What is shown is what is compared.
    assert (found.median, found.smallest, found.largest) == (4.0, 4.0, 4.0)
    assert found.difference == pytest.approx(0.6)


def test_what_is_tried_is_three_rounds_of_up_to_a_minute_unless_said_otherwise() -> None:
    assert effort_of(trying=False, rounds=None, limit=None) is None
    assert effort_of(trying=True, rounds=None, limit=None) == TrialEffort(rounds=3, limit=60.0)
    assert effort_of(trying=True, rounds=1, limit=None) == TrialEffort(rounds=1, limit=60.0)
    assert effort_of(trying=True, rounds=None, limit=1e-3) == TrialEffort(rounds=3, limit=1e-3)
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match="--try-limit must be a number of seconds above 0"):
            effort_of(trying=True, rounds=None, limit=wrong)
    for rounds, limit, option in ((2, None, "--rounds"), (None, 2.0, "--try-limit")):
        with pytest.raises(InputError, match=f"{option} is for what is tried"):
            effort_of(trying=False, rounds=rounds, limit=limit)


def test_how_many_runs_there_will_be_and_how_long_they_take_is_known_before(
    advice: Advice, model: PipelineModel, tried: Trying, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[int] = []
    text: list[float] = []

    def steps(console: Console, what: str, number: int) -> Steps:
        assert what == "trying: run"
        planned.append(number)
        return Steps(console, what, number)

    def about(seconds: float) -> str:
        text.append(seconds)
        return ""

    monkeypatch.setattr(trying, "Steps", steps)
    monkeypatch.setattr(trying, "about", about)
    # Each run is planned with two seconds.
    monkeypatch.setattr(Judge, "seconds", lambda _, items: 2.0 * len(items))
    trial, _ = tried(Made(_seconds))
    splits = len(_splits(advice))
    # Three rounds of each split, and six more of the two that are compared.
    assert planned == [3 * splits + 2 * 6]
    assert text == [pytest.approx(2.0 * (3 * splits + 12))]
    assert trial.seed == 1
    # One split alone is compared with none.
    tried(
        Made(_seconds), advise(model, replace(WORK, cores=1, most_tasks=1)), TrialEffort(rounds=1)
    )
    assert (planned[1], text[1]) == (1, 2.0)
    # Two are compared with each other.
    tried(
        Made(_seconds), advise(model, replace(WORK, cores=1, most_tasks=10)), TrialEffort(rounds=1)
    )
    assert planned[2] == 2 * (1 + 2)
