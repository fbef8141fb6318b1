"""Advice on costs that anyone can add up, and what it says of figures that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pytest

from golden import same_as_golden
from gridbench.advise.advice import Advice, Help, SharedDataAdvice, TaskCountPoint, advise, parts_of
from gridbench.advise.document import document_of
from gridbench.advise.profiled import Profiled
from gridbench.advise.prose import sentences, warnings
from gridbench.advise.search import Split, Within
from gridbench.advise.uneven import Uneven
from gridbench.advise.work import DivisibleWork
from gridbench.analysis.columns import Floats
from gridbench.formats import longer, rough
from gridbench.model.model import PipelineModel, TotalPrediction
from gridbench.model.observation import Situation
from gridbench.pages.document import TableBlock, markdown
from gridbench.simulate.profiles import system
from gridbench.workload.numbers import MOST_CORES


@dataclass(frozen=True)
class ByHand:
    """Nothing overlaps: the total is the sum of what each core, task and byte costs."""

    values: Mapping[str, float] = field(
        default_factory=lambda: {
            "start.each": 0.5,
            "shared.way": 0.1,
            "shared.client": 0.05,
            "in.way": 0.01,
            "in.client": 0.02,
            "out.way": 0.03,
            "submit": 0.05,
            "retrieve": 0.1,
        }
    )
    name: str = "by hand"
    linked: bool = False

    def totals(
        self, situations: Sequence[Situation], changed: Mapping[str, float] | None = None
    ) -> Floats:
        cost = dict.fromkeys(ByHand().values, 0.0) | dict(self.values) | dict(changed or {})
        return np.array(
            [
                one.ideal
                + (0.0 if one.warm else cost["start.each"] * one.cores)
                + (cost["shared.way"] + cost["shared.client"]) * one.bytes_shared
                + (cost["in.way"] + cost["in.client"]) * one.bytes_in * one.tasks
                + cost["out.way"] * one.bytes_out * one.tasks
                + (cost["submit"] + cost["retrieve"]) * one.tasks
                for one in situations
            ]
        )

    def predict(self, situation: Situation) -> TotalPrediction:
        total = float(self.totals([situation])[0])
        return TotalPrediction(total, 0.8 * total, 1.3 * total, situation.ideal, ())

    def unsure(self, _: Situation) -> float:
        return 0.1

    def outside(self, _: Situation) -> tuple[str, ...]:
        return ()


COSTS = cast(PipelineModel, ByHand())
WORK = DivisibleWork(
    seconds=80.0, cores=4, bytes_in=60.0, bytes_in_each=3.0, bytes_shared=20.0, bytes_out=40.0,
    bytes_out_each=2.0,
)  # fmt: skip


def test_parts_are_what_each_group_of_costs_adds() -> None:
    assert dict(parts_of(COSTS, WORK, Split(8, 4, 0.0))) == pytest.approx(
        {
            "computing": 80 / 4,
            "starting workers": 4 * 0.5,
            "shared data": 20 * 0.15,
            "task data": (60 + 8 * 3) * 0.03,
            "output": (40 + 8 * 2) * 0.03,
            "handling tasks": 8 * 0.15,
        }
    )


def test_what_tasks_that_differ_cost_is_a_part_of_its_own() -> None:
    work = replace(WORK, uneven=Uneven(share=0.5))
    *others, (what, differences) = parts_of(COSTS, work, Split(8, 4, 0.0))
    assert dict(others) | {"computing": 20.0} == pytest.approx(
        dict(parts_of(COSTS, WORK, Split(8, 4, 0.0)))
    )
    assert what == "differences between tasks"
    longest = np.mean([one.ideal for one in work.drawn(8, 4)])
    assert (dict(others)["computing"], differences) == pytest.approx((20.0, longest - 20.0))


def test_each_change_helps_by_what_it_takes_away() -> None:
    advice = advise(COSTS, WORK)
    tasks, cores = advice.split.tasks, advice.split.cores
    moved_in, moved_out = 60 + tasks * 3, 40 + tasks * 2
    less = {one.what: advice.split.total - one.total for one in advice.helps}
    more = less.pop("8 cores instead of 4")
    assert less == pytest.approx(
        {
            "workers that are there already": cores * 0.5,
            "a way for data twice as fast": (20 * 0.1 + moved_in * 0.01 + moved_out * 0.03) / 2,
            "half as much data": (20 * 0.15 + moved_in * 0.03 + moved_out * 0.03) / 2,
            "handling tasks in half the time": tasks * 0.15 / 2,
        }
    )
    better = advise(COSTS, replace(WORK, cores=8))
    assert more == pytest.approx(advice.split.total - better.split.total)
    totals = [one.total for one in advice.helps]
    assert totals == sorted(totals)


def test_what_is_not_there_helps_nothing() -> None:
    work = DivisibleWork(seconds=80.0, cores=4, warm=True)
    assert {one.what for one in advise(COSTS, work).helps} == {
        "handling tasks in half the time", "8 cores instead of 4",
    }  # fmt: skip
    no_ways = cast(PipelineModel, ByHand(values={"in.client": 0.02, "submit": 0.05}))
    assert {one.what for one in advise(no_ways, WORK).helps} == {
        "half as much data", "handling tasks in half the time", "8 cores instead of 4",
    }  # fmt: skip
    linked = cast(PipelineModel, ByHand(linked=True))
    assert "a link twice as fast" in {one.what for one in advise(linked, WORK).helps}
    free = cast(PipelineModel, ByHand(values={"submit": 0.05}))
    helps = {one.what for one in advise(free, WORK).helps}
    assert helps == {"handling tasks in half the time", "8 cores instead of 4"}


def test_twice_as_many_cores_are_no_more_than_there_can_be() -> None:
    free = cast(PipelineModel, ByHand(values={}))
    work = DivisibleWork(seconds=1e6, cores=MOST_CORES // 2, most_tasks=MOST_CORES)
    found = {one.what: one.total for one in advise(free, work).helps}
    assert found == {
        f"{MOST_CORES:,} cores instead of {MOST_CORES // 2:,}": pytest.approx(1e6 / MOST_CORES)
    }
    assert advise(free, replace(work, cores=MOST_CORES)).helps == ()


def test_data_that_is_shared_is_held_against_sending_it_with_each_task() -> None:
    advice = advise(COSTS, WORK)
    tasks = advice.split.tasks
    assert advice.sharing is not None
    assert (advice.sharing.size, advice.sharing.is_shared) == (20.0, True)
    assert advice.sharing.shared == pytest.approx(advice.split.total)
    each = advice.split.total + 20 * (tasks * 0.03 - 0.15)
    assert advice.sharing.with_tasks == pytest.approx(each)


def test_data_of_each_task_is_held_against_sharing_it() -> None:
    advice = advise(COSTS, replace(WORK, bytes_shared=0.0))
    tasks = advice.split.tasks
    assert advice.sharing is not None
    assert (advice.sharing.size, advice.sharing.is_shared) == (3.0, False)
    assert advice.sharing.with_tasks == pytest.approx(advice.split.total)
    shared = advice.split.total + 3 * (0.15 - tasks * 0.03)
    assert advice.sharing.shared == pytest.approx(shared)
    least = advise(COSTS, replace(WORK, bytes_shared=1.0)).sharing
    assert least is not None
    assert (least.size, least.is_shared) == (1.0, True)
    assert advise(COSTS, replace(WORK, bytes_shared=0.0, bytes_in_each=0.0)).sharing is None
    unknown = cast(PipelineModel, ByHand(values={"in.way": 0.01, "submit": 0.05}))
    sharing = advise(unknown, WORK).sharing
    assert sharing is not None
    assert sharing.shared is None


# Sentences about given figures.

GIVEN = Advice(
    model=COSTS,
    work=DivisibleWork(seconds=80.0, cores=4),
    split=Split(8, 4, 25.0),
    expected=TotalPrediction(25.0, 22.0, 30.0, 20.0, ()),
    parts=(("computing", 20.0), ("task data", 1.0), ("starting workers", 4.0)),
    points=(),
    helps=(),
    sharing=None,
)


def point(tasks: int, total: float) -> TaskCountPoint:
    return TaskCountPoint(tasks, TotalPrediction(total, 0.9 * total, 1.2 * total, 20.0, ()))


def describe(advice: Advice, beginning: str) -> str:
    """The one sentence, or paragraph, that begins so; empty if there is none."""
    found = [text for text in sentences(advice) if text.startswith(beginning)]
    assert len(found) <= 1
    return "".join(found)


def test_the_split_and_the_expected_time_come_first() -> None:
    assert sentences(GIVEN) == [
        "Divide the work into 8 tasks of 10.00 s each, on 4 cores of by hand, as tasks that wait.",
        "It is expected to take 25 s (22 s to 30 s in 9 of 10 cases). The work itself takes"
        " 20 s: an efficiency of 80 %. On one core it would take 80.00 s.",
        "Besides the work, the time goes into: starting workers 4.0 s, task data 1.0 s.",
        "The bottleneck is computation (80 % of the time): use more cores.",
        "No single change would make it much shorter.",
    ]
    bound = replace(GIVEN, work=replace(GIVEN.work, cores_asked=9))
    assert describe(bound, "The bottleneck").endswith("(80 % of the time): use more processors.")
    fewer = replace(GIVEN, split=Split(6, 3, 25.0))
    assert sentences(fewer)[0].endswith("on 3 of the 4 cores of by hand, as tasks that wait.")
    exact = replace(GIVEN, expected=TotalPrediction(25.0, 25.0, 25.0, 20.0, ()))
    assert sentences(exact)[1].startswith("It is expected to take 25 s. The work itself takes 20 s")


def test_parts_of_less_than_two_thousandths_are_not_worth_telling() -> None:
    parts = (("computing", 24.9), ("output", 0.05), ("task data", 0.049))
    where = describe(replace(GIVEN, parts=parts), "Besides")
    assert where == "Besides the work, the time goes into: output 50 ms."
    assert describe(replace(GIVEN, parts=parts[:1]), "Besides") == ""


def test_the_bottleneck_is_the_largest_part() -> None:
    parts = (("computing", 5.0), ("task data", 15.0), ("output", 5.0))
    limit = describe(replace(GIVEN, parts=parts), "The bottleneck")
    assert limit == "The bottleneck is task data (60 % of the time)."
    parts = (("computing", 5.0), ("differences between tasks", 15.0), ("output", 5.0))
    limit = describe(replace(GIVEN, parts=parts), "The bottleneck")
    assert limit == (
        "The bottleneck is uneven tasks (60 % of the time): cores wait for the last one."
    )
    fewer = describe(replace(GIVEN, split=Split(6, 3, 25.0)), "The bottleneck")
    assert fewer.endswith("(80 % of the time); more cores cost more than they bring.")


def test_other_numbers_of_tasks_are_reported_beside_the_advised_one() -> None:
    totals = {1: 80.0, 2: 60.0, 8: 25.0, 10: 24.8, 25: 25.1, 50: 30.0, 100: 75.0}
    given = replace(GIVEN, points=tuple(point(*one) for one in totals.items()))
    # Of round numbers: two that are smaller if there are, and the first and the last that are
    # larger.
    assert describe(given, "On the same") == (
        "On the same cores (fewer if there are fewer tasks), 1 task would take 80 s, 3.2 times as"
        " long; 10 tasks would take 25 s, 1 % less: too little to tell; 100 tasks would take 75 s,"
        " 3.0 times as long."
    )
    given = replace(given, split=Split(100, 4, 25.0))
    assert describe(given, "On the same") == (
        "On the same cores (fewer if there are fewer tasks), 25 tasks would take as long (25 s); 50"
        " tasks would take 30 s, 20 % longer."
    )
    # The advised number of tasks may be a round one itself.
    limits = (point(1, 25.0 * 0.995), point(10, 25.0), point(25, 25.0 * 1.006))
    assert describe(replace(GIVEN, points=limits, split=Split(10, 4, 25.0)), "On the same") == (
        "On the same cores (fewer if there are fewer tasks), 1 task would take as long (25 s); 25"
        " tasks would take 25 s, 1 % longer."
    )
    # What is a half of a hundredth longer is not told to be longer by none of them.
    half = replace(GIVEN, points=(point(25, 25.0 * 1.005),))
    assert describe(half, "On the same").endswith(", 25 tasks would take as long (25 s).")
    alone = replace(GIVEN, points=(point(8, 25.0), point(9, 30.0)))
    assert describe(alone, "On the same") == ""


@pytest.mark.parametrize(
    ("with_tasks", "shared", "is_shared", "sentence"),
    [
        (30.0, None, False, "Whether the 2 KB that each task gets should be shared data is not"
         " known: no run had any."),
        (30.0, 25.0, True, "Sending 2 KB as shared data is right: 25 s; with each task 30 s."),
        (25.4, 25.0, True, "Sending 2 KB as shared data makes no difference: 25 s; with each task"
         " 25 s."),
        (25.0, 25.4, True, "Sending 2 KB as shared data makes no difference: 25 s; with each task"
         " 25 s."),
        (25.0, 30.0, True, "Send the 2 KB of shared data with each task: 25 s instead of 30 s."),
        (30.0, 25.0, False, "If the 2 KB that each task gets are the same for all, send them as"
         " shared data: 25 s instead of 30 s."),
        (25.0, 25.0 * 0.98, True, "Sending 2 KB as shared data makes no difference: 24 s; with"
         " each task 25 s."),
        (25.0 * 0.98, 25.0, True, "Sending 2 KB as shared data makes no difference: 25 s; with"
         " each task 24 s."),
        (25.4, 25.0, False, "Sending the 2 KB that each task gets as shared data would bring"
         " nothing: 25 s."),
        (25.0, 30.0, False, "Sending the 2 KB that each task gets as shared data would bring"
         " nothing: 30 s."),
    ],
)  # fmt: skip
def test_the_better_way_of_sending_what_all_tasks_need_is_reported(
    with_tasks: float, shared: float | None, is_shared: bool, sentence: str
) -> None:
    sharing = SharedDataAdvice(2048.0, with_tasks, shared, is_shared)
    assert sentence in sentences(replace(GIVEN, sharing=sharing))


def test_changes_that_bring_two_hundredths_are_reported() -> None:
    helps = (Help("half as much data", 15.0), Help("warm workers", 20.0), Help("luck", 25.0 * 0.98))
    assert describe(replace(GIVEN, helps=helps), "What would help") == (
        "What would help most: half as much data (15 s, 40 % less). Next come warm workers (20 s,"
        " 20 % less)."
    )
    one = describe(replace(GIVEN, helps=helps[:1]), "What would help")
    assert one == "What would help most: half as much data (15 s, 40 % less)."
    assert sentences(replace(GIVEN, helps=helps[2:]))[-1].startswith("No single change")


def test_pieces_that_deviate_even_out_within_a_task() -> None:
    uneven = Uneven(share=0.5, pieces=128)
    work = DivisibleWork(seconds=80.0, cores=4, most_tasks=100, uneven=uneven)
    given = replace(GIVEN, work=work)
    assert sentences(given)[-1] == (
        "The work is taken as 128 pieces whose times deviate by 50 %, each on its own: tasks of 16"
        " pieces deviate by about 12 %. Totals are means of 32 draws."
    )
    assert sentences(given)[0].startswith("Divide the work into 8 tasks of 10.00 s on average")


FOUR, EIGHT = Split(8, 4, 25.0), Split(8, 8, 15.0)
PROFILE = cast(PipelineModel, Profiled(system("ninfg")))


@pytest.mark.parametrize(
    ("model", "likely", "sure", "sentence"),
    [
        (COSTS, None, None, "With no number of cores up to 16 does the work end within 30 s:"
         " divided at its best, it is expected to take 15 s on 8 cores, and the bottleneck then is"
         " computing."),
        (COSTS, FOUR, None, "From 4 cores on, the work ends within 30 s more likely than not; with"
         " no number of cores up to 16 do 19 of 20 runs."),
        (COSTS, FOUR, EIGHT, "To end within 30 s, take 8 cores: with these, 19 of 20 runs do. From"
         " 4 cores on it does more likely than not."),
        (COSTS, FOUR, FOUR, "To end within 30 s, take 4 cores: with these, 19 of 20 runs do. With"
         " fewer it is expected to take longer."),
        (COSTS, Split(8, 2, 25.0), Split(8, 2, 25.0), "To end within 30 s, take 2 cores: with"
         " these, 19 of 20 runs do. With fewer it is expected to take longer."),
        (COSTS, Split(8, 1, 25.0), Split(8, 1, 25.0), "To end within 30 s, take 1 core: with"
         " these, 19 of 20 runs do."),
        (PROFILE, FOUR, FOUR, "From 4 cores on, the work is expected to end within 30 s."),
        (PROFILE, FOUR, None, "From 4 cores on, the work is expected to end within 30 s."),
        (PROFILE, FOUR, EIGHT, "From 4 cores on, the work is expected to end within 30 s. On 8 it"
         " does with 19 of 20 draws of task times."),
    ],
)  # fmt: skip
def test_from_how_many_cores_on_it_ends_in_time_comes_first(
    model: PipelineModel, likely: Split | None, sure: Split | None, sentence: str
) -> None:
    requested = Within(limit=30.0, likely=likely, sure=sure, shortest=EIGHT)
    work = replace(GIVEN.work, cores=16)
    given = replace(GIVEN, model=model, within=requested, work=work)
    assert sentences(given)[0] == sentence
    # Advice for few cores does not say that more would cost more than they bring.
    assert describe(given, "The bottleneck").endswith("(80 % of the time).")


@pytest.mark.parametrize(
    ("uneven", "luck"),
    [(None, ""), (Uneven(share=0.5), ", apart from how the times of tasks fall out")],
)
def test_a_profile_has_no_interval_of_its_own(uneven: Uneven | None, luck: str) -> None:
    beyond = TotalPrediction(25.0, 25.0, 25.0, 20.0, ("there are more cores",))
    work = replace(GIVEN.work, uneven=uneven)
    assert warnings(replace(GIVEN, model=PROFILE, expected=beyond, work=work)) == [
        "This is beyond what was measured, and may be far off: there are more cores.",
        f"A profile gives no error: there is no interval{luck}.",
    ]


def test_parts_that_overlap_leave_nothing_below_0() -> None:
    class Overlaps(ByHand):
        """The less handling, the longer the rest: what may come of rounding."""

        def totals(
            self, situations: Sequence[Situation], changed: Mapping[str, float] | None = None
        ) -> Floats:
            return super().totals(situations, changed) + 0.5 * ("submit" in (changed or {}))

    parts = dict(
        parts_of(cast(PipelineModel, Overlaps()), replace(WORK, cores=1), Split(1, 1, 0.0))
    )
    assert parts["handling tasks"] == 0.0


def test_a_ratio_from_two_on_is_reported_as_times_and_has_two_digits() -> None:
    assert longer(1.99, 1.0) == "99 % longer"
    assert longer(2.0, 1.0) == "2.0 times as long"
    assert longer(9.94, 1.0) == "9.9 times as long"
    assert longer(9.96, 1.0) == "10 times as long"
    assert longer(12.3, 1.0) == "12 times as long"
    assert rough(1e-3) == "1.0 ms"
    assert rough(9.96e-4) == "1.0 ms"


# The page.


def test_the_page_has_the_figures_of_the_advice_in_its_tables() -> None:
    given = replace(
        GIVEN,
        model=PROFILE,
        helps=(Help("half as much data", 15.0),),
        points=(point(8, 25.0), point(100, 75.0)),
        work=replace(WORK, warm=True),
    )
    found = document_of(given)
    same_as_golden(f"{found.subheading}\n\n{markdown(found)}", "advise/advice.md")
    (first,) = [one for one in found.summary if isinstance(one, TableBlock) and not one.title]
    assert ("Bottleneck", "computing") in first.table.rows
    computes = replace(given, work=DivisibleWork(seconds=80.0, cores=4, body="spin"))
    assert "of work that computes, up to 4 cores, cold start" in document_of(computes).subheading
    more = replace(given, work=DivisibleWork(seconds=80.0, cores=4, body="spin", cores_asked=50))
    assert "up to 4 cores of the 50 requested, cold start" in document_of(more).subheading
