"""`gridbench placement simulate`: scenarios, records, comparisons, and what can go wrong."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
from pathlib import Path

import pytest

from gridbench.errors import InputError
from gridbench.placement.comparison import geometric, settings_of
from gridbench.placement.document import document_of
from gridbench.placement.options import PlacementParameters
from gridbench.placement.record import (
    FORM,
    PlacedCall,
    PlacedCalls,
    PlacementCase,
    PlacementTotals,
    PlannedPlacementCase,
    ServerPolicy,
)
from gridbench.placement.scenario import DEFAULT_SCENARIO, read_scenario
from gridbench.schema import read_parameters
from running import PROGRAM, Run, until

SCENARIO = """
name = "campus"
interval = "500ms"

[[servers]]
name = "far"
count = 3
cores = 4
speed = 2e9
rate = "100mbit"
latency = "20ms"
links.near = { rate = "1gbit" }

[[servers]]
name = "whole"
cores = 2
call_cores = "all"
announced_speed = 5e9

[[clients]]
name = "near"
count = 3

[[clients]]
name = "away"

[[functions]]
name = "solve"
bytes_in = "8MB"
operations = 6.7e8

[workload]
kind = "bursts"
load = "40%"
duration = "20s"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "campus.toml"
    path.write_text(SCENARIO)
    return path


def test_a_scenario_is_read_from_a_file(file: Path) -> None:
    found = read_scenario(file)
    assert (found.name, found.interval, found.server_count, found.client_count) == (
        "campus", 0.5, 4, 4,
    )  # fmt: skip
    assert [one.name for one in found.each_server()] == ["far-1", "far-2", "far-3", "whole"]
    far, whole = found.servers
    assert far.link_to("away") == far.link
    assert found.described()["servers"][0] == (
        "name=far count=3 cores=4 speed=2,000,000,000 link.rate=100,000,000 link.latency=0.02"
        " links.near=1,000,000,000/0.02s"
    )
    assert (far.link_to("near").rate, far.link_to("near").latency) == (1e9, 0.02)
    assert far.link.bandwidth == 12.5e6
    assert (far.slots, far.announced) == (4, 2e9)
    assert (whole.slots, whole.call_speed, whole.announced) == (1, 2e9, 5e9)
    assert found.group_of_clients() == [0, 0, 0, 1]
    assert found.functions[0].bytes_in == 8 << 20
    assert (found.workload.kind, found.workload.load, found.workload.burst) == ("bursts", 0.4, 10)
    assert found.capacity == 3 * 8e9 + 2e9
    assert found.rate == pytest.approx(0.4 * 26e9 / 6.7e8)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('speed = 2e9', 'speeed = 2e9', "speeed.*did you mean `speed`"),
        ('speed = 2e9', 'speed = 0', ":9:.*above 0"),
        ('speed = 2e9', 'speed = true', "above 0"),
        ('speed = 2e9', 'speed = nan', "above 0"),
        ('speed = 2e9', 'speed = [1]', "above 0"),
        ('cores = 4', 'cores = -1', "1 to 100,000"),
        ('cores = 4', 'cores = 1e30', "1 to 100,000"),
        ('"100mbit"', '"100mb"', "rate.*did you mean `100mbit`"),
        ('"20ms"', '"20 years"', "latency"),
        ("links.near", "links.moon", "moon.*group of clients"),
        ('links.near = { rate = "1gbit" }', "links = 3", "no table"),
        ('name = "away"', 'name = "near"', "two of `clients`"),
        ('name = "away"', "", "no `name`"),
        ('kind = "bursts"', 'kind = "waves"', "poisson, bursts, steps, batch"),
        ('load = "40%"', 'load = "4000%"', "1% to 300%"),
        ('"8MB"', '"-8MB"', "below 0"),
        ("count = 3\ncores", "count = 10001\ncores", "1 to 10,000"),
        ("[workload]", "[work]", "work"),
        ("[[functions]]", "[functions]", "array of tables"),
        (SCENARIO, "", "servers.*array of tables|clients.*array of tables"),
        (SCENARIO, "[[servers", "TOML"),
        ('interval = "500ms"', 'interval = "-1s"', "interval"),
        ('name = "campus"', 'name = ""', "name"),
    ],
)  # fmt: skip
def test_a_wrong_scenario_says_what_and_where(file: Path, old: str, new: str, message: str) -> None:
    assert old in SCENARIO
    file.write_text(SCENARIO.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        read_scenario(file)
    assert re.search(message, str(error.value), re.DOTALL), str(error.value)
    assert "campus.toml" in str(error.value)
    assert error.value.remedy


def test_a_folder_and_a_missing_file_are_no_scenarios(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.toml"):
        with pytest.raises(InputError):
            read_scenario(path)


@pytest.mark.parametrize(("servers", "clients"), [(4, 1), (5, 7), (1000, 100_000)])
def test_a_scaled_scenario_keeps_its_shares(servers: int, clients: int) -> None:
    found = DEFAULT_SCENARIO.scaled(servers, clients)
    assert (found.server_count, found.client_count) == (servers, clients)
    assert all(abs(one.count - servers / 4) < 1 for one in found.servers)


def test_it_cannot_be_scaled_below_its_groups() -> None:
    with pytest.raises(InputError, match=r"--servers: 3 .*4 groups"):
        DEFAULT_SCENARIO.scaled(servers=3)


def test_all_combinations_are_cases(file: Path) -> None:
    own = PlacementParameters(scenario=file)
    assert len(own.cases()) == 1
    many = PlacementParameters(
        scenario=file, workloads=("poisson", "batch"), loads=(0.1, 0.2), intervals=(0.0, 1.0),
        servers=(4, 8), duration=5.0,
    )  # fmt: skip
    # A batch has no load.
    assert len(many.cases()) == 2 * 2 * (2 + 1)
    assert {one.workload.duration for one in many.cases()} == {5.0}
    with pytest.raises(InputError, match="--load is of the workloads"):
        PlacementParameters(workloads=("batch",), loads=(0.5,)).cases()


def test_calls_are_columns_and_rows() -> None:
    rows = [PlacedCall(0, 1, 2, 0.0, 1.0, 2.0, 3.0), PlacedCall(1, 0, 2, 0.5, 2.0, 3.0, 3.5)]
    calls = PlacedCalls.of(rows)
    assert calls.rows() == rows
    assert calls.response.tolist() == [3.0, 3.0]
    assert len(PlacedCalls.of([])) == 0


# ---- Comparison


def case_of(policy: ServerPolicy, seed: int, mean: float, interval: float = 3.0) -> PlacementCase:
    planned = PlannedPlacementCase(
        workload="poisson", offered=0.6, interval=interval, servers=2, clients=8,
        policy=policy, seed=seed,
    )  # fmt: skip
    totals = PlacementTotals(
        calls=10, mean=mean, median=mean, p95=2 * mean, total=100.0, utilisation=(0.5, 0.7),
        shares=(0.4, 0.6),
    )  # fmt: skip
    return planned.recorded_as(PlacementCase, status="done", totals=totals, bound=0.5)


def header() -> object:
    from gridbench.jsonl_store import Header

    return Header(machine={}, versions={}, options={}, started="2031-05-04T10:00:00", seed=1)


def sentences(cases: list[PlacementCase]) -> str:
    return " ".join(document_of(header(), cases).sentences)  # type: ignore[arg-type]


def test_seeds_that_all_agree_have_a_winner_although_they_differ_much() -> None:
    # The same calls: pairs are compared, so that seeds may differ a hundredfold.
    means = [1.0, 10.0, 100.0, 3.0]
    cases = [case_of("least-time", seed, mean) for seed, mean in enumerate(means)]
    cases += [case_of("random", seed, 1.2 * mean) for seed, mean in enumerate(means)]
    setting = settings_of(cases)[0]
    assert setting.winner == "least-time"
    assert setting.lead is not None
    assert setting.lead.value == pytest.approx(1.2)
    assert "least-time wins: random takes 1.20× as long" in sentences(cases)


def test_no_winner_where_the_interval_of_pairs_has_1_in_it() -> None:
    cases = [case_of("least-time", seed, 1.0) for seed in range(4)]
    cases += [case_of("random", seed, mean) for seed, mean in enumerate([2.0, 0.7, 2.0, 0.7])]
    setting = settings_of(cases)[0]
    assert setting.ranked[0] == "least-time"
    assert setting.winner is None
    assert setting.alike == ["least-time", "random"]
    assert "No policy wins for certain" in sentences(cases)


def test_one_seed_claims_nothing() -> None:
    cases = [case_of("least-time", 1, 1.0), case_of("random", 1, 9.0)]
    assert settings_of(cases)[0].winner is None


def test_a_policy_must_lead_all_others_for_certain() -> None:
    cases = [case_of("least-time", seed, 1.0) for seed in range(4)]
    cases += [case_of("random", seed, 5.0 + 0.1 * seed) for seed in range(4)]
    cases += [case_of("least-load", seed, 1.0 + (seed - 1) / 9) for seed in range(4)]
    setting = settings_of(cases)[0]
    assert setting.winner is None
    assert setting.alike == ["least-time", "least-load"]


def test_the_interval_of_a_geometric_mean_is_students() -> None:
    found = geometric([1.0, 2.0, 4.0])
    margin = 4.302653 * math.log(2) / 3**0.5
    assert found.value == pytest.approx(2.0)
    assert found.low == pytest.approx(2 * math.exp(-margin))
    assert geometric([3.0]).high == math.inf


def test_stale_loads_cost_what_pairs_say() -> None:
    cases = [case_of("least-load", seed, 1.0 + seed, 0.0) for seed in range(3)]
    cases += [case_of("least-load", seed, 1.5 * (1.0 + seed), 30.0) for seed in range(3)]
    cases += [case_of("random", seed, 1.0 + seed, gap) for seed in range(3) for gap in (0.0, 30.0)]
    reported = sentences(cases)
    assert "Stale loads cost least-load at most 1.50× the time (95 %: 1.50× to 1.50×" in reported
    assert "cost random" not in reported


# ---- The command

FAST = ("placement", "simulate", "--workloads", "poisson", "--duration", "20", "--interval", "0,3")


def test_the_command_answers_first_and_writes_a_page(gridbench: Run, tmp_path: Path) -> None:
    ran = gridbench(*FAST, "--load", "60%", "--seeds", "3", "--out", "found")
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"^(least-time wins|No policy wins for certain)", ran.stdout, re.MULTILINE)
    assert "provisional" not in ran.stdout + ran.stderr
    assert "Cost of stale loads" in ran.stdout
    page = (tmp_path / "found" / "report.html").read_text()
    assert "Choosing among servers" in page
    assert "far" in page
    records = FORM.read(tmp_path / "found")[1]
    assert len(records) == 2 * 5 * 3
    assert {one.status for one in records} == {"done"}
    checked = gridbench("check", "found")
    assert checked.returncode == 0, checked.stdout
    table = gridbench("report", "found", "--table", "all.csv")
    assert table.returncode == 0, table.stderr
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + 4 * len(records)


def test_json_has_winners_and_costs(gridbench: Run) -> None:
    ran = gridbench(*FAST, "--load", "60%", "--seeds", "2", "--json", "-q", "--out", "found")
    found = json.loads(ran.stdout)
    assert len(found["settings"]) == 2
    assert found["settings"][0]["load"] == 0.6
    assert set(found["settings"][0]["policies"]) == {
        "least-time", "least-load", "two-choices", "round-robin", "random",
    }  # fmt: skip
    assert {one["policy"] for one in found["stale"]} == {"least-time", "least-load", "two-choices"}
    assert ran.stderr == ""


def test_it_resumes_with_what_is_missing(gridbench: Run, tmp_path: Path) -> None:
    options = (*FAST, "--load", "30%", "--seeds", "2", "--out", "found")
    assert gridbench(*options).returncode == 0
    path = tmp_path / "found" / "placement.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    # As after a kill: the last record is cut off.
    path.write_text("".join(lines[:-3]) + lines[-3][:50])
    again = gridbench(*options)
    assert again.returncode == 0, again.stderr
    assert path.read_text().count("\n") == len(lines)
    assert "17 of 20" in again.stderr


def test_another_scenario_is_not_mixed_in(gridbench: Run, file: Path) -> None:
    options = (*FAST, "--seeds", "1", "--out", "found")
    assert gridbench(*options, "--load", "30%").returncode == 0
    ran = gridbench(*options, str(file))
    assert ran.returncode == 2
    assert "holds results of other options: clients was" in ran.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policies": "fastest"}, "least-time"),
        ({"workloads": "waves"}, "poisson"),
        ({"loads": "0"}, "1% to 300%"),
        ({"servers": "3"}, "4 groups"),
        ({"servers": "20000"}, "10,000"),
        ({"intervals": "-1"}, "--interval"),
        ({"seeds": "0"}, "1 to 1,000"),
        ({"workloads": "batch", "loads": "50%"}, "--load is of the workloads"),
        ({"scenario": "missing.toml"}, "missing.toml"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_parameters(PlacementParameters, given).cases()


def test_too_many_calls_are_refused_before_anything_is_written(
    gridbench: Run, tmp_path: Path
) -> None:
    many = ("--clients", "1000000", "--servers", "7000", "--load", "300%", "--duration", "1e6")
    ran = gridbench("placement", "simulate", "--workloads", "poisson", *many, "--out", "found")
    assert ran.returncode == 2, ran.stderr
    assert "can be simulated" in ran.stderr
    assert not (tmp_path / "found" / "placement.jsonl").exists()


def test_an_interrupted_simulation_keeps_what_it_has(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    words = ["placement", "simulate", "--workloads", "poisson", "--seeds", "1000", "--out", "found"]
    child = subprocess.Popen(
        [*PROGRAM, *words], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    path = tmp_path / "found" / "placement.jsonl"
    until(lambda: path.exists() and path.read_text().count("\n") > 5)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=100)
    assert child.returncode == 130, error
    assert "Traceback" not in error
    assert (tmp_path / "found" / "report.html").exists()
    assert all(one.status == "done" for one in FORM.read(tmp_path / "found")[1])
