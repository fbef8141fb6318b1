"""What a model is shown as in a terminal, and what it says of a run with one term changed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from golden import same_as_golden
from gridbench.model.document import pipeline_document
from gridbench.model.fit import PipelineFit
from gridbench.model.held_out import HeldOutCase, HeldOutRuns, RepeatSpread
from gridbench.model.least_squares import TermEstimate, Yardstick
from gridbench.model.model import _UP, PipelineModel, without
from gridbench.model.model_kind import EngineRuns
from gridbench.model.observation import Observation, RunTimes, Situation, Transport, range_of
from gridbench.model.saved import pipeline_record
from gridbench.model.terms import Movement, Shape, case_of, parameters_of, relevant, terms_of
from gridbench.pages.document import markdown
from synthetic import MB, PLACE, TRUE

TERMS = {term.name: term for term in terms_of(Shape())}
SITUATIONS = [
    Situation(cores=2, sleep=np.full(1000, 0.5), bytes_in=1.0 * MB),
    Situation(cores=16, sleep=np.full(4000, 0.5), bytes_in=2.0 * MB, warm=True),
]


def _estimate(name: str, value: float, *, determined: bool = True) -> TermEstimate:
    return TermEstimate(TERMS[name], value, value / 2, value * 2, determined)


def _model() -> PipelineModel:
    estimates = (
        _estimate("start.constant", 0.25),
        _estimate("in.client", 1e-9),
        _estimate("submit", 1e-4, determined=False),
        _estimate("take", 1e-4, determined=False),
    )
    fit = PipelineFit(PLACE, Shape(), estimates, 30, 1200, np.zeros((4, 4)), math.log(1.125), ())
    cases = tuple(HeldOutCase(f"run {n}", 20.0, 20.0 + n * (-1) ** n, 10.0) for n in range(1, 6))
    held = (
        HeldOutRuns(name="random", what="a random 30 %", fitted=20, cases=cases),
        HeldOutRuns(name="size", what="all with 2 MB", fitted=4, refused="too few"),
        HeldOutRuns(
            name="cores",
            what="all of 16 cores",
            fitted=20,
            cases=(HeldOutCase("x", 9.0, 9.0, 9.0),),
        ),
    )
    repeats = RepeatSpread(cases=5, runs=15, median=0.02, percentile_90=0.075)
    return PipelineModel(fit, range_of(SITUATIONS), held, repeats)


def test_a_model_is_shown_with_its_terms_and_errors() -> None:
    model = _model()
    fit = replace(model.fit, estimates=model.fit.estimates[:1], known=30)
    bare = replace(model, fit=fit, held_out=(), repeated=None)
    text = "\n\n".join(markdown(pipeline_document(one)) for one in (model, bare))
    same_as_golden(text, "model/tasks.md")


def test_a_saved_model_has_the_errors_of_each_way_of_holding_out() -> None:
    (saved,) = pipeline_record([_model()])["models"]
    medians = [one["errors"]["overhead_median"] for one in saved["held_out"]]
    assert medians == [pytest.approx(0.3), None, None]
    assert saved["repeated"]["percentile_90"] == 0.075
    assert [one["errors"]["runs"] for one in saved["held_out"]] == [5, 0, 1]


def test_a_place_is_reported_in_a_line() -> None:
    links = replace(PLACE, transport="links", nodes=3)
    assert links.describe() == "made-up 1 on here, 2 processors, 3 nodes behind links"
    assert replace(links, link_rate=1e8).describe().endswith("behind links of 100 Mbit/s")
    network = replace(PLACE, transport="network")
    assert network.describe() == "made-up: the system that made these task logs, on a network"


def test_workers_behind_links_or_on_a_network_are_linked() -> None:
    model = _model()
    transports: tuple[Transport, ...] = ("one host", "links", "network")
    places = [replace(PLACE, transport=transport) for transport in transports]
    models = [replace(model, fit=replace(model.fit, place=place)) for place in places]
    assert [one.linked for one in models] == [False, True, True]


# What it says of runs.


def _true(*, spread: float = 0.0, held: tuple[HeldOutRuns, ...] = ()) -> PipelineModel:
    estimates = tuple(TermEstimate(term, TRUE[name], 0, 1, True) for name, term in TERMS.items())
    empty = np.zeros((len(TERMS), len(TERMS)))
    fit = PipelineFit(PLACE, Shape(), estimates, 30, 30, empty, spread, ())
    return PipelineModel(fit, range_of(SITUATIONS), held)


ONE = Situation(cores=1, sleep=np.array([1.0]))


def test_a_run_takes_what_its_terms_take() -> None:
    model = _true()
    terms = (
        *("start.constant", "start.prepare", "start.serial", "start.parallel", "start.adopt"),
        *("submit", "take", "latency", "finish", "retrieve"),
    )
    # The client submits while the worker starts.
    least = sum(TRUE[name] for name in terms if name != "submit")
    assert model.total(ONE) - 1.0 == pytest.approx(least)
    assert model.totals([ONE, ONE]).tolist() == [model.total(ONE)] * 2
    assert model.total(ONE, {"retrieve": 1.0}) == pytest.approx(
        model.total(ONE) + 1.0 - TRUE["retrieve"]
    )
    assert without(model, ONE, ["retrieve", "finish"]) == pytest.approx(
        model.total(ONE) - TRUE["retrieve"] - TRUE["finish"]
    )
    assert without(model, ONE, terms) == 1.0


def test_slopes_are_shares_of_the_overhead() -> None:
    model = _true()
    slopes = dict(zip(TERMS, model.slopes(ONE).tolist(), strict=True))
    overhead = model.total(ONE) - 1.0
    # A term is changed by steps over which a logarithm is not quite straight.
    straight = (_UP - 1 / _UP) / (2 * math.log(_UP))
    for name in ("start.constant", "retrieve"):
        assert slopes[name] == pytest.approx(straight * TRUE[name] / overhead, rel=1e-6)
    # What does not count in a situation moves nothing.
    assert slopes["in.client"] == slopes["shared.worker"] == 0
    warm = dict(zip(TERMS, model.slopes(replace(ONE, warm=True)).tolist(), strict=True))
    assert warm["start.constant"] == 0
    assert warm["retrieve"] > slopes["retrieve"]


@pytest.mark.parametrize("tasks", [200, 300, 400, 700, 1000])
def test_no_slope_is_that_of_a_single_task_that_changes_its_worker(tasks: int) -> None:
    """A task takes as long as half of the overhead or more."""
    many = Situation(cores=2, sleep=np.full(tasks, 60 / tasks), bytes_in=MB)
    slopes = _true().slopes(many)
    assert np.abs(slopes).max() <= 1.3
    assert 0.5 <= slopes.sum() <= 1.5


def test_runs_that_were_held_out_at_random_tell_the_error() -> None:
    inside = SITUATIONS[0]
    assert _true(spread=0.3).unsure(inside) == pytest.approx(0.3)
    off = HeldOutRuns(
        name="random",
        what="",
        fitted=1,
        cases=(HeldOutCase("one", 20.0, 10 + 10 * math.exp(0.5), 10.0),),
    )
    error = 0.5 / 0.6745
    assert _true(spread=0.3, held=(off,)).unsure(inside) == pytest.approx(error)
    other = replace(off, name="cores")
    assert _true(spread=0.3, held=(other,)).unsure(inside) == pytest.approx(0.3)
    # Of exact runs it is not nothing.
    assert _true().unsure(inside) == pytest.approx(0.02)
    sure = HeldOutRuns(
        name="random", what="", fitted=1, cases=(HeldOutCase("one", 20.0, 20.1, 10.0),)
    )
    assert _true(spread=0.3, held=(sure,)).unsure(inside) == pytest.approx(0.02)


# What is compared.


def test_differences_are_weighted_logarithms_of_ratios() -> None:
    situation = Situation(cores=1, sleep=np.array([10.0]))
    measured = RunTimes(20.0, 2.0, 4.0, math.nan)
    one = Observation("one", PLACE, situation, measured)
    stick = Yardstick([one, one])
    said = np.array([[30.0, 4.0, 4.0, 1.0], [10.0, 2.0, -1.0, 1.0]])
    first, second = stick.differences(np.array([0, 1]), said)
    # A thousandth of a second and a two hundredth of the total are less than a run can tell.
    floor = 0.001 + 0.005 * 20.0
    assert first == pytest.approx(
        [math.log((20 + floor) / (10 + floor)), 0.4 * math.log((4 + floor) / (2 + floor)), 0, 0]
    )
    assert second == pytest.approx(
        [math.log(floor / (10 + floor)), 0, 0.4 * math.log(floor / (4 + floor)), 0]
    )
    extra = Observation("two", PLACE, situation, replace(measured, extra=0.5))
    (third,) = Yardstick([extra]).differences(np.array([0]), said[:1])
    assert third[3] == pytest.approx(0.3 * math.log((1 + floor) / (0.5 + floor)))


def test_hosts_hand_on_shared_data_from_a_megabyte_on() -> None:
    links = replace(PLACE, transport="links", nodes=3)
    situation = Situation(cores=2, sleep=np.ones(2))
    assert parameters_of(Shape(), TRUE, links, situation).chained_from == MB
    assert parameters_of(Shape(), TRUE, PLACE, situation).chained_from == math.inf
    network = replace(PLACE, transport="network")
    assert parameters_of(Shape(), TRUE, network, situation).processors == math.inf
    assert parameters_of(Shape(), TRUE, PLACE, situation).processors == 2
    pipe = parameters_of(Shape(movement="pipe"), {"in.way": 0.5}, PLACE, situation)
    assert (pipe.to_workers.rate, pipe.from_workers.rate) == (2.0, math.inf)


@pytest.mark.parametrize("movement", ["copies", "pipe", "network"])
def test_each_term_counts_where_it_is_said_to(movement: Movement) -> None:
    terms = [term.name for term in terms_of(Shape(movement=movement))]
    values = {name: float(number) for number, name in enumerate(terms, 1)}
    situation = Situation(cores=2, sleep=np.ones(2), bytes_in=8.0, most_outstanding=5.0)
    place = replace(PLACE, most_waiting_bytes=7, kept_from=3)
    found = parameters_of(Shape(movement=movement), values, place, situation)
    assert found.start is not None
    start = (found.start.constant, found.start.prepare, found.start.serial)
    assert start == (values["start.constant"], values["start.prepare"], values["start.serial"])
    assert found.start.parallel == values["start.parallel"]
    assert found.start.adopt == values["start.adopt"]
    assert (found.submit_cost, found.retrieve_cost) == (values["submit"], values["retrieve"])
    assert (found.take.fixed, found.make.fixed) == (values["take"], values["finish"])
    assert found.start_latency == values["latency"]
    assert found.share.per_byte == values["shared.client"]
    assert found.take_shared.per_byte == values["shared.worker"]
    assert found.make.per_byte == values["out.worker"]
    assert (found.most_waiting_bytes, found.most_outstanding, found.kept_from) == (7, 5, 3)
    copies = movement == "copies"
    # In memory that it has not seen a worker maps what was copied there; else it takes all of it.
    assert found.map_input.per_byte == (values["in.worker"] if copies else 0)
    assert found.take.per_byte == (0 if copies else values["in.worker"])
    assert found.to_workers.rate == (math.inf if copies else 1 / values["in.way"])
    assert found.from_workers.rate == (math.inf if copies else 1 / values["out.way"])
    way = values.get("shared.way")
    assert found.shared_rate == (math.inf if way is None else 1 / way)
    assert (way is None) == (movement != "network")
    assert found.submit_per_byte == (values["in.client"] if copies else 0)
    assert found.new_input.per_byte == (values["in.new"] if copies else 0)
    assert found.new_input.fixed == (values["in.piece"] if copies else 0)
    assert found.new_output.per_byte == (values["out.new"] if copies else 0)
    assert found.new_output.fixed == (values["out.piece"] if copies else 0)
    assert found.map_output.per_byte == (values["out.client"] if copies else 0)
    assert found.last_used_first == (movement != "pipe")
    assert found.client_lock
    warm = parameters_of(Shape(movement=movement), values, place, replace(situation, warm=True))
    assert warm.start is None
    # What is not told has no bound.
    assert parameters_of(Shape(), {}, PLACE, ONE).most_waiting_bytes == math.inf


def test_terms_of_data_count_from_the_first_byte_on() -> None:
    def counting(**sizes: float) -> set[str]:
        situation = Situation(cores=1, sleep=np.ones(1), warm=True, **sizes)
        terms = relevant(terms_of(Shape()), [situation])
        return {term.name.partition(".")[0] for term in terms if term.unit == "s/byte"}

    assert counting() == set()
    assert counting(bytes_in=1.0) == {"in"}
    assert counting(bytes_out=1.0) == {"out"}
    assert counting(bytes_shared=1.0) == {"shared"}


def test_a_run_that_is_shorter_than_its_tasks_has_no_overhead() -> None:
    situation = Situation(cores=1, sleep=np.array([10.0]))
    runs = [Observation("", PLACE, situation, RunTimes(total, 1, 1, 0)) for total in (9.5, 10.0)]
    said = np.array([[10.1, 1.0, 1.0, 0.0]] * 2)
    short, exact = Yardstick(runs).differences(np.array([0, 1]), said)[:, 0]
    assert short == pytest.approx(math.log((0.1 + 0.0485) / 0.0485))
    assert exact == pytest.approx(math.log((0.1 + 0.051) / 0.051))


# As a kind of models.


def test_a_case_is_a_run_of_tasks_that_are_alike() -> None:
    kind = _true()
    case = {"cores": 2, "tasks": 4, "sleep": 1.0, "input": 8.0, "shared": 0.0, "output": 3.0}
    situation = Situation(cores=2, sleep=np.ones(4), bytes_in=8.0, bytes_out=3.0)
    expected, found = kind.predict(situation), kind.expect(case)
    assert (found.total, found.low, found.high) == (expected.total, expected.low, expected.high)
    assert found.parts == {"ideal": 2.0, "overhead": expected.total - 2.0}
    assert found.outside == expected.extrapolated
    # It starts cold, unless no run has.
    warm = replace(kind, ranges=range_of(SITUATIONS[1:]))
    begun = warm.predict(replace(situation, warm=True))
    assert warm.expect(case).total == begun.total < found.total
    assert {name: (span.low, span.high) for name, span in kind.measured.items()} == {
        "cores": (2, 16),
        "tasks": (1000, 4000),
        "sleep": (0.5, 0.5),
        "input": (MB, 2 * MB),
        "shared": (0, 0),
        "output": (0, 0),
    }
    assert kind.name == "made-up"


def test_a_model_takes_a_fit_and_one_for_each_way_of_holding_out() -> None:
    runs = EngineRuns(PLACE, [])
    assert (runs.fits(test=False), runs.fits(test=True), runs.count) == (1, 4, 0)


def test_no_term_is_looked_for_beyond_what_it_can_be() -> None:
    for shape in (Shape(), Shape(movement="pipe"), Shape(movement="network")):
        for term in terms_of(shape):
            assert term.low < term.guess < term.high
            # A tenth of a microsecond at least; a terabyte a second at most, and 10 kB at least.
            assert term.low == (1e-7 if term.unit == "s" else 1e-12)
            assert term.unit == "s" or term.high == 1e-4
    highest = {term.name: term.high for term in terms_of(Shape()) if term.unit == "s"}
    assert highest == {
        "start.constant": 120, "start.prepare": 1, "start.serial": 10, "start.parallel": 30,
        "start.adopt": 1, "submit": 1, "take": 1, "latency": 10, "finish": 1, "retrieve": 1,
        "in.piece": 1, "out.piece": 1,
    }  # fmt: skip


def test_workers_are_dealt_to_hosts_behind_links_in_turn() -> None:
    links = replace(PLACE, transport="links", nodes=3)
    dealt = case_of(links, replace(ONE, cores=5)).host
    assert dealt is not None
    assert dealt.tolist() == [0, 1, 2, 0, 1]
    for transport in ("one host", "network"):
        place = replace(PLACE, transport=transport, nodes=3)
        assert case_of(place, ONE).host is None
    # All are requested at once.
    assert case_of(PLACE, replace(ONE, cores=2)).ready.tolist() == [0, 0]
    assert (PLACE.nodes, PLACE.kept_from) == (1, 0)


@pytest.mark.parametrize(
    ("size", "free", "pieces"),
    [
        # Pieces are as large as the next power of two.
        (30.0, 100, 3),
        (32.0, 100, 3),
        (33.0, 100, 1),
        (200.0, 100, 0),
        (1.0, 100, 100),
        (0.0, 100, math.inf),
        (30.0, None, math.inf),
    ],
)
def test_as_many_pieces_of_memory_are_kept_as_fit_into_it(
    size: float, free: int | None, pieces: float
) -> None:
    place = replace(PLACE, keep_free=free)
    found = parameters_of(Shape(), TRUE, place, replace(ONE, bytes_in=size))
    assert found.most_left == pieces


def test_a_run_without_overhead_has_an_interval_of_next_to_nothing() -> None:
    free = _true()
    estimates = tuple(replace(one, value=0.0) for one in free.fit.estimates)
    model = replace(free, fit=replace(free.fit, estimates=estimates))
    found = model.predict(SITUATIONS[0])
    assert found.total == found.ideal == 250.0
    # A nanosecond; no model is surer than 2 %.
    assert found.high - found.ideal == pytest.approx(1e-9 * math.exp(1.645 * 0.02), rel=1e-3)
    assert found.low - found.ideal == pytest.approx(1e-9 / math.exp(1.645 * 0.02), rel=1e-3)


def test_how_an_engine_works_is_reported_in_words() -> None:
    assert Shape(all_first=True, movement="pipe").describe() == (
        "tasks are given out when all workers have been made; data goes through one pipe, one"
        " message after the other"
    )
    assert Shape(movement="network").describe() == (
        "workers take tasks as they come up, one after another; data goes over a network, one"
        " message after the other in each direction"
    )
