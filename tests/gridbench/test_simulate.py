"""Simulated runs: systems, throttling, bottlenecks, and profiles of one's own."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridbench.analysis.columns import seconds
from gridbench.errors import InputError
from gridbench.formats import duration
from gridbench.model.pipeline import Link, Manager, PipelineParameters, evaluate
from gridbench.simulate.account import account, gains, limit, notices, uses
from gridbench.simulate.comparison import against_published
from gridbench.simulate.profiles import SYSTEMS, profile_text, read_profile, system
from gridbench.simulate.simulation import (
    SimulatedWorkload,
    Simulation,
    case_of,
    cautions_of,
    simulate,
)
from gridbench.simulate.systems import Level, Pressure, Throttling, Waves
from gridbench.simulate.timeline import summary_of, table_of

REPOSITORY = Path(__file__).parents[2]
MEGABYTE = 1 << 20
WORK = SimulatedWorkload(
    cores=40, tasks=160, sleep=1.0, stddev=0.2, bytes_in=MEGABYTE, bytes_out=MEGABYTE / 2
)
names = pytest.mark.parametrize("name", list(SYSTEMS))


def same_stamps(one: Simulation, other: Simulation) -> bool:
    return all(
        np.array_equal(getattr(one.stamps, field), getattr(other.stamps, field))
        for field in ("submit", "calc_in", "calc_out", "retrieve", "worker")
    )


@names
def test_stamps_follow_each_other(name: str) -> None:
    done = simulate(WORK, system(name))
    stamps = done.stamps
    order = [stamps.submit, stamps.sent, stamps.calc_in, stamps.calc_out, stamps.retrieve]
    for before, after in itertools.pairwise(order):
        assert np.all(before <= after)
    assert done.total >= done.ideal
    assert np.allclose(stamps.calc_out - stamps.calc_in, done.case.sleep)


@names
def test_the_same_seed_gives_the_same_run(name: str) -> None:
    assert same_stamps(simulate(WORK, system(name)), simulate(WORK, system(name)))
    other = replace(WORK, seed=2)
    assert not same_stamps(simulate(WORK, system(name)), simulate(other, system(name)))


def test_instances_come_in_waves() -> None:
    waves = Waves(first=0.25, second=5.0, step=0.5, most_at_once=2)
    assert waves.ready(7).tolist() == [0.25, 5.0, 5.5, 5.5, 6.0, 6.0, 6.5]
    assert waves.ready(2).tolist() == [0.25, 5.0]
    assert waves.ready(1).tolist() == [0.25]


def test_symphony_starts_as_it_was_measured() -> None:
    # 5.577 s with 10 cores, 5.6 s with 100 (5.5.6-1).
    for cores in (10, 100):
        assert system("symphony").start_up.ready(cores).max() == pytest.approx(5.58, abs=0.03)


def test_the_first_instance_does_all_the_work_of_tasks_that_take_no_time() -> None:
    done = simulate(SimulatedWorkload(cores=100, tasks=1000, sleep=0.0), system("symphony"))
    assert set(done.stamps.worker) == {0}
    assert done.total < 5.0


def test_ninfg_starts_as_the_report_says() -> None:
    assert system("ninfg").start_up.ready(100).tolist() == [pytest.approx(19.2)] * 100


@names
def test_rates_are_as_large_a_part_of_any_link(name: str) -> None:
    fast, slow = system(name), system(name).on_link(1e8)
    assert slow.link == 1e8
    pairs = [
        (getattr(fast.parameters, link).rate, getattr(slow.parameters, link).rate)
        for link in ("to_workers", "from_workers")
    ]
    pairs.append((fast.parameters.shared_rate, slow.parameters.shared_rate))
    if fast.parameters.manager and slow.parameters.manager:
        pairs.append((fast.parameters.manager.inward.rate, slow.parameters.manager.inward.rate))
    assert all(slower == pytest.approx(faster / 10) for faster, slower in pairs)


def test_a_slower_link_makes_transfers_as_much_longer() -> None:
    work = SimulatedWorkload(cores=20, tasks=20, sleep=0.0, bytes_in=100 * MEGABYTE)

    def transfers(link: float) -> float:
        ninfg = system("ninfg").on_link(link)
        empty = simulate(replace(work, bytes_in=0.0), ninfg, start_up=0.0).total
        return simulate(work, ninfg, start_up=0.0).total - empty

    assert transfers(1e8) == pytest.approx(10 * transfers(1e9), rel=0.02)


def test_workers_behind_slow_links_of_their_own_get_their_data_later() -> None:
    work = SimulatedWorkload(cores=4, tasks=4, sleep=1.0, bytes_in=100 * MEGABYTE)
    slow = system("ninfg").behind(1e8)
    done = simulate(work, slow, start_up=0.0)
    # All at once at 100 Mbit/s each, which is less than the client's link has.
    assert done.stamps.calc_in.max() == pytest.approx(work.bytes_in / (1e8 / 8), rel=0.02)
    assert max(use.share for use in uses(done)) < 0.9


def test_condor_sends_shared_data_with_every_task() -> None:
    condor = system("condor")
    work = SimulatedWorkload(cores=2, tasks=6, sleep=1.0, bytes_in=10.0, bytes_shared=30.0)
    case = case_of(work, condor, 0.0, work.times())
    assert (case.bytes_in, case.bytes_shared) == (40.0, 0.0)
    case = case_of(work, system("ninfg"), 0.0, work.times())
    assert (case.bytes_in, case.bytes_shared) == (10.0, 30.0)


def test_condor_knows_whole_seconds_only() -> None:
    table = table_of(simulate(WORK, system("condor")))
    for name in ("submit", "calc_in", "calc_out", "retrieve"):
        stamps = seconds(table, name)
        assert np.array_equal(stamps, np.round(stamps))


@names
def test_a_simulated_timeline_says_what_the_simulation_does(name: str) -> None:
    exact = replace(system(name), resolution=0.0)
    done = simulate(WORK, exact)
    table = table_of(done)
    summary = summary_of(done, table)
    assert (summary.ok, summary.missing) == (WORK.tasks, 0)
    assert summary.total == pytest.approx(done.total)
    assert summary.ideal == pytest.approx(done.ideal)
    reported = account(done, table)
    assert sum(reported.parts.values()) == pytest.approx(done.total)


# Throttling.


def test_levels_are_shares_of_the_memory_in_use() -> None:
    throttling = Throttling(memory=100.0, disk=1.0)
    used = (0.0, 49.0, 50.0, 60.0, 75.0, 85.0, 200.0)
    assert [throttling.level(bytes_) for bytes_ in used] == [0, 0, 1, 2, 3, 4, 4]


def test_with_memory_enough_a_manager_is_as_without_bounds() -> None:
    bounded = replace(system("symphony"), throttling=Throttling(memory=1e15, disk=1.0))
    free = replace(bounded, throttling=None)
    assert same_stamps(simulate(WORK, bounded), simulate(WORK, free))


def test_short_of_memory_a_manager_takes_longer_and_pages() -> None:
    work = replace(WORK, sleep=10.0, bytes_in=8 * MEGABYTE)
    short = Throttling(memory=200.0 * MEGABYTE, disk=20.0 * MEGABYTE)
    bounded = simulate(work, replace(system("symphony"), throttling=short))
    free = simulate(work, replace(system("symphony"), throttling=None))
    assert bounded.total > free.total
    assert bounded.pressure is not None
    assert bounded.pressure.paged > 0
    assert bounded.pressure.worst >= Level.PROACTIVE
    assert bounded.pressure.most < 160 * 8 * MEGABYTE


@settings(max_examples=60, deadline=None)
@given(
    memory=st.floats(0.1, 100),
    disk=st.floats(0.5, 200),
    slower=st.floats(1, 10),
    sizes=st.tuples(st.floats(0, 20), st.floats(0, 20)),
    sleep=st.floats(0, 3),
)
def test_every_task_comes_back_however_short_the_memory(
    memory: float, disk: float, slower: float, sizes: tuple[float, float], sleep: float
) -> None:
    throttling = Throttling(memory=memory * MEGABYTE, disk=disk * MEGABYTE, slower=slower)
    work = SimulatedWorkload(
        cores=7,
        tasks=30,
        sleep=sleep,
        bytes_in=sizes[0] * MEGABYTE,
        bytes_out=sizes[1] * MEGABYTE,
    )
    done = simulate(work, replace(system("symphony"), throttling=throttling))
    assert np.isfinite(done.stamps.retrieve).all()
    assert done.total >= done.ideal


def test_throttling_is_of_managers_only() -> None:
    ninfg = replace(system("ninfg"), throttling=Throttling(memory=1.0, disk=1.0))
    with pytest.raises(InputError, match="only a manager can throttle"):
        simulate(WORK, ninfg)


@pytest.mark.parametrize(
    "wrong", [{"memory": 0.0}, {"disk": 0.0}, {"slower": 0.5}, {"severe": 0.4}, {"proactive": 0.0}]
)
def test_absurd_throttling_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="throttling"):
        Throttling(**({"memory": 1.0, "disk": 1.0} | wrong))


# Bottlenecks.


@pytest.mark.parametrize(
    ("name", "work", "reported"),
    [
        ("symphony", SimulatedWorkload(cores=10, tasks=100, sleep=100.0), "The tasks themselves"),
        (
            "symphony",
            SimulatedWorkload(cores=100, tasks=1000, sleep=0.5, bytes_in=5 * MEGABYTE),
            "The link from the client to the manager",
        ),
        ("ninfg", SimulatedWorkload(cores=100, tasks=100, sleep=1.0), "Start-up"),
        (
            "ninfg",
            SimulatedWorkload(cores=50, tasks=1000, sleep=1.0, bytes_in=10 * MEGABYTE),
            "The link to the workers",
        ),
        ("condor", SimulatedWorkload(cores=100, tasks=5000, sleep=1.0), "The client"),
    ],
)
def test_the_bottleneck_is_reported(name: str, work: SimulatedWorkload, reported: str) -> None:
    done = simulate(work, system(name))
    assert limit(done, uses(done), gains(done)).startswith(reported)


def test_nothing_is_busy_for_longer_than_the_run() -> None:
    for name in SYSTEMS:
        done = simulate(WORK, replace(system(name), throttling=None))
        assert all(0 < use.share <= 1 + 1e-9 for use in uses(done))


def test_what_would_be_gained_is_what_a_run_without_it_takes() -> None:
    done = simulate(WORK, system("symphony"))
    found = {gain.without: gain for gain in gains(done)}
    assert set(found) == {
        "start-up",
        "data",
        "work and waits for each task",
        "differences between tasks",
        "throttling",
    }
    warm = simulate(WORK, system("symphony"), start_up=0.0)
    assert found["start-up"].total == warm.total
    assert found["throttling"].saved == 0.0


# The model that the published figures were predicted with.


def test_throttling_does_not_change_the_published_predictions() -> None:
    # 1,000 tasks of 1 MB are far from what made the manager short of memory.
    symphony = system("symphony")
    work = SimulatedWorkload(cores=100, tasks=1000, sleep=0.1, bytes_in=MEGABYTE)
    done = simulate(work, symphony)
    assert done.total == evaluate(done.case, symphony.parameters).total


def test_more_cores_than_were_measured_are_said_to_be_an_extrapolation() -> None:
    assert not any("extrapolated" in reported for reported in notices(system("symphony"), 400))
    assert any("extrapolated" in reported for reported in notices(system("symphony"), 401))
    assert any("not known" in reported for reported in notices(system("condor"), 1))


# Profiles as files.


@names
def test_a_profile_is_read_as_it_was_shown(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(profile_text(system(name)))
    assert read_profile(path) == replace(system(name), given=())


MINIMAL = '[parameters.to_workers]\n[parameters.from_workers]\n[start_up]\nkind = "batch"\n'
MINIMAL += "constant = 1\nper_worker = 0\n"


def test_what_a_profile_leaves_out_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bare.toml"
    path.write_text(MINIMAL)
    work = SimulatedWorkload(cores=3, tasks=9, sleep=2.0, bytes_in=1e9)
    assert simulate(work, read_profile(path)).total == 7.0
    assert read_profile(path).name == "bare"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("= 1", "is not TOML"),
        ("", "parameters is missing"),
        (MINIMAL + "[parameters.to_workers]", "is not TOML"),
        ("typo = 1\n" + MINIMAL, "typo is not known"),
        (MINIMAL + "constnat = 1\n", "start_up.constnat is not known"),
        (MINIMAL.replace('"batch"', '"never"'), "start_up.kind is `never`"),
        (MINIMAL.replace("constant = 1", "constant = -1"), "start_up.constant is -1"),
        (MINIMAL.replace("constant = 1", "constant = nan"), "start_up.constant"),
        (MINIMAL.replace("constant = 1\n", ""), "start_up.constant is missing"),
        ("link = 0\n" + MINIMAL, "link is 0"),
        (MINIMAL.replace("to_workers]", "to_workers]\nrate = 0"), "to_workers.rate is 0"),
        (MINIMAL.replace("to_workers]", 'to_workers]\nsharing = "no"'), "sharing is `'no'`"),
        (MINIMAL + "[throttling]\nmemory = 1\ndisk = 1\nslower = 0\n", "throttling"),
    ],
)
def test_a_profile_that_cannot_be_is_refused(text: str, reported: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_profile(path)
    assert reported in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_profile_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the profile"):
        read_profile(tmp_path / "none.toml")


# The runs that show how Symphony's manager behaved, figures 5.4.1-2 to -15.

SHORT_OF_MEMORY = {
    "5.4.1-2": (100, 200, 20.0, 10 * MEGABYTE, 10 * MEGABYTE),
    "5.4.1-11": (400, 1200, 30.0, 10 * MEGABYTE, 0.0),
}
"""Cores, tasks, seconds, input and output of each task."""
UNTOLD = {
    "5.4.1-7": (100, 400, 1.0, MEGABYTE, MEGABYTE),
    "5.4.1-13": (200, 600, 30.0, 0.0, 10 * MEGABYTE),
    "5.4.1-15": (100, 400, 0.25, MEGABYTE, 0.0),
}
"""Short of memory in the report, and not by what is known of its manager: see docs/simulate.md."""
UNDISTURBED = {
    "5.4.1-6": (100, 400, 1.0, MEGABYTE / 10, MEGABYTE / 10),
    "5.4.1-8": (400, 1200, 30.0, 0.0, 0.0),
    "5.4.1-10": (400, 1200, 30.0, MEGABYTE, 0.0),
    "5.4.1-12": (200, 600, 30.0, 0.0, MEGABYTE),
    "5.4.1-14": (100, 400, 0.25, MEGABYTE / 100, 0.0),
}


@pytest.mark.parametrize("name", [*SHORT_OF_MEMORY, *UNTOLD, *UNDISTURBED])
def test_symphony_is_short_of_memory_where_it_was_seen(name: str) -> None:
    cores, tasks, sleep, bytes_in, bytes_out = (SHORT_OF_MEMORY | UNTOLD | UNDISTURBED)[name]
    work = SimulatedWorkload(
        cores=cores, tasks=tasks, sleep=sleep, bytes_in=bytes_in, bytes_out=bytes_out
    )
    done = simulate(work, system("symphony"))
    pressure = done.pressure
    assert pressure is not None
    assert (pressure.worst >= Level.PROACTIVE) == (name in SHORT_OF_MEMORY)
    assert (pressure.paged > 0) == (name in SHORT_OF_MEMORY)
    # As the documentation tells, which has the untold ones as well.
    page = (REPOSITORY / "docs" / "simulate.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if f"({name})" in line]
    assert row.split(" | ")[1] == ("not short" if name in UNDISTURBED else "short")
    requested = cores / sleep * 8 * max(bytes_in / 513, bytes_out / 570) / MEGABYTE
    assert row.rstrip(" |").split(" | ")[-1] == f"{requested:.0%}".replace("%", " %")
    assert (requested > 0.5) == (name not in UNDISTURBED)
    held = row.split(" | ")[2].removesuffix(" GB")
    assert float(held) == pytest.approx(pressure.most / 2**30, rel=0.1, abs=1e-3)
    # The link limits all ten, and the report says so.
    reported = [text for text in cautions_of(done.case, done.system, pressure) if "link" in text]
    assert len(reported) == (name not in UNDISTURBED)
    assert all(text.startswith(f"Tasks ask for {requested * 100:.0f} % of") for text in reported)


@pytest.mark.parametrize(
    ("most", "reported"), [(20.0, False), (34.5, False), (35.0, True), (45.0, True)]
)
def test_a_manager_is_near_to_throttling_from_70_percent_of_its_bound_on(
    most: float, reported: bool
) -> None:
    # It begins with half of its memory.
    bounded = replace(system("symphony"), throttling=Throttling(memory=100.0, disk=1.0))
    case = simulate(SimulatedWorkload(cores=2, tasks=4, sleep=1.0), bounded).case
    found = cautions_of(case, bounded, Pressure(most=most))
    assert len(found) == reported
    assert all(f"{most * 2:.0f} % of the 50 B with which it begins" in text for text in found)


def test_less_memory_does_not_tell_which_runs_were_short_of_it() -> None:
    # As docs/simulate.md has it: what makes all five short makes another one so, too.
    known = system("symphony")
    assert known.throttling is not None
    small = replace(known, throttling=replace(known.throttling, memory=0.6 * 2**30))
    short, totals = set(), {}
    runs = SHORT_OF_MEMORY | UNTOLD | UNDISTURBED
    for name, (cores, tasks, sleep, bytes_in, bytes_out) in runs.items():
        work = SimulatedWorkload(
            cores=cores, tasks=tasks, sleep=sleep, bytes_in=bytes_in, bytes_out=bytes_out
        )
        done = simulate(work, small)
        assert done.pressure is not None
        if done.pressure.worst >= Level.PROACTIVE:
            short.add(name)
        totals[name] = done.total - simulate(work, known).total
    assert short == {*SHORT_OF_MEMORY, *UNTOLD, "5.4.1-10"}
    assert totals["5.4.1-10"] == pytest.approx(2.8, abs=0.1)
    assert totals["5.4.1-7"] == pytest.approx(0, abs=0.05)


def test_data_is_kept_until_its_task_is_done() -> None:
    # Three tasks of 10 bytes come in 3 s; each is with its worker at once, for 100 s.
    free = Link()
    parts = PipelineParameters(
        manager=Manager(inward=Link(rate=10.0), outward=free), to_workers=free, from_workers=free
    )
    held = []
    for until_done in (False, True):
        one = replace(
            system("symphony"),
            parameters=parts,
            throttling=Throttling(memory=1000.0, disk=1.0, until_done=until_done),
        )
        work = SimulatedWorkload(cores=3, tasks=3, sleep=100.0, bytes_in=10.0)
        pressure = simulate(work, one, start_up=0.0).pressure
        assert pressure is not None
        held.append(pressure.most)
    assert held == [10.0, 30.0]


def test_the_documentation_has_all_published_spans() -> None:
    page = (REPOSITORY / "docs" / "simulate-accuracy.md").read_text(encoding="utf-8")
    calc_in, retrieve, *_ = against_published(lambda *_: None)
    for one in (*calc_in.rows, *retrieve.rows):
        times = f"{duration(one.real)} | {duration(one.simulated)}"
        assert f"| {one.what} | {times} | {one.error * 100:+.0f} % |" in page
