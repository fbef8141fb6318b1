"""Systems whose parameters `gridbench model` has fitted to runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gridbench.errors import InputError
from gridbench.formats import bit_rate
from gridbench.model.model import PipelineModel
from gridbench.model.model_kind import TasksModel
from gridbench.model.observation import EnginePlace, Situation
from gridbench.model.profiles import Given
from gridbench.model.saved import load
from gridbench.model.terminal import term_value
from gridbench.model.terms import parameters_of
from gridbench.simulate.start_up import Batch
from gridbench.simulate.systems import GIGABIT, System


@dataclass(frozen=True, slots=True)
class Fitted:
    """The models of an engine, each for a place."""

    path: Path
    models: Sequence[PipelineModel]

    def only(self) -> System:
        """The one system of the file. InputError if it has several."""
        model, *others = self.models
        if others:
            places = "; ".join(map(_place, self.models))
            raise InputError(
                f"holds models of several places: {places}",
                file=self.path,
                remedy="fit a model to the runs of one place",
            )
        # Of a situation only its start and its bounds count here.
        return _system(model, Situation(cores=1, sleep=np.zeros(1)))

    def for_run(self, place: EnginePlace, situation: Situation) -> System | None:
        """The system in the place of a run, with its bounds; None if there is no model of it."""
        for model in self.models:
            known = model.fit.place
            if (known.transport, known.nodes, known.link_rate) == (
                place.transport,
                place.nodes,
                place.link_rate,
            ):
                return _system(model, situation)
        return None


def read_fitted(path: Path, engine: str) -> Fitted:
    """The models of an engine in a file. InputError if there is none."""
    kind, known = load(path)
    models = [one.model for one in known if isinstance(one, TasksModel)]
    if len(models) < len(known):
        raise InputError(
            f"holds models of {kind.name}, and only tasks can be simulated",
            file=path,
            remedy="have cases predicted: give"
            f" {' '.join(f'--case {one.name}=...' for one in kind.parameters)}",
        )
    found = [model for model in models if model.fit.place.engine == engine]
    if not found:
        engines = sorted({model.fit.place.engine for model in models})
        raise InputError(
            f"holds no model of `{engine}`",
            file=path,
            remedy=f"give --engine: there are {', '.join(engines)}" if engines else "",
        )
    return Fitted(path, found)


def _system(model: PipelineModel, situation: Situation) -> System:
    fit = model.fit
    return System(
        name=fit.place.engine,
        title=f"{fit.place.engine}, fitted to {fit.runs} runs on {_place(model)}",
        parameters=parameters_of(fit.shape, fit.values, fit.place, situation),
        start_up=Batch(constant=0.0, per_worker=0.0),
        link=fit.place.link_rate or GIGABIT,
        one_host=fit.place.transport == "one host",
        measured_cores=int(model.measured.cores.high),
        given=tuple(
            Given(
                one.term.meaning,
                one.value,
                one.term.unit,
                f"fitted: {term_value(one.low, one.term.unit)} to"
                f" {term_value(one.high, one.term.unit)}"
                + ("" if one.determined else ", not determined"),
            )
            for one in fit.estimates
        ),
    )


def _place(model: PipelineModel) -> str:
    place = model.fit.place
    if place.transport == "network":
        return "a network, from task logs"
    if place.link_rate is None:
        return f"{place.transport}, {place.processors} processors"
    return f"{place.nodes} nodes behind links of {bit_rate(place.link_rate)}"
