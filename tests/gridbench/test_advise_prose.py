"""Sentences about advice: about its model, and the source of shared data."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import click
import numpy as np
import pytest
from rich.console import Console

from golden import same_as_golden
from gridbench.advise import options
from gridbench.advise.advice import (
    COMPARED,
    LARGE,
    Advice,
    FromGrid,
    FromWhere,
    LimitsCell,
    LimitsMap,
    TaskCountPoint,
)
from gridbench.advise.document import (
    document_of,
    map_chart,
    to_record,
    total_chart,
    trial_document,
    trial_record,
)
from gridbench.advise.prose import between, sentences, undetermined, warnings
from gridbench.advise.search import Split
from gridbench.advise.trial import LeftOut, Trial, TriedSplit, trial_sentences
from gridbench.advise.uneven import Recorded, Uneven
from gridbench.advise.work import DivisibleWork
from gridbench.formats import NOTHING
from gridbench.model.fit import PipelineFit
from gridbench.model.least_squares import TermEstimate
from gridbench.model.model import PipelineModel, TotalPrediction
from gridbench.model.observation import Situation, range_of
from gridbench.model.terms import Shape, terms_of
from gridbench.pages.document import markdown
from gridbench.pages.terminal import print_document
from gridbench.statistics.claims import marked
from synthetic import MB, PLACE

TERMS = {term.name: term for term in terms_of(Shape())}
FIT = PipelineFit(
    PLACE,
    Shape(),
    (
        TermEstimate(TERMS["submit"], 1e-3, 5e-4, 2e-3, True),
        TermEstimate(TERMS["in.client"], 1e-9, 1e-12, 2e-9, False),
    ),
    30,
    30,
    np.zeros((2, 2)),
    0.1,
    (),
)
MODEL = PipelineModel(FIT, range_of([Situation(cores=4, sleep=np.ones(8))]))
GIVEN = Advice(
    model=MODEL,
    work=DivisibleWork(seconds=80.0, cores=4),
    split=Split(8, 2, 25.0),
    expected=TotalPrediction(25.0, 22.0, 30.0, 20.0, ()),
    parts=(("computing", 20.0),),
    points=(),
    helps=(),
    sharing=None,
)
LOOSE = (
    "These runs cannot separate the costs of task data; only their sum is known. The"
    " interval of the expected time allows for that."
)


def _sure(**changed: object) -> Advice:
    """With a model whose terms are all determined."""
    fit = replace(FIT, estimates=FIT.estimates[:1])
    return replace(GIVEN, model=replace(MODEL, fit=fit), **changed)  # type: ignore[arg-type]


def test_costs_that_runs_do_not_tell_apart_are_reported_without_their_names() -> None:
    assert warnings(GIVEN) == [LOOSE]
    assert undetermined(FIT) == to_record(GIVEN)["undetermined"] == ["in.client"]
    unsure = tuple(replace(one, determined=False) for one in FIT.estimates)
    (reported,) = warnings(replace(GIVEN, model=replace(MODEL, fit=replace(FIT, estimates=unsure))))
    assert reported.startswith(
        "These runs cannot separate the costs of task data and handling tasks"
    )
    assert warnings(_sure()) == []
    beyond = replace(GIVEN.expected, extrapolated=("no run had a warm start",))
    assert warnings(_sure(expected=beyond)) == [
        "This is beyond what was measured, and may be far off: no run had a warm start."
    ]


def test_advice_from_disturbed_runs_is_provisional() -> None:
    disturbed = replace(GIVEN, model=replace(MODEL, disturbed=3))
    first, second = warnings(disturbed)
    assert first.startswith("Other programs disturbed 3 of 30 runs behind")
    reported = sentences(disturbed)
    guess = "22 s to 30 s: a guess, as other programs disturbed what it is from"
    quiet = [text.replace("22 s to 30 s in 9 of 10 cases", guess) for text in sentences(GIVEN)]
    assert reported == marked(quiet, "the machine was busy in 3 of 30 runs")
    record = to_record(disturbed)
    assert (record["verdict"], record["provisional"]) == (reported[0], True)
    assert to_record(GIVEN)["provisional"] is False
    assert second == LOOSE


def test_more_cores_than_processors_are_for_tasks_that_wait() -> None:
    (reported,) = warnings(_sure(split=Split(8, 3, 25.0)))
    assert reported.startswith("All of this is for tasks that wait")
    assert "the 2 processors of here at a time" in reported
    assert warnings(_sure(split=Split(8, 2, 25.0))) == []
    requested = replace(GIVEN.work, body="spin", cores=2, cores_asked=16)
    assert (
        " on 2 processors of "
        in sentences(replace(_sure(split=Split(8, 2, 25.0)), work=requested))[0]
    )
    (reported,) = warnings(_sure(work=requested))
    assert reported.startswith(
        "You requested 16 cores, but work that computes cannot use more than the 2"
    )


# Shared data.

FOUND = FromWhere(
    size=100.0 * MB,
    tasks=8,
    cores=4,
    engine="made-up",
    through=10.0,
    grids=(FromGrid(title="Grid", put_and_read=10.0, there_already=9.5),),
    host="here",
    made=0.0,
    most_readers=4,
    most_bytes=100 * MB,
)


def _from_where(found: FromWhere) -> str:
    recent = replace(found, made=time.time() - 7200)
    reported = [one for one in sentences(_sure(from_where=recent)) if "hared data" in one]
    assert len(reported) <= 1
    return "".join(reported)


def test_ways_of_shared_data_are_reported_with_where_they_were_measured() -> None:
    assert _from_where(FOUND) == (
        "Shared data of 100 MB for 8 tasks on 4 cores: through made-up 10 s; from Grid 10 s (9.5 s"
        " if it is there already): either will do. It was measured on here 2 hours ago, with up to"
        " 100 MB for 4 readers."
    )


@pytest.mark.parametrize(
    ("put", "there", "verdict"),
    [
        (9.0, 1.0, "take it from Grid"),
        (9.2, 1.0, "either will do"),
        (10.9, 1.0, "either will do"),
        (11.1, 9.2, "keep it as shared data"),
        (11.1, 9.0, "keep it as shared data, unless it is in the data grid anyway"),
    ],
)
def test_a_tenth_decides_where_shared_data_comes_from(
    put: float, there: float, verdict: str
) -> None:
    grids = (FromGrid(title="Grid", put_and_read=put, there_already=there),)
    assert f" if it is there already): {verdict}. It was" in _from_where(
        replace(FOUND, grids=grids)
    )


def test_of_several_data_grids_the_fastest_is_reported() -> None:
    fast = FromGrid(title="Fast", put_and_read=5.0, there_already=4.0)
    slow = FromGrid(title="Slow", put_and_read=20.0, there_already=2.0)
    reported = _from_where(replace(FOUND, grids=(fast, slow)))
    assert "; from Fast 5.0 s (4.0 s if it is there already); from Slow 20 s (2.0 s if" in reported
    assert ": take it from Fast." in reported
    # And of what is there already, that from which it is read the soonest.
    reported = _from_where(replace(FOUND, grids=(fast, slow), through=3.0))
    assert ": keep it as shared data, unless it is in the data grid anyway." in reported


@pytest.mark.parametrize(
    ("changed", "beyond"),
    [({}, False), ({"size": 100.0 * MB + 1}, True), ({"cores": 5}, True), ({"cores": 3}, False)],
)
def test_more_than_was_measured_may_be_far_off(changed: dict[str, object], beyond: bool) -> None:
    found = replace(FOUND, **changed)  # type: ignore[arg-type]
    assert found.beyond == beyond
    assert _from_where(found).endswith("; this is more than that, and may be far off.") == beyond


def test_only_large_data_are_worth_measuring() -> None:
    nothing = FromWhere(size=float(LARGE), tasks=8, cores=4)
    assert LARGE == 64 * MB
    assert _from_where(nothing) == (
        "Whether the 64 MB of shared data would be there sooner from a data grid was not measured:"
        " `gridbench data crossover` does it."
    )
    assert _from_where(replace(nothing, size=LARGE - 1.0)) == ""


# Times that differ.


def test_what_is_assumed_of_times_is_reported() -> None:
    uneven = Uneven(share=0.5, distribution="pareto")
    assert sentences(_sure(work=replace(GIVEN.work, uneven=uneven)))[-1] == (
        "Task times are taken to deviate by 50 % of their mean (pareto) however the work is"
        " divided, as if what lies side by side in it were alike. Totals are means of 32 draws."
    )


def test_tasks_of_a_log_are_put_together() -> None:
    log = Recorded(
        source="my.log",
        pieces=16,
        share=0.5,
        done=np.concatenate(([0.0], np.cumsum([1.0, 3.0] * 8))),
    )
    reported = sentences(_sure(work=replace(GIVEN.work, uneven=log, most_tasks=16)))
    assert reported[0].startswith(
        "Put its 16 tasks together to 8 of 10.00 s on average, on 2 of the 4"
    )
    assert reported[-1] == (
        "The 16 tasks of my.log deviate by 50 %; put together in their order to 8, by 0 %. Data is"
        " taken to be the same for each of them."
    )
    whole = _sure(work=replace(GIVEN.work, uneven=log, most_tasks=16), split=Split(16, 2, 25.0))
    reported = sentences(whole)
    assert reported[0].startswith("Leave its 16 tasks as they are, of 5.000 s on average")
    assert "put together" not in reported[-1]
    assert log.describe() == "deviating by 50 %, as in my.log"


def test_an_interval_without_width_is_none() -> None:
    assert between(GIVEN.expected) == "22 s to 30 s"
    assert between(TotalPrediction(25.0, 25.0, 25.0, 20.0, ())) == NOTHING


# Splits that were tried, and the page.

TRIED = (
    TriedSplit(tasks=2, cores=2, advised=False, expected=4.0, totals=(5.0, 4.8, 7.0)),
    TriedSplit(tasks=8, cores=2, advised=True, expected=4.0, totals=(4.0,)),
    TriedSplit(tasks=8, cores=4, advised=False, expected=4.0, totals=(3.0,)),
)
TRIAL = Trial(
    rounds=3,
    seed=1,
    tried=TRIED,
    left_out=(LeftOut(tasks=1000, cores=1, advised=False, reason="time"),),
)


# In a terminal.


MAP = LimitsMap(
    "made-up",
    4,
    1600,
    (
        LimitsCell(0.001, 1024, "task data", 0.75, 0.1, True),
        LimitsCell(1.0, MB, "computing", 0.9, 0.9, False),
    ),
)


def test_advice_with_measured_splits_as_a_document() -> None:
    points = (
        TaskCountPoint(8, TotalPrediction(25.0, 22.0, 30.0, 20.0, ())),
        TaskCountPoint(1000, TotalPrediction(75.0, 70.0, 80.0, 20.0, ())),
    )
    trial = replace(TRIAL, disturbed=1, runs=5)
    found = document_of(replace(GIVEN, points=points), trial, [MAP])
    same_as_golden(markdown(found), "advise/measured.md")
    nothing = markdown(trial_document(replace(TRIAL, tried=())))
    assert "The advised split could not be tried: no run of it counts." in nothing
    assert "off by" not in nothing


def test_what_comes_of_a_trial_is_printed_with_the_answer_last() -> None:
    printed = io.StringIO()
    console = Console(file=printed, width=200, force_terminal=True, color_system="standard")
    print_document(console, trial_document(TRIAL))
    lines = printed.getvalue().splitlines()
    # It took as long as expected, and the others did not.
    (advised,) = [line for line in lines if "+0.0 %" in line]
    others = [line for line in lines if "5.000 s" in line or "3.000 s" in line]
    assert "\x1b[1m" in advised
    assert not any("\x1b[1m" in line for line in others[:2])
    assert lines[-2:] == trial_sentences(TRIAL)


def test_the_page_of_provisional_advice_says_so_in_its_title() -> None:
    disturbed = replace(GIVEN, model=replace(MODEL, disturbed=3))
    assert document_of(disturbed).sentences[0].startswith("Provisional: ")


def test_splits_on_the_advised_cores_are_drawn_apart_from_others() -> None:
    *_, own, more = total_chart(GIVEN, TRIAL).data["traces"]  # type: ignore[index]
    assert own["name"] == "measured on up to 2 cores"
    assert (own["x"], own["y"]) == ([2, 8], [5.0, 4.0])
    assert own["error_y"]["array"] == [2.0, 0.0]
    assert own["error_y"]["arrayminus"] == pytest.approx([0.2, 0.0])
    assert own["text"][1] == "8 tasks on 2 cores took 4.000 s"
    assert (more["name"], more["x"]) == ("measured on up to 4 cores", [8])


def test_a_map_is_drawn_by_what_limits() -> None:
    chart = map_chart(1, MAP)
    assert chart.data is not None
    kinds = {one["name"]: one for one in chart.data["traces"]}
    assert list(kinds) == ["computing", "task data"]
    assert kinds["task data"]["text"] == ["1.000 ms, 1 KB: task data 75 %, efficiency 10 %"]
    assert kinds["computing"]["text"][0].endswith("efficiency 90 %, beyond what was measured")
    assert chart.data["y"]["categoryarray"] == ["1 KB", "1 MB"]
    assert len({one["marker"]["color"] for one in kinds.values()}) == 2
    assert (chart.name, chart.title) == ("limits-1", "made-up on 4 cores, 1,600 tasks")
    assert chart.table is not None
    assert len(chart.table.rows) == 2


def test_what_was_not_measured_of_shared_data_is_nothing() -> None:
    nothing = FromWhere(size=float(LARGE), tasks=8, cores=4)
    assert (nothing.engine, nothing.grids, nothing.host) == ("", (), "")
    assert (nothing.through, nothing.made) == (0, 0)
    assert (nothing.most_readers, nothing.most_bytes) == (0, 0)
    assert nothing.beyond


def test_the_help_names_the_numbers_of_tasks_that_are_tried() -> None:
    (option,) = [one for one in options.advise.params if one.name == "trying"]
    assert isinstance(option, click.Option)
    *numbers, last = [f"{one:,}" for one in COMPARED]
    assert f"{', '.join(numbers)} and {last} tasks beside it" in (option.help or "")


def test_a_trial_as_json_has_each_split_and_the_two_that_are_compared() -> None:
    reported = trial_record(TRIAL)
    splits = [(one["tasks"], one["cores"], one["median"]) for one in reported["splits"]]
    assert splits == [(2, 2, 5.0), (8, 2, 4.0), (8, 4, 3.0)]
    assert (reported["advised"], reported["rival"]) == (
        reported["splits"][1],
        reported["splits"][2],
    )
    assert reported["ratio"] == pytest.approx(4 / 3)
    assert (reported["runs"], reported["disturbed"], reported["model_host"]) == (0, 0, None)
    nothing = trial_record(replace(TRIAL, tried=(), model_host="there"))
    assert (nothing["advised"], nothing["rival"], nothing["ratio"]) == (None, None, None)
    assert nothing["model_host"] == "there"
