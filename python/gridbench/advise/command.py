"""`gridbench advise`: from a work to a decision."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from gridbench.advise.advice import advise
from gridbench.advise.calibration import calibrate
from gridbench.advise.effort import Effort
from gridbench.advise.page import write_advice
from gridbench.advise.record import to_record
from gridbench.advise.terminal import print_advice, print_trial
from gridbench.advise.trying import participant_of, try_out
from gridbench.advise.work import Work
from gridbench.engines.default import DEFAULT_ENGINE
from gridbench.errors import InputError
from gridbench.machine.policy import Policy
from gridbench.machine.quiet import settle
from gridbench.model.command import model_of
from gridbench.model.model import Model
from gridbench.model.saved import load_models, save_models
from gridbench.model.source import read_source
from gridbench.model.terminal import place_told
from gridbench.printing import Printing

_PAGE = "report.html"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What the user asked for."""

    work: Work
    engine: str | None = None
    """None: the only one of `source`; without that, the default engine."""
    source: Path | None = None
    """A saved model, or a folder of runs; None: calibrate."""
    effort: Effort | None = None
    """How the advice is tried; None: not at all."""
    folder: Path | None = None
    """None: one below `runs`, named after the time."""
    policy: Policy = field(default_factory=Policy)
    """What to do if other programs use the machine."""
    printing: Printing = field(default_factory=Printing)


def give_advice(request: Request) -> int:
    """Find a model, think, tell, write the page, and try it if that is wanted. The exit status; 1:
    a run failed; 3: other programs disturbed it, so that nothing can be claimed, and that was not
    accepted. InputError for what makes no sense."""
    folder = request.folder or Path("runs", time.strftime("advice-%Y-%m-%dT%H-%M-%S"))
    with _made(folder):
        return _advise(request, folder)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """The folder, made before the work begins; if nothing comes of it, gone again unless it was
    there before."""
    before = folder.is_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder: {error.strerror}", file=folder, remedy="choose another --out"
        ) from None
    try:
        yield
    except BaseException:
        if not before:
            with suppress(OSError):  # it is not empty
                folder.rmdir()
        raise


def _advise(request: Request, folder: Path) -> int:
    console = request.printing.progress()
    if request.source is None:
        settle(request.policy, console)
    model = find_model(request, console)
    place = model.fit.place
    work = request.work
    if place.transport == "one host":  # elsewhere each worker is taken to have a processor
        work = work.on_processors(place.processors)
    participant = participant_of(model) if request.effort else None
    if request.effort:
        settle(request.policy, console)
    advice = advise(model, work)
    save_models([model], folder / "model.json")
    write_advice(advice, folder / _PAGE)
    out = request.printing.tables()
    print_advice(out, advice)
    trial = None
    if request.effort and participant:
        trial = try_out(advice, participant, request.effort, console, request.policy)
        write_advice(advice, folder / _PAGE, trial)
        print_trial(out, trial)
    request.printing.document(lambda: to_record(advice, trial))
    request.printing.say(f"results: {folder}")
    if trial is not None and trial.failed:
        return 1
    claims = not model.disturbed and (trial is None or trial.claims)
    return request.policy.exit_status(claims=claims)


def find_model(request: Request, console: Console) -> Model:
    """The model that is asked for, or one of runs that are made now. InputError if there is none,
    or several."""
    if request.source is None:
        work = request.work.on_processors(len(os.sched_getaffinity(0)))
        return calibrate(request.engine or DEFAULT_ENGINE, work, console, request.policy)
    if request.source.is_file():
        models = load_models(request.source)
    else:
        models = []
        source = read_source([request.source])
        if not source.observations:
            raise source.none_serves()
        places = source.by_place()
        for place, observations in places.items():
            if request.engine in (None, place.engine):
                console.print(f"{place_told(place)}: fitting a model to {len(observations)} runs")
                models.append(model_of(observations, test=False))
    chosen = [model for model in models if request.engine in (None, model.fit.place.engine)]
    if len(chosen) == 1:
        return chosen[0]
    known = "; ".join(sorted({place_told(model.fit.place) for model in models}))
    if not chosen:
        raise InputError(
            f"there is no model of the engine `{request.engine}`"
            if request.engine
            else "there are no models",
            file=request.source,
            remedy=f"there are: {known}" if known else "give another --from",
        )
    raise InputError(
        f"there are models of several engines or places: {known}",
        file=request.source,
        remedy="choose one with --engine, or a folder that holds runs of one place",
    )
