"""The terms of an engine's model: each a cost with a meaning, found by fitting.

All are seconds, or seconds for each byte: 0 is a cost that is not there, and more of any makes no
run shorter. How an engine works is a `Shape`; it decides where in the pipeline a term counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gridbench.model.observation import EnginePlace, Situation
from gridbench.model.pipeline import (
    Link,
    Manager,
    MessageCost,
    PipelineCase,
    PipelineParameters,
    Stamps,
    WorkerStart,
    evaluate,
)

Movement = Literal["copies", "pipe", "network"]
Unit = Literal["s", "s/byte"]


@dataclass(frozen=True, slots=True)
class Shape:
    """How an engine works, as far as that is a choice and not a number."""

    all_first: bool = False
    """No task is given out before all workers have been made."""
    movement: Movement = "copies"
    """How data travels: copied by client and workers, each with its own processor time; through one
    pipe, one message after the other, from which the worker that has waited longest reads next; or
    over a network, in turn."""

    def describe(self) -> str:
        """In words."""
        start = (
            "tasks are given out when all workers have been made"
            if self.all_first
            else "workers take tasks as they come up, one after another"
        )
        data = {
            "copies": "data is copied by client and workers, at the same time as other work",
            "pipe": "data goes through one pipe, one message after the other",
            "network": "data goes over a network, one message after the other in each direction",
        }
        return f"{start}; {data[self.movement]}"


@dataclass(frozen=True, slots=True)
class Term:
    """A cost in the model."""

    name: str
    meaning: str
    unit: Unit
    guess: float
    low: float
    high: float
    touches: Callable[[Situation], bool]
    """Whether it counts in a situation at all."""


def _any(_: Situation) -> bool:
    return True


def _cold(situation: Situation) -> bool:
    return not situation.warm


def _takes(situation: Situation) -> bool:
    return situation.bytes_in > 0


def _returns(situation: Situation) -> bool:
    return situation.bytes_out > 0


def _shares(situation: Situation) -> bool:
    return situation.bytes_shared > 0


def _seconds(
    name: str,
    meaning: str,
    guess: float,
    high: float,
    touches: Callable[[Situation], bool] = _any,
) -> Term:
    return Term(name, meaning, "s", guess, 1e-7, high, touches)


def _per_byte(name: str, meaning: str, guess: float, touches: Callable[[Situation], bool]) -> Term:
    return Term(name, meaning, "s/byte", guess, 1e-12, 1e-4, touches)


_START = (
    _seconds("start.constant", "before the first worker is made", 0.05, 120.0, _cold),
    _seconds("start.prepare", "for each worker, before the first is made", 1e-4, 1.0, _cold),
    _seconds("start.serial", "to make a worker, one after the other", 1e-3, 10.0, _cold),
    _seconds("start.parallel", "each worker's own start, beside others", 1e-3, 30.0, _cold),
    _seconds("start.adopt", "client, for each worker that has come up", 1e-4, 1.0, _cold),
)
_CALLS = (
    _seconds("submit", "client, to submit a task", 5e-5, 1.0),
    _seconds("take", "worker, to take a task", 1e-4, 1.0),
    _seconds("latency", "on its way, of each task, while others run", 2e-4, 10.0),
    _seconds("finish", "worker, to wake up and answer", 1e-4, 1.0),
    _seconds("retrieve", "client, to take a result", 1e-4, 1.0),
)
_COPIES = (
    _per_byte("in.client", "client, to copy a task's data", 5e-10, _takes),
    _per_byte("in.worker", "worker, to take data in memory it has not seen", 3e-10, _takes),
    _per_byte("in.new", "client, besides, in memory that is new", 4e-10, _takes),
    _seconds("in.piece", "client, for each such piece of memory", 1e-4, 1.0, _takes),
    _per_byte("out.worker", "worker, to make its output", 3e-10, _returns),
    _per_byte("out.new", "worker, besides, in memory that is new", 4e-10, _returns),
    _seconds("out.piece", "worker, for each such piece of memory", 1e-4, 1.0, _returns),
    _per_byte("out.client", "client, to take output in memory it has not seen", 1e-10, _returns),
    _per_byte("shared.client", "client, to prepare shared data, once", 1e-9, _shares),
    _per_byte("shared.worker", "each worker, to take shared data", 2e-10, _shares),
)
_WAYS = (
    _per_byte("in.way", "task data on its way, for all together", 3e-9, _takes),
    _per_byte("in.worker", "worker, to take a task's data", 3e-10, _takes),
    _per_byte("out.worker", "worker, to make its output", 6e-10, _returns),
    _per_byte("out.way", "output on its way, for all together", 3e-9, _returns),
    _per_byte("shared.client", "client, to prepare shared data, once", 1e-9, _shares),
    _per_byte("shared.worker", "each worker, to take shared data", 2e-10, _shares),
)
_SHARED_WAY = _per_byte("shared.way", "shared data on its way to a host", 8e-9, _shares)
_CHAINED_FROM = 2**20
"""Bytes of shared data from which on gridrpc's hosts hand it on to each other."""


def terms_of(shape: Shape) -> tuple[Term, ...]:
    """The terms that a shape has, in the order in which they are shown."""
    data = _COPIES if shape.movement == "copies" else _WAYS
    more = (_SHARED_WAY,) if shape.movement == "network" else ()
    return (*_START, *_CALLS, *data, *more)


def relevant(terms: Sequence[Term], situations: Sequence[Situation]) -> tuple[Term, ...]:
    """Those of `terms` that count in at least one of the situations."""
    return tuple(term for term in terms if any(map(term.touches, situations)))


def parameters_of(
    shape: Shape, values: Mapping[str, float], place: EnginePlace, situation: Situation
) -> PipelineParameters:
    """The pipeline's parameters; terms that `values` does not have cost nothing."""

    def value(name: str) -> float:
        return values.get(name, 0.0)

    ways = shape.movement != "copies"
    start = WorkerStart(
        constant=value("start.constant"),
        prepare=value("start.prepare"),
        serial=value("start.serial"),
        parallel=value("start.parallel"),
        adopt=value("start.adopt"),
        all_first=shape.all_first,
    )
    return PipelineParameters(
        manager=Manager(),
        to_workers=Link(rate=_rate(value("in.way")) if ways else np.inf),
        from_workers=Link(rate=_rate(value("out.way")) if ways else np.inf),
        shared_rate=_rate(value("shared.way")),
        chained_from=_CHAINED_FROM if place.transport == "links" else np.inf,
        submit_cost=value("submit"),
        submit_per_byte=value("in.client"),
        retrieve_cost=value("retrieve"),
        start_latency=value("latency"),
        start=None if situation.warm else start,
        share=MessageCost(per_byte=value("shared.client")),
        take_shared=MessageCost(per_byte=value("shared.worker")),
        take=MessageCost(fixed=value("take"), per_byte=value("in.worker") if ways else 0.0),
        map_input=MessageCost(per_byte=0.0 if ways else value("in.worker")),
        make=MessageCost(fixed=value("finish"), per_byte=value("out.worker")),
        new_input=MessageCost(fixed=value("in.piece"), per_byte=value("in.new")),
        new_output=MessageCost(fixed=value("out.piece"), per_byte=value("out.new")),
        map_output=MessageCost(per_byte=value("out.client")),
        last_used_first=shape.movement != "pipe",
        kept_from=place.kept_from,
        most_left=_pieces(place, situation.bytes_in),
        processors=np.inf if place.transport == "network" else place.processors,
        client_lock=True,
        most_waiting_bytes=np.inf if place.most_waiting_bytes is None else place.most_waiting_bytes,
        most_outstanding=situation.most_outstanding,
    )


def case_of(place: EnginePlace, situation: Situation) -> PipelineCase:
    """The pipeline's case. Workers are dealt to the hosts in turn."""
    linked = place.transport == "links"
    return PipelineCase(
        situation.sleep,
        np.zeros(situation.cores),
        bytes_in=situation.bytes_in,
        bytes_out=situation.bytes_out,
        bytes_shared=situation.bytes_shared,
        host=np.arange(situation.cores) % place.nodes if linked else None,
    )


def run(
    shape: Shape, values: Mapping[str, float], place: EnginePlace, situation: Situation
) -> Stamps:
    """What the model says of a situation."""
    return evaluate(case_of(place, situation), parameters_of(shape, values, place, situation))


def _rate(per_byte: float) -> float:
    return 1 / per_byte if per_byte > 0 else np.inf


def _pieces(place: EnginePlace, size: float) -> float:
    """So many pieces of memory for data of this size may be kept free; their sizes are powers of
    two."""
    if place.keep_free is None or not size:
        return np.inf
    return place.keep_free // 2.0 ** math.ceil(math.log2(size))
