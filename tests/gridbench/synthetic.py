"""Runs that never happened: made by the model itself, so that its terms are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gridbench.model.observation import EnginePlace, Observation, RunTimes, Situation
from gridbench.model.pipeline import figures
from gridbench.model.terms import Shape, case_of, parameters_of, terms_of

PLACE = EnginePlace(engine="made-up", version="1", host="here", processors=2)
COPIES = Shape()
TRUE = {
    "start.constant": 0.03,
    "start.prepare": 2e-4,
    "start.serial": 1e-3,
    "start.parallel": 2e-3,
    "start.adopt": 4e-4,
    "submit": 2e-4,
    "take": 3e-4,
    "latency": 1e-3,
    "finish": 2e-4,
    "retrieve": 3e-4,
    "in.client": 1e-9,
    "in.worker": 5e-10,
    "in.new": 1e-9,
    "in.piece": 1e-3,
    "out.worker": 2e-9,
    "out.new": 2e-9,
    "out.piece": 1e-3,
    "out.client": 4e-10,
    "shared.client": 1e-9,
    "shared.worker": 1e-9,
}
MB = 2**20


def situations() -> list[Situation]:
    """A grid that tells all terms apart."""
    found = []
    for cores in (1, 4, 16):
        for blocks, sleep in ((1, 0.1), (3, 0.02), (10, 0.001)):
            found.append(Situation(cores=cores, sleep=np.full(cores * blocks, sleep)))
        # One task for each core in new memory, many in such as others have left.
        for size, blocks in ((MB, 1), (8 * MB, 2), (MB, 8)):
            tasks = np.full(blocks * cores, 0.02)
            found.append(Situation(cores=cores, sleep=tasks, bytes_in=size))
            found.append(Situation(cores=cores, sleep=tasks, bytes_out=size))
            found.append(Situation(cores=cores, sleep=tasks, bytes_shared=size))
    found += [replace(one, warm=True) for one in found[:3]]
    return found


def modelled(shape: Shape, values: Mapping[str, float], situation: Situation) -> RunTimes:
    """What the model says that a run would have measured."""
    job = case_of(PLACE, situation), parameters_of(shape, values, PLACE, situation)
    return RunTimes(*figures([job])[0].tolist())


def observations(
    of: Iterable[Situation],
    *,
    shape: Shape = COPIES,
    values: Mapping[str, float] = TRUE,
    noise: float = 0.0,
    seed: int = 7,
) -> list[Observation]:
    """What the model says of them, each figure off by a random factor around 1."""
    known = {term.name for term in terms_of(shape)}
    assert set(values) <= known
    generator = np.random.default_rng(seed)
    found = []
    for number, situation in enumerate(of):
        exact = modelled(shape, values, situation)
        factors = np.exp(noise * generator.standard_normal(4))
        ideal = situation.ideal
        measured = RunTimes(
            total=ideal + (exact.total - ideal) * factors[0],
            first_calc_in=exact.first_calc_in * factors[1],
            last_worker_calc_in=exact.last_worker_calc_in * factors[2],
            extra=exact.extra * factors[3],
        )
        found.append(Observation(f"run-{number}", PLACE, situation, measured))
    return found


def of_engine(runs: Sequence[Observation], engine: str) -> list[Observation]:
    """The same, as if they were of another engine."""
    return [replace(one, place=replace(one.place, engine=engine)) for one in runs]
