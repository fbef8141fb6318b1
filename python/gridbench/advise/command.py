"""`gridbench advise`: from a work to a decision."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from gridbench.advise.advice import (
    Advice,
    LimitsMap,
    advise,
    crossover_here,
    crossover_in,
    from_where,
    limits_map,
)
from gridbench.advise.calibration import calibrate, covers
from gridbench.advise.document import document_of, to_record, trial_document
from gridbench.advise.memory import no_single_memory, with_bandwidth
from gridbench.advise.model_cache import CachedModel, cache_path, forget, load_cached
from gridbench.advise.options import AdviceParameters
from gridbench.advise.profiled import Profiled
from gridbench.advise.runs import servers_for
from gridbench.advise.search import PredictionModel
from gridbench.advise.trying import TrialEffort, participant_of, try_out
from gridbench.advise.work import DivisibleWork
from gridbench.datagrid.crossover.answer import CrossoverModels as Crossover
from gridbench.engines.names import default_engine
from gridbench.engines.servers import Servers
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.machine.load import SampleStart
from gridbench.machine.options import Policy
from gridbench.machine.quiet import settle
from gridbench.model.model import PipelineModel, model_of
from gridbench.model.model_kind import read_source
from gridbench.model.rules import MODEL
from gridbench.model.saved import load_models, save_models
from gridbench.pages.document import write_page
from gridbench.pages.terminal import print_document
from gridbench.printing import Printing
from gridbench.process.child import ProcessTemplate
from gridbench.results_folder import REPORT, default_folder, refuse_to_replace
from gridbench.run.machine import usable_processors
from gridbench.run.participants import find_participant
from gridbench.scenario.run_case import RUNS_CASES
from gridbench.simulate.profiles import system_of
from gridbench.terminal import say
from gridbench.workload.body import keeps_time


@dataclass(frozen=True, kw_only=True, slots=True)
class AdviceRequest:
    """A job, and how the advice for it is found."""

    work: DivisibleWork
    options: AdviceParameters = field(default_factory=AdviceParameters)
    effort: TrialEffort | None = None
    """How the advice is tried; None: not at all."""
    policy: Policy = field(default_factory=Policy)
    """What to do if other programs use the machine."""
    begun: SampleStart | None = None
    """A look at whether they do; None: it begins when there are to be runs."""
    printing: Printing = field(default_factory=Printing)
    within: float | None = None
    """Seconds in which the work shall end, on as few cores as do that; None: as soon as can be."""
    bandwidth: float | None = None
    """Bytes per second of the memory that tasks share; None: kept, or measured."""


def give_advice(request: AdviceRequest) -> int:
    """Find a model, think, tell, write the page, and try it if that is wanted. The exit status; 1:
    a run failed; 3: other programs disturbed it, so that nothing can be claimed, and that was not
    accepted. InputError for what makes no sense."""
    folder = request.options.out or default_folder("advice")
    refuse_to_replace(folder, [MODEL, REPORT], "an advice", replace=request.options.force)
    with _made(folder):
        return _advise(request, folder)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """The folder, made before the work begins; if there is no result, gone again unless it was
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


def _advise(request: AdviceRequest, folder: Path) -> int:
    console = request.printing.progress()
    if request.options.profile is not None:
        return _of_profile(request, request.options.profile, folder)
    if request.options.where.elsewhere and request.work.roofline.traffic:
        raise no_single_memory()
    if request.effort:
        _refuse_to_try(request.work)
    servers = _servers(request, console)
    model, origin = find_model(request, console, servers)
    place = model.fit.place
    work = request.work
    if place.transport == "one host":  # elsewhere each worker is taken to have a processor
        work = work.on_processors(place.processors)
    renew = request.options.renew
    work = with_bandwidth(work, place, request.bandwidth, request.policy, console, renew=renew)
    participant = participant_of(model, servers) if request.effort else None
    if request.effort:
        settle(request.policy, console)
    stored = _crossover(request, model)
    advice = advise(model, work, origin, request.within)
    advice = replace(advice, from_where=from_where(stored, place, work, advice.split))
    maps = _maps(request, advice)
    save_models([model], folder / MODEL)
    write_page(document_of(advice, maps=maps), folder / REPORT)
    out = request.printing.tables()
    print_document(out, document_of(advice))
    trial = None
    if request.effort and participant:
        trial = try_out(
            advice, participant, request.effort, console, request.policy, servers=servers
        )
        write_page(document_of(advice, trial, maps), folder / REPORT)
        print_document(out, trial_document(trial))
        is_kept = request.options.source is None and servers is None
        if is_kept and trial.contradicts(advice.expected.low, advice.expected.high):
            forget(place)
            say(
                console,
                "The runs disagree with the model: it is kept no longer, and the next advice"
                " measures again.",
            )
    request.printing.document(lambda: to_record(advice, trial, maps))
    request.printing.say(f"results: {folder}")
    if trial is not None and trial.failed:
        return 1
    claims = not model.disturbed and (trial is None or trial.claims)
    return request.policy.exit_status(claims=claims)


def _refuse_to_try(work: DivisibleWork) -> None:
    """InputError for work that tasks of ours are not like."""
    if keeps_time(work.body) and (work.roofline.threads > 1 or work.roofline.traffic):
        raise InputError(
            "--try runs tasks of one thread that move hardly any data through memory",
            remedy="leave it out, or give a function that does what tasks do by --task",
        )


def _servers(request: AdviceRequest, console: Console) -> Servers | None:
    """Those on which the work is to run; None: on this machine, or where a model is of."""
    if not request.options.where.elsewhere:
        return None
    if request.options.source is None:
        find_participant(
            request.options.engine or default_engine(request.work.body)
        ).require_servers()
    elif not request.effort:
        raise InputError(
            "--grid and --server are where an engine is calibrated or --try runs it, and --from"
            " gives a model that is there",
            remedy="leave one of them out, or add --try",
        )
    where = request.options.where
    return servers_for(where.grid, where.servers, request.work.cores, console)


def _crossover(request: AdviceRequest, model: PipelineModel) -> Crossover | None:
    """Measurements of shared data in data grids."""
    if request.options.crossover is not None:
        return crossover_in(request.options.crossover, request.work, model.name)
    return crossover_here(model.fit.place)


def _maps(request: AdviceRequest, advice: Advice) -> list[LimitsMap]:
    """Of all models in the file that was given, if it was one, else of what the advice is of."""
    if not request.options.maps:
        return []
    several: Sequence[PredictionModel] = [advice.model]
    if request.options.source is not None and request.options.source.is_file():
        several = load_models(request.options.source)
    work = advice.work
    return [limits_map(one, work.cores, warm=work.warm) for one in several]


def _of_profile(request: AdviceRequest, name: str, folder: Path) -> int:
    """Advice for a system that is not here: nothing is measured, kept or tried."""
    given = {
        "--engine": request.options.engine,
        "--from": request.options.source,
        "--renew": request.options.renew,
        "--try": request.effort,
        "--crossover": request.options.crossover,
        "--grid": request.options.where.grid,
        "--server": request.options.where.servers,
        "--memory-traffic": request.work.roofline.traffic,
    }
    for option, value in given.items():
        if value:
            raise InputError(
                f"{option} is for an engine, and --profile for a system that is not here",
                remedy="leave one of them out",
            )
    if name.endswith(".json"):
        raise InputError("is not a profile", file=name, remedy="give a saved model by --from")
    advice = advise(Profiled(system_of(name)), request.work, limit=request.within)
    maps = _maps(request, advice)
    write_page(document_of(advice, maps=maps), folder / REPORT)
    print_document(request.printing.tables(), document_of(advice))
    request.printing.document(lambda: to_record(advice, maps=maps))
    request.printing.say(f"results: {folder}")
    return 0


def find_model(
    request: AdviceRequest, console: Console, servers: Servers | None = None
) -> tuple[PipelineModel, str]:
    """The model that is requested, one that was kept, or one of runs that are made now, on servers
    if the work is to run there; and, if it was kept, where it comes from. InputError if there is
    none, or several; BusyMachine if there have to be runs, and others use the machine."""
    if request.options.source is None:
        engine, work = request.options.engine or default_engine(request.work.body), request.work
        stored = None
        if servers is None:
            work = work.on_processors(usable_processors())
            stored = None if request.options.renew else _cached_model(engine, work)
            if stored is not None and covers(stored.model, work):
                model = replace(stored.model, made=_minutes(stored.made))
                return model, stored.describe(time.time())
        with ProcessTemplate(RUNS_CASES, engine) as template:  # which gets ready meanwhile
            seen = settle(request.policy, console, begun=request.begun).began
            model = calibrate(
                engine,
                work,
                console,
                request.policy,
                template,
                stored=stored,
                servers=servers,
                seen=seen,
            )
        return replace(model, made=_minutes(time.time())), ""
    return _given(request, request.options.source, console), ""


def _minutes(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(seconds))


def _cached_model(engine: str, work: DivisibleWork) -> CachedModel | None:
    """The model of an engine on this machine, if one was kept."""
    facts = find_participant(engine).facts(work.cores, warm=work.warm)
    version, processors = facts.description["version"], usable_processors()
    return load_cached(cache_path(engine, version, platform.node(), processors))


def _given(request: AdviceRequest, given: Path, console: Console) -> PipelineModel:
    """The model in a file, or of the runs in a folder."""
    if given.is_file():
        models = load_models(given)
        places = [model.fit.place for model in models]
    else:
        models = []
        source = read_source([given])
        if not source.observations:
            raise source.none_serves()
        found = source.by_place()
        places = list(found)
        for place, observations in found.items():
            if request.options.engine in (None, place.engine):
                runs = counted(len(observations), "run")
                console.print(f"{place.describe()}: fitting a model to {runs}")
                models.append(model_of(observations, test=False))
    chosen = [model for model in models if request.options.engine in (None, model.fit.place.engine)]
    if len(chosen) == 1:
        return chosen[0]
    known = "; ".join(sorted({place.describe() for place in places}))
    if not chosen:
        raise InputError(
            f"there is no model of the engine `{request.options.engine}`"
            if request.options.engine
            else "there are no models",
            file=given,
            remedy=f"there are: {known}" if known else "give another --from",
        )
    raise InputError(
        f"there are models of several engines or places: {known}",
        file=given,
        remedy="choose one with --engine, or a folder that holds runs of one place",
    )
