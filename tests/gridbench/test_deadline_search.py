"""The fewest cores with which a work ends within a time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gridbench.advise.advice import advise
from gridbench.advise.prose import sentences
from gridbench.advise.search import best_on, predict, within
from gridbench.advise.uneven import Uneven
from gridbench.advise.work import DivisibleWork
from gridbench.model.model import PipelineModel
from gridbench.model.saved import save_models
from running import Run
from synthetic import MB

WORK = DivisibleWork(seconds=2.0, cores=16)
BLOCKS = (1, 2, 3, 4, 6, 10, 15, 25)


def brute(model: PipelineModel, work: DivisibleWork, limit: float) -> tuple[int | None, int | None]:
    """The fewest cores with which it is expected to end in time, and those whose interval does."""
    splits = [(cores, cores * blocks) for cores in range(1, work.cores + 1) for blocks in BLOCKS]
    expected = {split: predict(model, work, split[1], split[0]) for split in splits}
    likely = [cores for (cores, _), one in expected.items() if one.total <= limit]
    sure = [cores for (cores, _), one in expected.items() if one.high <= limit]
    return min(likely, default=None), min(sure, default=None)


@pytest.mark.parametrize(
    "work",
    [
        WORK,
        DivisibleWork(seconds=0.5, cores=16, bytes_in=16 * MB, bytes_out_each=MB),
        DivisibleWork(seconds=2.0, cores=16, warm=True),
    ],
)
def test_no_fewer_cores_end_in_time(model: PipelineModel, work: DivisibleWork) -> None:
    answers = set()
    for limit in (3.0, 1.0, 0.6, 0.35, 0.25, 0.21, 0.18, 0.15, 0.1):
        found = within(model, work, limit)
        answer = (
            found.likely and found.likely.cores,
            found.sure and found.sure.cores,
        )
        assert answer == brute(model, work, limit), limit
        answers.add(answer)
        if found.likely:
            assert found.likely.total <= limit
            assert found.advised == (found.sure or found.likely)
        else:
            assert found.advised == found.shortest
            assert found.shortest.total > limit
    assert len(answers) >= 5
    assert (None, None) in answers


def test_uneven_work_needs_more_cores(model: PipelineModel) -> None:
    uneven = replace(WORK, uneven=Uneven(share=0.5))
    for limit in (1.0, 0.5, 0.3):
        even, found = within(model, WORK, limit), within(model, uneven, limit)
        assert even.likely is not None
        assert found.likely is not None
        assert found.sure is not None
        assert even.likely.cores <= found.likely.cores <= found.sure.cores
        expected = predict(model, uneven, found.sure.tasks, found.sure.cores)
        assert expected.high <= limit
        assert found.sure.total == expected.total
        assert predict(model, uneven, found.likely.tasks, found.likely.cores).total <= limit
    uneven_sure, even_sure = within(model, uneven, 0.25).sure, within(model, WORK, 0.25).sure
    assert even_sure is not None
    assert uneven_sure is None or uneven_sure.cores > even_sure.cores


def test_cores_that_only_cost_are_not_asked_for(model: PipelineModel) -> None:
    # Starting 16 workers takes longer than the work on a few.
    work = DivisibleWork(seconds=0.05, cores=16)
    best = advise(model, work).split
    assert best.cores < 8
    assert best_on(model, work, 16, 1.0).total > best.total * 1.01
    found = within(model, work, best.total * 1.005)
    assert found.likely is not None
    assert found.likely.cores <= best.cores


def test_the_advice_is_of_the_cores_that_end_in_time(model: PipelineModel) -> None:
    advice = advise(model, WORK, limit=0.5)
    assert advice.within is not None
    assert advice.split == advice.within.sure
    assert advice.expected.high <= 0.5
    assert advice.split.cores < advise(model, WORK).split.cores
    first, second, *_ = sentences(advice)
    assert first.startswith(f"To end within 0.5 s, take {advice.split.cores} cores: with these, 19")
    assert f"on {advice.split.cores} of the 16 cores" in second


def test_what_is_likely_only_is_reported_as_that(model: PipelineModel) -> None:
    unsure = replace(model, fit=replace(model.fit, spread=2.0))
    limit = 0.25
    advice = advise(unsure, WORK, limit=limit)
    assert advice.within is not None
    assert advice.within.sure is None
    assert advice.split == advice.within.likely
    reported = sentences(advice)[0]
    assert reported.startswith(
        f"From {advice.split.cores} cores on, the work ends within 0.25 s more"
    )
    assert "with no number of cores up to 16 do 19 of 20 runs" in reported


def test_the_bottleneck_is_reported_where_no_number_of_cores_is_enough(
    model: PipelineModel,
) -> None:
    reported = sentences(advise(model, DivisibleWork(seconds=0.1, cores=16), limit=0.02))[0]
    assert "With no number of cores up to 16 does the work end within 0.02 s" in reported
    assert "the bottleneck then is starting workers" in reported


def test_one_core_may_be_enough(model: PipelineModel) -> None:
    assert sentences(advise(model, WORK, limit=10.0))[0] == (
        "To end within 10 s, take 1 core: with these, 19 of 20 runs do."
    )


def test_the_command_answers_how_many_cores(
    model: PipelineModel, tmp_path: Path, gridbench: Run
) -> None:
    save_models([model], tmp_path / "model.json")
    command = ("advise", "--work", "2s", "--cores", "16", "--task", "sleep", "--from", "model.json")
    done = gridbench(*command, "--within", "500ms", "--out", "advice", "--json")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    likely, sure = brute(model, WORK, 0.5)
    assert reported["within"]["limit"] == 0.5
    assert (reported["within"]["likely"]["cores"], reported["within"]["sure"]["cores"]) == (
        likely,
        sure,
    )
    assert reported["advised"]["cores"] == sure
    assert "To end within 0.5 s, take" in (tmp_path / "advice" / "report.html").read_text()
    bad = gridbench(*command, "--within", "soon")
    assert bad.returncode == 2
    assert "--within: `soon` is not a time" in bad.stderr
