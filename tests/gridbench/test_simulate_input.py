"""What is asked of simulations: works, what is varied, memory, cases of models, and profiles."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from gridbench.errors import InputError
from gridbench.model.kind import CaseEstimate, FittedModel, ModelParameter, Span
from gridbench.model.model import PipelineModel
from gridbench.model.observation import Situation
from gridbench.model.saved import save_models
from gridbench.printing import Printing
from gridbench.simulate import command
from gridbench.simulate import sweep as cases
from gridbench.simulate.command import SimulationParameters
from gridbench.simulate.profiles import profile_text, read_profile, system, system_of
from gridbench.simulate.simulation import MOST_CORES, MOST_TASKS, SimulatedWorkload
from gridbench.simulate.sweep import Swept, parse_sweep
from gridbench.workload.numbers import LARGEST_KB, LONGEST_TIME
from test_simulate_shown import ACCOUNT

ASKED = SimulationParameters(profile="gridrpc", cores=4)
NINFG = system("ninfg")


# Works.


def test_without_more_said_each_core_has_ten_tasks_of_30_seconds() -> None:
    work = SimulatedWorkload(cores=4, tasks=40, sleep=30.0)
    assert command._work(ASKED) == work
    assert (work.stddev, work.bytes_in, work.bytes_shared, work.bytes_out) == (0, 0, 0, 0)
    assert work.seed == 1
    assert command._work(replace(ASKED, tasks_per_core=3)).tasks == 12
    assert command._work(replace(ASKED, tasks=7)).tasks == 7
    assert (ASKED.far, ASKED.force, ASKED.show) == (False, False, False)
    usual = SimulationParameters()
    assert (usual.sleep, usual.seed, usual.cores) == (30.0, 1, 100)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("cores=6", {"cores": 6, "tasks": 60}),
        ("tasks=6", {"tasks": 6}),
        ("tasks-per-core=6", {"tasks": 24}),
        ("sleep=6", {"sleep": 6.0}),
        ("stddev=6", {"stddev": 6.0}),
        ("stddev=6000ms", {"stddev": 6.0}),
        ("stddev=20%", {"stddev": 6.0}),
        ("sleep=0.1min", {"sleep": 6.0}),
        ("input=6KB", {"bytes_in": 6144}),
        ("shared=6KB", {"bytes_shared": 6144}),
        ("output=6KB", {"bytes_out": 6144}),
    ],
)
def test_a_sweep_varies_one_thing_alone(text: str, changed: dict[str, float]) -> None:
    sweep = parse_sweep(text)
    work, on = command._varied(ASKED, NINFG, sweep, sweep.values[0])
    assert work == replace(command._work(ASKED), **changed)  # type: ignore[arg-type]
    assert on is NINFG


def test_a_sweep_of_links_varies_the_system_alone() -> None:
    for text, expected in (
        ("link=100mbit", NINFG.on_link(1e8)),
        ("node-link=100mbit", NINFG.behind(1e8)),
    ):
        sweep = parse_sweep(text)
        assert command._varied(ASKED, NINFG, sweep, sweep.values[0]) == (
            command._work(ASKED),
            expected,
        )


ONE = SimulatedWorkload(cores=1, tasks=1, sleep=1.0)


@pytest.mark.parametrize(
    "fine",
    [
        {"cores": MOST_CORES},
        {"tasks": MOST_TASKS},
        {"sleep": 0.0},
        {"sleep": float(LONGEST_TIME)},
        {"stddev": float(LONGEST_TIME)},
        {"bytes_in": LARGEST_KB * 1024.0},
        {"bytes_out": 0.0},
    ],
)
def test_the_largest_and_smallest_works_are_taken(fine: dict[str, float]) -> None:
    replace(ONE, **fine)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ({"cores": 0}, "--cores must be from 1 to 1,000,000, not 0"),
        ({"cores": MOST_CORES + 1}, "--cores must be from 1"),
        ({"tasks": 0}, "--tasks must be from 1 to 10,000,000, not 0"),
        ({"tasks": MOST_TASKS + 1}, "--tasks must be from 1"),
        ({"sleep": LONGEST_TIME * 1.01}, "--sleep must be from 0"),
        ({"stddev": -0.1}, "--stddev must be from 0"),
        ({"sleep": math.inf}, "--sleep must be from 0"),
        ({"stddev": math.nan}, "--stddev must be from 0"),
        ({"bytes_shared": LARGEST_KB * 1024.0 + 1}, "--shared must be from 0 bytes to a terabyte"),
        ({"bytes_out": -1.0}, "--output-per-task must be from 0 bytes to a terabyte"),
    ],
)
def test_other_works_are_refused(wrong: dict[str, float], reported: str) -> None:
    with pytest.raises(InputError, match=reported):
        replace(ONE, **wrong)  # type: ignore[arg-type]


def test_as_much_as_memory_holds_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    # 1,500 bytes for each of 40 tasks and four cores.
    monkeypatch.setattr(command, "available_memory", lambda: 66_000)
    command._check(ASKED, [command._work(ASKED)])
    command._check(replace(ASKED, start_up=0.0), [])
    command._check(replace(ASKED, start_up=float(LONGEST_TIME)), [])
    for wrong in (-0.1, LONGEST_TIME * 1.01, math.nan):
        with pytest.raises(InputError, match="--start-up must be from 0"):
            command._check(replace(ASKED, start_up=wrong), [])
    monkeypatch.setattr(command, "available_memory", lambda: 65_999)
    with pytest.raises(InputError, match="40 tasks on 4 cores need about"):
        command._check(ASKED, [command._work(ASKED)])


def test_a_profile_is_shown_as_its_file_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    request = SimulationParameters(
        profile="ninfg", cores=1, show=True, link="100mbit", node_link="10mbit"
    )
    assert command.run_simulation(request) == 0
    assert capsys.readouterr().out == profile_text(NINFG.on_link(1e8).behind(1e7))


def test_where_the_results_are_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run_simulation(replace(ASKED, out=tmp_path / "one", sleep=0.1)) == 0
    assert capsys.readouterr().err == f"results: {tmp_path / 'one'}\n"
    sweep = replace(ASKED, out=tmp_path / "two", sweep="cores=1,2", sleep=0.1)
    assert command.run_simulation(sweep) == 0
    assert capsys.readouterr().err == f"page: {tmp_path / 'two' / 'sweep.html'}\n"


# The page of a sweep.


def _swept(*values: float) -> Swept:
    sweep = parse_sweep("sleep=" + ",".join(f"{value:g}" for value in values))
    return Swept(sweep, [ACCOUNT] * len(values))


# Cases of models.

PARAMETERS = (
    ModelParameter("cores", "cores"),
    ModelParameter("sleep", "time of a task", "s", harder="less"),
    ModelParameter("input", "task data", "bytes", usual=0.0),
)


@dataclass(frozen=True)
class Stated:
    """A model that only gives its measured cases."""

    measured: Mapping[str, Span] = field(
        default_factory=lambda: {
            "cores": Span(2, 8),
            "sleep": Span(1.0, 1.0),
            "input": Span(0.0, 1024.0),
        }
    )
    name: str = "made-up"
    told: str = "made-up on here"
    quantity: str = "total time"

    def expect(self, case: Mapping[str, float]) -> CaseEstimate:
        return CaseEstimate(total=case["cores"], low=1.0, high=2.0, parts={"ideal": 0.5})


MODEL: FittedModel = Stated()  # type: ignore[assignment]


def test_what_nobody_gives_is_what_all_runs_had_or_what_is_usual() -> None:
    found = cases._cases(MODEL, PARAMETERS, {"cores": [2, 4]})
    assert found == [
        {"cores": 2, "sleep": 1.0, "input": 0.0},
        {"cores": 4, "sleep": 1.0, "input": 0.0},
    ]
    with pytest.raises(InputError, match="the model needs cores"):
        cases._cases(MODEL, PARAMETERS, {})


def test_no_more_than_a_thousand_cases_are_predicted() -> None:
    many = list(range(1, 41))
    assert len(cases._cases(MODEL, PARAMETERS, {"cores": many, "sleep": many[:25]})) == 1000
    with pytest.raises(InputError, match="these are more than 1,000 cases"):
        cases._cases(MODEL, PARAMETERS, {"cores": many, "sleep": many[:26]})


@pytest.mark.parametrize(
    ("case", "far"),
    [
        ({"cores": 80}, False),
        ({"cores": 81}, True),
        # Fewer cores than measured, longer tasks and less data are no harder.
        ({"cores": 0.1}, False),
        ({"sleep": 100.0}, False),
        ({"sleep": 0.1}, False),
        ({"sleep": 0.099}, True),
        ({"input": 10_240}, False),
        ({"input": 10_241}, True),
    ],
)
def test_more_than_ten_times_beyond_the_measured_nothing_is_predicted(
    case: dict[str, float], far: bool
) -> None:
    whole = {"cores": 4.0, "sleep": 1.0, "input": 0.0} | case
    if far:
        with pytest.raises(InputError, match="more than 10 times as far"):
            cases._refuse_far(MODEL, PARAMETERS, whole)
    else:
        cases._refuse_far(MODEL, PARAMETERS, whole)


def test_a_predicted_case_as_json() -> None:
    case = {"cores": 4.0, "sleep": 1.0, "input": 0.0}
    reported = cases.CasePrediction(MODEL, case, MODEL.expect(case)).to_dict()
    assert json.loads(json.dumps(reported)) == {
        "model": "made-up on here",
        "case": case,
        "total_s": 4.0,
        "low_s": 1.0,
        "high_s": 2.0,
        "parts_s": {"ideal": 0.5},
        "outside": [],
    }


def test_predicted_cases_are_printed(
    model: PipelineModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.json"
    save_models([model], path)
    requested = SimulationParameters(
        profile=str(path), cores=1, cases=("cores=2,4", "tasks=8", "sleep=0.02"),
    )  # fmt: skip
    assert command.run_simulation(requested, Printing(as_json=True)) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["case"]["cores"] for row in rows] == [2, 4]
    situation = Situation(cores=4, sleep=np.full(8, 0.02))
    assert rows[1]["total_s"] == model.predict(situation).total


# Profiles.

MINIMAL = '[parameters.to_workers]\n[parameters.from_workers]\n[start_up]\nkind = "batch"\n'
MINIMAL += "constant = 0\nper_worker = 0\n"


def test_a_profile_may_have_costs_of_nothing_but_no_rates(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL)
    found = read_profile(path)
    assert (found.name, found.title, found.link) == ("mine", "from mine.toml", 1e9)
    assert (found.one_host, found.files_per_task, found.resolution) == (False, False, 0.0)
    assert found.measured_cores is None
    path.write_text("resolution = -1\n" + MINIMAL)
    with pytest.raises(InputError, match="resolution is -1"):
        read_profile(path)
    path.write_text(
        MINIMAL.replace('"batch"', '"waves"')
        .replace("constant", "first")
        .replace("per_worker = 0", "second = 0\nstep = 0\nmost_at_once = 0")
    )
    with pytest.raises(InputError, match=r"start_up\.most_at_once is 0"):
        read_profile(path)


@pytest.mark.parametrize("place", ["", "parameters.", "parameters.to_workers.", "start_up."])
def test_what_a_profile_does_not_have_is_reported_with_its_place(
    place: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    head = f"[{place.rstrip('.')}]\n" if place else ""
    if place == "parameters.":
        path.write_text(f"{head}speed = 1\n{MINIMAL}")
    else:
        path.write_text(MINIMAL.replace(head, f"{head}speed = 1\n", 1))
    with pytest.raises(InputError, match=f"is not a profile: {place}speed is not known"):
        read_profile(path)


def test_a_profile_that_is_shown_has_the_sources_of_its_figures() -> None:
    lines = profile_text(NINFG).splitlines()
    reported = [line for line in lines if line.startswith("# ") and line.endswith(")")]
    assert len(reported) >= len(NINFG.given) > 3
    for given in NINFG.given:
        (line,) = [one for one in reported if one.startswith(f"# {given.name}: ")]
        assert line.endswith(f"({given.source})")


def test_a_profile_is_a_name_or_a_file_whatever_that_is_called(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text(MINIMAL)
    assert system_of(str(path)).title == "from mine"
    assert system_of("ninfg") == NINFG
    with pytest.raises(InputError, match="there is no profile `none`"):
        system_of("none")
    with pytest.raises(InputError, match="cannot read the profile"):
        system_of(str(tmp_path / "none.toml"))


def test_a_deviation_is_a_time_or_a_share_of_the_mean() -> None:
    for text, seconds in (("0", 0.0), ("5", 5.0), ("500ms", 0.5), ("1min", 60.0), ("50%", 15.0)):
        assert command._work(replace(ASKED, stddev=text)).stddev == seconds
    # Of each of the means that are swept.
    sweep = parse_sweep("sleep=10,20")
    works = [
        command._varied(replace(ASKED, stddev="50%"), NINFG, sweep, value)[0]
        for value in sweep.values
    ]
    assert [work.stddev for work in works] == [5.0, 10.0]
    shares = parse_sweep("stddev=20%,50%")
    assert [shares.axis.text(value) for value in shares.values] == ["20 %", "50 %"]
