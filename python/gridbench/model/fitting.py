"""From runs to the model of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gridbench.model.fit import MORE_STARTS, fit
from gridbench.model.held_out import held_out
from gridbench.model.model import Model
from gridbench.model.observation import Observation, together
from gridbench.model.ranges import range_of
from gridbench.model.repeated import repeated
from gridbench.model.terms import Shape
from gridbench.model_kind import Fitting, nobody


def model_of(
    observations: Sequence[Observation],
    *,
    test: bool,
    shape: Shape | None = None,
    fitting: Fitting = nobody,
    few: bool = False,
    starts: int = MORE_STARTS,
    begin: Mapping[str, float] | None = None,
) -> Model:
    """The model of one engine in one place; `shape`: how it works, if that is known. `few`,
    `starts` and `begin`: see `fit`.

    InputError if there are too few runs.
    """
    cases = together(observations)
    watch = fitting("all runs")
    found = fit(cases, shape=shape, watch=watch, few=few, starts=starts, begin=begin)
    errors = held_out(cases, shape=shape, fitting=fitting) if test else ()
    return Model(
        fit=found,
        measured=range_of([one.situation for one in cases]),
        held_out=errors,
        repeated=repeated(observations),
    )
