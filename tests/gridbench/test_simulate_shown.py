"""What is shown of simulated runs in a terminal and as JSON, of given figures."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from golden import same_as_golden
from gridbench.errors import InputError
from gridbench.model.fit import PipelineFit
from gridbench.model.least_squares import TermEstimate
from gridbench.model.model import PipelineModel
from gridbench.model.observation import EnginePlace, Situation, range_of
from gridbench.model.pipeline import Link, Manager, PipelineParameters
from gridbench.model.saved import save_models
from gridbench.model.terms import Shape, terms_of
from gridbench.pages.document import markdown
from gridbench.pages.render import page
from gridbench.simulate.account import Account, Gain, Use, account, notices
from gridbench.simulate.comparison import (
    FittedSystems,
    SimulatedFigure,
    SimulationComparison,
    read_fitted,
)
from gridbench.simulate.document import account_document, comparison_document, sweep_document
from gridbench.simulate.profiles import system
from gridbench.simulate.simulation import SimulatedWorkload, simulate
from gridbench.simulate.sweep import MOST_VALUES, Swept, parse_sweep
from gridbench.simulate.systems import Batch, Level, OneByOne, Pressure, System
from gridbench.simulate.timeline import described, table_of
from gridbench.workload.numbers import LONGEST_TIME
from synthetic import PLACE

MB = 2**20

ACCOUNT = Account(
    work=SimulatedWorkload(cores=4, tasks=16, sleep=2.0, bytes_in=MB),
    system=system("ninfg"),
    total=20.0,
    ideal=8.0,
    efficiency=0.4,
    first_start=1.5,
    mean_time=2.0,
    last_start=2.5,
    # The last is half a thousandth of the total, which is not shown yet.
    parts={"computing": 8.0, "waiting": 11.5, "rest": 0.0101, "nothing": 0.01},
    uses=[Use("the link", 10.0, 0.5), Use("the client", 2.0, 0.1)],
    gains=[Gain("data", 15.0, 5.0)],
    limit="Data: without it the total would be 15 s, 25 % less.",
    pressure=Pressure(most=3 * MB, worst=Level.SEVERE, paged=1234),
)
ONE = SimulatedWorkload(cores=1, tasks=1, sleep=1.0)
SWEPT = Swept(
    parse_sweep("cores=4,1000"),
    [ACCOUNT, replace(ACCOUNT, uses=[], work=replace(ACCOUNT.work, cores=1000, tasks=4000))],
)
AGAINST = SimulationComparison(
    "Spans", "How it was done.", [SimulatedFigure("a", 10.0, 11.0), SimulatedFigure("b", 10.0, 7.0)]
)
TOTALS = SimulationComparison(
    "Totals",
    "How it was done.",
    [
        SimulatedFigure("a", 10.0, 11.0, 5.0),
        SimulatedFigure("b", 10.0, 9.5, 9.0),
        SimulatedFigure("c", 10.0, 10.0, 7.0),
        SimulatedFigure("none", 0.0, 1.0, 0.0),
    ],
    ["1 run: it is not complete or not valid"],
)


def test_accounts_are_shown_part_by_part() -> None:
    beyond = replace(ACCOUNT, work=replace(ACCOUNT.work, cores=1000))
    bare = replace(ACCOUNT, parts={}, gains=[], pressure=Pressure(most=1.0))
    text = "\n\n".join(markdown(account_document(one)) for one in (beyond, bare))
    same_as_golden(text, "simulate/account.md")


def test_a_sweep_has_a_row_for_each_value() -> None:
    same_as_golden(markdown(sweep_document(SWEPT)), "simulate/sweep.md")
    # One that was interrupted has the values that it has come to.
    begun = sweep_document(replace(SWEPT, accounts=SWEPT.accounts[:1]))
    assert begun.sentences == ["With cores 4 it takes 20.00 s."]
    assert "sleep varied; first: 16 tasks of 2 s on 4 cores" in page(
        sweep_document(replace(SWEPT, sweep=parse_sweep("sleep=1,2")))
    )


def test_lines_of_a_sweep_leave_out_what_is_not_known() -> None:
    free = replace(ACCOUNT, total=0.0, parts={}, uses=[], efficiency=math.nan)
    found = sweep_document(Swept(parse_sweep("sleep=1,2,3"), [ACCOUNT, free]))
    total, efficiency, parts = (one.data for one in found.charts if one.data)
    assert [line["y"] for line in total["lines"]] == [[20.0, 0.0], [8.0, 8.0]]
    assert [line["y"] for line in efficiency["lines"]] == [[40.0], [50.0, 0.0], [10.0, 0.0]]
    assert {one["name"]: one["y"] for one in parts["traces"]}["computing"] == [0.4, 0.0]


def test_measured_figures_and_simulated_ones_are_shown_side_by_side() -> None:
    # An overhead of a tenth of the total is not compared by itself.
    same_as_golden(markdown(comparison_document([AGAINST, TOTALS])), "simulate/comparison.md")


def test_a_mean_that_cutting_off_has_raised_is_reported() -> None:
    wide = SimulatedWorkload(cores=10, tasks=100, sleep=1.0, stddev=1.0)
    # Of a normal distribution whose edge is one deviation off: 0.24197 / 0.84134.
    assert wide.raised() == pytest.approx(0.2876, abs=1e-4)
    assert wide.times().mean() == pytest.approx(1 + wide.raised(), abs=0.2)
    reported = replace(ACCOUNT, work=wide, mean_time=1.2651).notices[0]
    assert "from 1 s to 1.27 s" in reported
    for work in (replace(wide, stddev=0.0), replace(wide, stddev=0.3), replace(ONE, sleep=0.0)):
        assert not any("negative" in one for one in replace(ACCOUNT, work=work).notices)


@pytest.mark.parametrize(("ideal", "compared"), [(7.99, True), (8.01, False)])
def test_overhead_is_compared_from_a_fifth_of_the_total_on(ideal: float, compared: bool) -> None:
    error = SimulatedFigure("a", 10.0, 11.0, ideal).overhead_error
    assert math.isfinite(error) == compared


def test_comparisons_as_json_have_no_value_where_none_is_known() -> None:
    reported = TOTALS.to_dict()
    assert reported["title"] == "Totals"
    assert reported["rows"][0] == {
        "what": "a",
        "real": 10.0,
        "simulated": 11.0,
        "ideal": 5.0,
        "error": pytest.approx(0.1),
        "overhead_error": pytest.approx(0.2),
    }
    assert reported["rows"][3]["error"] is None
    assert reported["errors"]["total, median"] == pytest.approx(0.05)
    assert reported["left_out"] == ["1 run: it is not complete or not valid"]
    assert AGAINST.to_dict()["rows"][0]["ideal"] is None
    assert not AGAINST.totals
    assert TOTALS.totals


# An account, and JSON.


def test_an_account_is_worked_out_from_the_stamps() -> None:
    one = System(
        name="by hand",
        title="by hand",
        parameters=PipelineParameters(to_workers=Link(), from_workers=Link(), manager=Manager()),
        start_up=OneByOne(constant=1.0, per_worker=1.0),
        measured_cores=2,
    )
    # Workers are there after 2 and 3 s; the first does two of three tasks.
    done = simulate(SimulatedWorkload(cores=2, tasks=3, sleep=0.75), one)
    reported = account(done, table_of(done))
    assert (reported.total, reported.ideal) == (3.75, 1.5)
    assert reported.efficiency == pytest.approx(0.4)
    assert (reported.first_start, reported.last_start) == (2.0, 3.0)
    assert sum(reported.parts.values()) == pytest.approx(3.75)
    # What they wait until they are there is start-up. A run that begins warm has none.
    assert reported.parts["start-up"] == pytest.approx(2.5)
    # A worker begins once, whatever it does after its first task.
    longer = simulate(SimulatedWorkload(cores=2, tasks=3, sleep=2.0), one)
    assert longer.stamps.calc_in.tolist() == [2.0, 3.0, 4.0]
    assert account(longer, table_of(longer)).last_start == 3.0
    assert reported.notices == []
    values = reported.to_dict()
    assert (values["first_start_s"], values["last_start_s"]) == (2.0, 3.0)
    assert values["link_bits_per_second"] == 1e9
    assert values["memory"] is None
    assert (
        replace(reported, system=replace(one, one_host=True)).to_dict()["link_bits_per_second"]
        is None
    )
    assert replace(reported, efficiency=math.nan).to_dict()["efficiency"] is None
    assert ACCOUNT.to_dict()["memory"] == {
        "most_bytes": 3 * MB,
        "paged_tasks": 1234,
        "throttling": "severe",
    }


def test_what_is_assumed_is_said() -> None:
    assert notices(system("ninfg"), 100) == []
    (reported,) = notices(system("ninfg"), 101)
    assert reported.startswith("The profile's parameters were measured with up to 100 cores")
    _, assumed = notices(system("condor"), 1)
    assert assumed == (
        "Assumptions, not measured: matching; matching, for each core; process of a task;"
        " all transfers together, from one machine."
    )


def test_stamps_are_rounded_down_to_what_is_known() -> None:
    coarse = replace(system("ninfg"), resolution=0.5)
    done = simulate(
        SimulatedWorkload(cores=1, tasks=1, sleep=1.2, bytes_in=1024.4), coarse, start_up=0.0
    )
    (row,) = table_of(done).to_pylist()
    assert (row["submit"], row["calc_in"], row["calc_out"], row["retrieve"]) == (0, 0, 1, 1)
    assert math.isnan(row["queued"])
    assert (row["tid"], row["worker"], row["bytes_in"]) == (1, "w1", 1024)
    exact = simulate(SimulatedWorkload(cores=1, tasks=1, sleep=1.2), system("ninfg"), start_up=0.0)
    (row,) = table_of(exact).to_pylist()
    # It is sent off after it was submitted, however soon.
    assert 0 < row["queued"] < 1e-9
    assert row["calc_in"] == pytest.approx(0.0906)
    assert row["clock_error"] == 0


def test_a_system_for_json_has_no_infinity() -> None:
    reported = described(system("gridrpc"))
    assert reported["parameters"]["to_workers"]["each"] is None
    assert reported["start_up"] == {"kind": "OneByOne", "constant": 0.115, "per_worker": 0.000243}
    assert (reported["throttling"], reported["files_per_task"]) == (None, False)
    assert reported["link_bits_per_second"] == 1e9
    one_host = described(replace(system("gridrpc"), one_host=True))
    assert one_host["link_bits_per_second"] is None


def test_a_sweep_has_no_more_than_a_hundred_values() -> None:
    values = ",".join(map(str, range(1, MOST_VALUES + 1)))
    assert MOST_VALUES == 100
    assert len(parse_sweep(f"cores={values}").values) == 100
    with pytest.raises(InputError, match="101 values, more than 100"):
        parse_sweep(f"cores={values},101")


@pytest.mark.parametrize("text", ["cores=0", "tasks=10000001"])
def test_counts_of_a_sweep_are_from_one_to_ten_million(text: str) -> None:
    with pytest.raises(InputError, match=r"--sweep: `.*` is not a whole number"):
        parse_sweep(text)
    assert parse_sweep("tasks=1,10000000").values == [1, 10_000_000]
    assert parse_sweep(f"sleep=0,{LONGEST_TIME}").values == [0.0, LONGEST_TIME]


# Systems that were fitted to runs.


def _model(place: EnginePlace) -> PipelineModel:
    terms = terms_of(Shape())
    estimates = tuple(
        TermEstimate(term, 0.001, 0.0005, 0.002, number != 1) for number, term in enumerate(terms)
    )
    fit = PipelineFit(place, Shape(), estimates, 30, 40, np.zeros((len(terms),) * 2), 0.1, ())
    return PipelineModel(
        fit, range_of([Situation(cores=cores, sleep=np.ones(8)) for cores in (2, 16)])
    )


def test_a_model_is_a_system_with_its_terms() -> None:
    one = FittedSystems(Path("model.json"), [_model(PLACE)]).only()
    assert one.name == "made-up"
    assert one.title == "made-up, fitted to 30 runs on one host, 2 processors"
    assert (one.one_host, one.link, one.measured_cores) == (True, 1e9, 16)
    assert one.start_up == Batch(constant=0.0, per_worker=0.0)
    assert one.resolution == 0
    assert one.given[0].source == "fitted: 500.0 µs to 2.000 ms"
    assert one.given[1].source == "fitted: 500.0 µs to 2.000 ms, not determined"
    assert one.parameters.start is not None
    assert one.parameters.submit_cost == 0.001


def test_a_run_is_simulated_by_the_model_of_its_place() -> None:
    links = replace(PLACE, transport="links", nodes=3, link_rate=1e8)
    network = replace(PLACE, transport="network")
    fitted = FittedSystems(Path("model.json"), [_model(PLACE), _model(links), _model(network)])
    situation = Situation(cores=2, sleep=np.ones(2), warm=True)
    found = fitted.for_run(links, situation)
    assert found is not None
    assert found.title.endswith("on 3 nodes behind links of 100 Mbit/s")
    assert (found.one_host, found.link) == (False, 1e8)
    assert found.parameters.start is None
    here = fitted.for_run(PLACE, situation)
    assert here is not None
    assert here.one_host
    for other in ({"nodes": 4}, {"link_rate": 1e9}, {"transport": "one host"}):
        assert fitted.for_run(replace(links, **other), situation) is None
    with pytest.raises(InputError, match="a network, from task logs"):
        fitted.only()


def test_a_file_may_have_models_of_several_engines_and_places(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    other = replace(PLACE, engine="other")
    links = replace(other, transport="links", nodes=3, link_rate=1e8)
    save_models([_model(PLACE), _model(other), _model(links)], path)
    assert read_fitted(path, "made-up").only().name == "made-up"
    with pytest.raises(InputError) as refused:
        read_fitted(path, "other").only()
    assert refused.value.what == (
        "holds models of several places: one host, 2 processors; 3 nodes behind links of 100 Mbit/s"
    )
    with pytest.raises(InputError, match="holds no model of `ray`") as refused:
        read_fitted(path, "ray")
    assert refused.value.remedy == "give --engine: there are made-up, other"
    save_models([], path)
    with pytest.raises(InputError, match="holds no model of `ray`") as refused:
        read_fitted(path, "ray")
    assert refused.value.remedy == ""


@pytest.mark.parametrize(("stddev", "reported"), [(0.41, False), (0.43, True)])
def test_a_mean_that_is_raised_by_a_hundredth_is_reported(stddev: float, reported: bool) -> None:
    # By 0.0084 s and 0.0116 s of a second.
    work = SimulatedWorkload(cores=10, tasks=100, sleep=1.0, stddev=stddev)
    assert work.raised() == pytest.approx(0.0116 if reported else 0.0084, abs=5e-5)
    assert any("negative" in one for one in replace(ACCOUNT, work=work).notices) == reported
    assert replace(work, stddev=0.0).raised() == 0


def test_a_sweep_as_json_says_whether_it_has_come_to_its_end() -> None:
    whole = SWEPT.to_dict()
    assert (whole["sweep"], whole["complete"]) == ("cores", True)
    assert [point["cores"] for point in whole["points"]] == [4, 1000]
    assert whole["points"][0]["total_s"] == 20.0
    cut = replace(SWEPT, accounts=SWEPT.accounts[:1]).to_dict()
    assert cut["complete"] is False
    assert [point["cores"] for point in cut["points"]] == [4]


def test_what_can_be_varied_is_told_to_who_asks_for_something_else() -> None:
    for text in ("hosts=1,2", "cores"):
        with pytest.raises(InputError) as refused:
            parse_sweep(text)
        assert refused.value.remedy == (
            "for example --sweep cores=1000,10000; also tasks, tasks-per-core, sleep, stddev,"
            " input, shared, output, link, node-link"
        )


def test_a_manager_that_was_never_short_of_memory_has_done_nothing_against_it() -> None:
    calm = Pressure()
    assert (calm.most, calm.paged, calm.disk_busy, calm.worst) == (0, 0, 0, Level.NORMAL)
    assert [int(level) for level in Level] == [0, 1, 2, 3, 4]
