"""`gridbench model`: fits a model to runs, and tells how wrong it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gridbench.errors import InputError
from gridbench.model.fit import MORE_STARTS, Watch, fit
from gridbench.model.held_out import WAYS, Fitting, held_out, nobody
from gridbench.model.model import Model
from gridbench.model.observation import Observation, together
from gridbench.model.ranges import range_of
from gridbench.model.repeated import repeated
from gridbench.model.saved import save_models, to_record
from gridbench.model.source import Source, read_source
from gridbench.model.terminal import place_told, print_model
from gridbench.model.terms import Shape
from gridbench.printing import Printing
from gridbench.progress import Steps


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What the user asked for."""

    folders: Sequence[Path]
    engines: Sequence[str] = ()
    """None: all that the folders have runs of."""
    test: bool = True
    """Hold out runs to see how wrong the model is."""
    out: Path | None = None
    printing: Printing = field(default_factory=Printing)


def fit_models(request: Request) -> int:
    """Fit, print and save; the exit status. 1: for an engine there are too few runs.

    InputError if there are too few for all, or the folders cannot be used.
    """
    source = _chosen(read_source(request.folders), request.engines)
    for reason, count in source.left_out.items():
        print(f"gridbench: {count} runs left out: {reason}", file=sys.stderr)
    console = request.printing.progress()
    models: list[Model] = []
    refusals: list[InputError] = []
    for place, observations in source.by_place().items():
        console.print(f"{place_told(place)}: fitting a model to {len(observations)} runs")
        progress = Steps(console, "fit", 1 + (WAYS if request.test else 0))
        try:
            with progress:
                model = model_of(
                    observations, test=request.test, fitting=partial(_watched, progress)
                )
            models.append(model)
        except InputError as error:
            refusals.append(error)
            if len(source.by_place()) > 1:
                print(f"gridbench: {place_told(place)}: {error}", file=sys.stderr)
    if not models:
        raise refusals[0] if refusals else source.none_serves()
    if request.out:
        save_models(models, request.out)
        request.printing.say(f"model: {request.out}")
    for model in models:
        print_model(request.printing.tables(), model)
    request.printing.document(lambda: to_record(models))
    return 1 if refusals else 0


def _watched(progress: Steps, what: str) -> Watch:
    """Shows the searches of the fit to `what`."""
    progress.begin(f"to {what}")

    def watch(done: int, planned: int) -> None:
        progress.note(f"search {min(done + 1, planned)} of {planned}")

    return watch


def model_of(
    observations: Sequence[Observation],
    *,
    test: bool,
    shape: Shape | None = None,
    fitting: Fitting = nobody,
    few: bool = False,
    starts: int = MORE_STARTS,
) -> Model:
    """The model of one engine in one place; `shape`: how it works, if that is known. `few` and
    `starts`: see `fit`.

    InputError if there are too few runs.
    """
    cases = together(observations)
    found = fit(cases, shape=shape, watch=fitting("all runs"), few=few, starts=starts)
    errors = held_out(cases, shape=shape, fitting=fitting) if test else ()
    return Model(
        fit=found,
        measured=range_of([one.situation for one in cases]),
        held_out=errors,
        repeated=repeated(observations),
    )


def _chosen(source: Source, engines: Sequence[str]) -> Source:
    known = sorted({one.place.engine for one in source.observations})
    for name in engines:
        if name not in known:
            raise InputError(
                f"no run of the engine `{name}` can be used",
                remedy=f"the runs in these folders are of {', '.join(known) or 'no engine'}",
            )
    if not engines:
        return source
    kept = tuple(one for one in source.observations if one.place.engine in engines)
    return Source(kept, source.left_out)
