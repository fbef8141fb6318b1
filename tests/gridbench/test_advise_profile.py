"""Advice for systems that are described, and not measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridbench.advise.advice import advise
from gridbench.advise.document import document_of
from gridbench.advise.profiled import Profiled
from gridbench.advise.prose import sentences, warnings
from gridbench.advise.search import total_of
from gridbench.advise.uneven import Uneven
from gridbench.advise.work import DivisibleWork
from gridbench.model.pipeline import Manager, WorkerStart
from gridbench.pages.render import page as html
from gridbench.simulate import simulation as simulated
from gridbench.simulate.profiles import SYSTEMS, system
from gridbench.simulate.simulation import simulate
from running import Run
from synthetic import MB

WORK = DivisibleWork(
    seconds=20_000.0,
    cores=100,
    bytes_in=200 * MB,
    bytes_in_each=MB / 4,
    bytes_shared=10 * MB,
    bytes_out=400 * MB,
)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("warm", [False, True])
def test_totals_are_those_that_are_simulated(name: str, warm: bool) -> None:
    known = system(name)
    one = replace(WORK, warm=warm)
    for tasks, cores in ((100, 100), (400, 40)):
        requested = simulated.SimulatedWorkload(
            cores=cores,
            tasks=tasks,
            sleep=one.seconds / tasks,
            bytes_in=one.bytes_in / tasks + one.bytes_in_each,
            bytes_shared=one.bytes_shared,
            bytes_out=one.bytes_out / tasks,
        )
        done = simulate(requested, known, start_up=0.0 if warm else None)
        assert total_of(Profiled(known), one, tasks, cores) == pytest.approx(done.total)


def test_a_manager_short_of_memory_is_followed_too() -> None:
    known = system("symphony")
    assert known.throttling is not None
    short = replace(known, throttling=replace(known.throttling, memory=100.0 * MB))
    work = DivisibleWork(seconds=100.0, cores=10, bytes_in_each=10.0 * MB)
    total = total_of(Profiled(short), work, 100, 10)
    requested = simulated.SimulatedWorkload(cores=10, tasks=100, sleep=1.0, bytes_in=10.0 * MB)
    assert total == pytest.approx(simulate(requested, short).total)
    assert total > 1.05 * total_of(Profiled(replace(known, throttling=None)), work, 100, 10)


@pytest.mark.parametrize("name", SYSTEMS)
def test_no_other_split_is_much_better(name: str) -> None:
    known = Profiled(system(name))
    for work in (
        WORK,
        DivisibleWork(seconds=500.0, cores=100),
        DivisibleWork(seconds=1e6, cores=1000),
    ):
        split = advise(known, work).split
        for cores in (1, work.cores // 4, work.cores // 2, work.cores):
            for blocks in (1, 2, 4, 10):
                other = total_of(known, work, cores * blocks, cores)
                assert split.total <= other * 1.05, (work, cores, blocks)


@pytest.mark.parametrize("name", SYSTEMS)
def test_parts_add_up_and_leave_the_work_itself(name: str) -> None:
    advice = advise(Profiled(system(name)), WORK)
    parts = dict(advice.parts)
    assert sum(parts.values()) == pytest.approx(advice.expected.total, rel=0.01)
    assert parts["computing"] == pytest.approx(advice.expected.ideal, rel=0.01)
    assert parts["output"] > 0


def test_a_faster_link_helps_as_much_as_it_does_in_a_simulation() -> None:
    known = system("ninfg")
    advice = advise(Profiled(known), WORK)
    (total,) = (one.total for one in advice.helps if one.what == "a link twice as fast")
    faster = Profiled(known.on_link(2 * known.link))
    split = advice.split
    assert total == pytest.approx(total_of(faster, WORK, split.tasks, split.cores))


def test_a_start_of_its_own_is_scaled_and_left_out() -> None:
    known = system("gridrpc")
    start = WorkerStart(constant=2.0, serial=0.5, parallel=1.0)
    own = replace(known.parameters, manager=Manager(), start=start)
    profiled = Profiled(
        replace(known, parameters=own, start_up=replace(known.start_up, constant=0, per_worker=0))
    )
    work = DivisibleWork(seconds=10.0, cores=2)
    (situation,) = work.drawn(2, 2)
    cold = profiled.totals([situation])[0]
    assert cold == pytest.approx(2.0 + 2 * 0.5 + 1.0 + 5.0, rel=0.01)
    half = profiled.totals([situation], {"start.all": 0.5})[0]
    warm = profiled.totals([replace(situation, warm=True)])[0]
    assert half == pytest.approx((cold + warm) / 2, rel=1e-4)
    assert warm == pytest.approx(5.0, rel=0.01)


def test_no_interval_is_reported_where_none_is_known() -> None:
    advice = advise(Profiled(system("ninfg")), DivisibleWork(seconds=1e5, cores=400))
    reported = " ".join(sentences(advice))
    assert "9 of 10" not in reported
    assert "cores of ninfg" in reported
    warned = " ".join(warnings(advice))
    assert "A profile gives no error" in warned
    assert "runs with at most 100 cores, and this has more" in warned
    assert "allocation, for each core" in html(document_of(advice))
    few = advise(Profiled(system("ninfg")), DivisibleWork(seconds=1e5, cores=50))
    assert not few.expected.extrapolated


def test_uneven_tasks_have_an_interval_of_their_own() -> None:
    work = DivisibleWork(seconds=1e4, cores=50, uneven=Uneven(share=0.5))
    expected = advise(Profiled(system("ninfg")), work).expected
    assert expected.low < expected.total < expected.high


def test_how_many_cores_end_it_in_time() -> None:
    known = Profiled(system("ninfg"))
    work = DivisibleWork(seconds=1e4, cores=400)
    advice = advise(known, work, limit=300.0)
    found = advice.within
    assert found is not None
    assert found.likely is not None
    blocks = (1, 2, 3, 4)
    cores = found.likely.cores
    assert min(total_of(known, work, cores * one, cores) for one in blocks) <= 300.0
    assert min(total_of(known, work, (cores - 1) * one, cores - 1) for one in blocks) > 300.0
    reported = sentences(advice)[0]
    assert reported == f"From {cores} cores on, the work is expected to end within 300 s."
    # Twice as many as advised, and not as there are.
    steps = [one for one in advice.helps if "cores instead of" in one.what]
    assert [one.what for one in steps] == [
        f"{2 * advice.split.cores:,} cores instead of {advice.split.cores:,}"
    ]


def test_the_command_takes_a_name_or_a_file(tmp_path: Path, gridbench: Run) -> None:
    command = ("advise", "--work", "10h", "--cores", "1000", "--json", "--out", "advice", "--force")
    named = gridbench(*command, "--profile", "ninfg")
    assert named.returncode == 0, named.stderr
    reported = json.loads(named.stdout)
    assert reported["engine"] == "ninfg"
    best = Profiled(system("ninfg"))
    work = DivisibleWork(seconds=36_000.0, cores=1000, body="spin")
    assert reported["expected"]["total"] == pytest.approx(
        total_of(best, work, reported["advised"]["tasks"], reported["advised"]["cores"])
    )
    assert "Ninf-G with Grid Engine" in (tmp_path / "advice" / "report.html").read_text()
    shown = gridbench("simulate", "--profile", "ninfg", "--show").stdout
    (tmp_path / "mine.toml").write_text(shown)
    mine = gridbench(*command, "--profile", "mine.toml")
    assert json.loads(mine.stdout)["advised"] == reported["advised"]
    assert np.isclose(json.loads(mine.stdout)["expected"]["total"], reported["expected"]["total"])


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (("--profile", "nothing"), "there is no profile `nothing`"),
        (("--profile", "missing.toml"), "missing.toml"),
        (("--profile", "model.json"), "give a saved model by --from"),
        (("--profile", "ninfg", "--engine", "ray"), "--engine is for an engine"),
        (("--profile", "ninfg", "--try"), "--try is for an engine"),
        (("--profile", "ninfg", "--renew"), "--renew is for an engine"),
    ],
)
def test_what_does_not_go_with_a_profile_is_refused(
    refused: Run, more: tuple[str, ...], what: str
) -> None:
    done = refused("advise", "--work", "1s", "--cores", "2", *more)
    assert done.returncode == 2
    assert what in done.stderr
    assert "Traceback" not in done.stderr
