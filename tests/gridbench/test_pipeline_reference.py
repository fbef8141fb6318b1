"""The event simulation gives the stamps of its plain Python twin, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gridbench.model.pipeline import (
    Link,
    Manager,
    MessageCost,
    PipelineCase,
    PipelineParameters,
    Stamps,
    WorkerStart,
    evaluate,
    figures,
)
from gridbench.simulate.systems import Throttling, follow_throttled
from pipeline_reference.run import Run
from pipeline_reference.throttling import ThrottledRun

FREE = PipelineParameters(to_workers=Link(), from_workers=Link())
FIELDS = ("submit", "sent", "calc_in", "calc_out", "retrieve", "worker")

times = st.one_of(st.just(0.0), st.sampled_from([0.001, 0.25, 1.0]), st.floats(1e-9, 10.0))
per_byte = st.one_of(st.just(0.0), st.floats(1e-10, 1e-3))
sizes = st.one_of(st.just(0.0), st.sampled_from([1.0, 1024.0]), st.floats(0.0, 1e6))
rates = st.one_of(st.just(np.inf), st.floats(10.0, 1e7))
links = st.builds(
    Link, rate=rates, per_message=times, sharing=st.sampled_from(["in turn", "evenly"]), each=rates
)
efforts = st.builds(MessageCost, fixed=times, per_byte=per_byte)
bounds = st.one_of(st.just(np.inf), st.floats(1.0, 1e4))
common: dict[str, Any] = {
    "to_workers": links,
    "from_workers": links,
    "shared_rate": rates,
    "chained_from": st.one_of(st.just(np.inf), sizes),
    "submit_cost": times,
    "submit_per_byte": per_byte,
    "retrieve_cost": times,
    "start_latency": times,
    "return_latency": times,
    "take_shared": efforts,
    "take": efforts,
    "map_input": efforts,
    "make": efforts,
    "new_input": efforts,
    "new_output": efforts,
    "map_output": efforts,
    "take_output": efforts,
    "last_used_first": st.booleans(),
    "kept_from": sizes,
    "most_left": st.one_of(st.just(np.inf), st.integers(0, 5)),
    "processors": st.one_of(st.just(np.inf), st.integers(1, 5)),
}
starts = st.builds(
    WorkerStart,
    constant=times,
    prepare=times,
    serial=times,
    parallel=times,
    adopt=times,
    all_first=st.booleans(),
)
managers = st.builds(Manager, inward=links, outward=links)
managed = st.builds(
    PipelineParameters,
    **common,
    manager=managers,
    start=st.one_of(st.none(), starts),
    share=efforts,
    client_lock=st.booleans(),
    ahead=st.integers(0, 3),
    most_waiting_bytes=bounds,
    most_outstanding=bounds,
)
unmanaged = st.builds(PipelineParameters, **common)
throttlings = st.builds(
    Throttling,
    memory=st.floats(100.0, 1e6),
    disk=rates.filter(np.isfinite),
    slower=st.floats(1, 4),
    until_done=st.booleans(),
)


@st.composite
def cases(draw: st.DrawFn) -> PipelineCase:
    workers = draw(st.integers(1, 8))
    host = draw(
        st.one_of(st.none(), st.lists(st.integers(-3, 9), min_size=workers, max_size=workers))
    )
    return PipelineCase(
        np.array(draw(st.lists(times, min_size=1, max_size=40))),
        np.array(draw(st.lists(times, min_size=workers, max_size=workers))),
        bytes_in=draw(sizes),
        bytes_out=draw(sizes),
        bytes_shared=draw(sizes),
        host=None if host is None else np.array(host),
    )


def same(one: Stamps, other: Stamps) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True) for name in FIELDS
    )


def of_twin(case: PipelineCase, parameters: PipelineParameters) -> Stamps:
    run = Run(case, parameters)
    run.clock.run()
    return run.stamps()


@settings(deadline=None, max_examples=300)
@given(cases(), st.one_of(managed, unmanaged))
def test_stamps_are_those_of_the_twin(case: PipelineCase, parameters: PipelineParameters) -> None:
    twin = of_twin(case, parameters)
    assert np.isfinite(twin.retrieve).all()
    assert same(evaluate(case, parameters), twin)


@settings(deadline=None, max_examples=200)
@given(cases(), managed.map(lambda one: replace(one, ahead=0)), throttlings)
def test_a_manager_short_of_memory_does_as_the_twin(
    case: PipelineCase, parameters: PipelineParameters, throttling: Throttling
) -> None:
    run = ThrottledRun(case, parameters, throttling)
    run.clock.run()
    stamps, pressure = follow_throttled(case, parameters, throttling)
    assert same(stamps, run.stamps())
    assert pressure == run.pressure


@settings(deadline=None)
@given(st.lists(st.tuples(cases(), managed), min_size=1, max_size=5))
@example([(PipelineCase(np.full(tasks, 0.5), np.zeros(7)), FREE) for tasks in (3000, 9)])
def test_figures_are_those_of_the_stamps(
    jobs: list[tuple[PipelineCase, PipelineParameters]],
) -> None:
    for (case, parameters), found in zip(jobs, figures(jobs), strict=True):
        twin = evaluate(case, parameters)
        firsts = np.full(len(case.ready), np.inf)
        np.minimum.at(firsts, twin.worker, twin.calc_in)
        expected = (
            twin.total,
            twin.calc_in.min(),
            firsts[np.isfinite(firsts)].max(),
            np.mean(twin.calc_out - twin.calc_in - case.sleep),
        )
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


class Enough(Exception):
    """The run is ended."""


def test_a_run_is_watched_and_can_be_ended() -> None:
    many = PipelineCase(np.full(50_000, 1.0), np.zeros(50))
    parameters = replace(FREE, submit_cost=1e-3)
    seen: list[int] = []
    evaluate(many, parameters, seen.append)
    assert seen == sorted(seen)
    assert 0 == seen[0] < seen[1] < seen[-1] <= 50_000

    def end(_: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        evaluate(many, parameters, end)
