"""The whole of `gridbench simulate`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click
from rich.console import Console

from gridbench.atomic_write import write_file
from gridbench.engines.default import DEFAULT_ENGINE
from gridbench.errors import InputError
from gridbench.formats import as_given, size
from gridbench.links.rates import parse_rate
from gridbench.pages.document import write_page
from gridbench.pages.terminal import print_document
from gridbench.printing import Printing
from gridbench.process.interrupt import Interrupt, Stopped
from gridbench.progress import Tasks
from gridbench.quantities import LONGEST_TIME, parse_size, parse_stddev
from gridbench.results_folder import default_folder, unusable
from gridbench.run.machine import available_memory
from gridbench.run.recorder import make_places, replaceable
from gridbench.simulate.account import Account, account
from gridbench.simulate.cases import predict
from gridbench.simulate.comparison import (
    PUBLISHED,
    FittedSystems,
    SimulationComparison,
    against_published,
    against_runs,
    read_fitted,
)
from gridbench.simulate.document import (
    account_document,
    cases_document,
    comparison_document,
    heading,
    sweep_document,
)
from gridbench.simulate.profile_file import profile_text, system_of
from gridbench.simulate.simulation import SimulatedWorkload, simulate
from gridbench.simulate.sweep import STDDEV_SHARE, SimulationSweep, Swept, parse_sweep
from gridbench.simulate.systems import System
from gridbench.simulate.timeline import table_of, write_folder

_TASKS_PER_CORE = 10
_BYTES_PER_TASK = 1_500
_BYTES_PER_CORE = 1_500
"""Memory that a simulation takes, as measured with a million tasks on 100,000 cores, and more."""
_PAGE = "sweep.html"
_VALUES = "sweep.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationRequest:
    """What the command line asks for."""

    profile: str
    """A name, or the path of a file."""
    cores: int
    tasks: int | None = None
    """None: as many for each core as `tasks_per_core` says."""
    tasks_per_core: int | None = None
    sleep: float = 30.0
    stddev: str = "0"
    """A time, or a share of the mean such as `50%`."""
    input: str = "0"
    shared: str = "0"
    output: str = "0"
    link: str | None = None
    node_link: str | None = None
    """Of each worker's own link."""
    start_up: float | None = None
    seed: int = 1
    sweep: str | None = None
    against: str | None = None
    """A folder of runs, or `published`."""
    engine: str | None = None
    """Whose model is meant in a file, and whose runs in such a folder; None: all models, for cases,
    and else those of the engine that is the usual one."""
    cases: Sequence[str] = ()
    """Values of parameters of a fitted model, such as `clients=10,20`."""
    far: bool = False
    """Predict such cases also where they are far from what was measured."""
    out: Path | None = None
    replace: bool = False
    show: bool = False
    """Print the profile as a file, and nothing else."""
    printing: Printing = field(default_factory=Printing)


class Progress(Tasks):
    """Tasks that have come back, of one run after another."""

    def __init__(self, console: Console, interrupt: Interrupt) -> None:
        super().__init__(console, transient=True)
        self._interrupt = interrupt

    def watch(self, done: int) -> None:
        """So many tasks have come back. Raises Stopped if the user has asked for an end."""
        self._interrupt.check()
        self.update(done)


def run_simulation(request: SimulationRequest) -> int:
    """Do what is asked for; the exit status. Raises InputError."""
    if request.cases:
        return _predict(request)
    fitted = _fitted(request)
    if fitted and request.against not in (None, PUBLISHED):
        return _watched(request, lambda progress, _: _compare(request, fitted, progress))
    chosen = fitted.only() if fitted else system_of(request.profile)
    if request.link is not None:
        chosen = chosen.on_link(parse_rate("--link", request.link))
    if request.node_link is not None:
        chosen = chosen.behind(parse_rate("--node-link", request.node_link))
    if request.show:
        click.echo(profile_text(chosen), nl=False)
        return 0
    if request.against is not None:
        return _watched(request, lambda progress, _: _compare(request, chosen, progress))
    if request.sweep is not None:
        sweep = parse_sweep(request.sweep)
        return _watched(
            request,
            lambda progress, interrupt: _sweep(request, chosen, sweep, progress, interrupt),
        )
    return _watched(request, lambda progress, _: _single(request, chosen, progress))


def _predict(request: SimulationRequest) -> int:
    if not request.profile.endswith(".json"):
        raise InputError(
            f"--case: `{request.profile}` is not a fitted model",
            remedy="give --profile a file that `gridbench model --out` has written",
        )
    found = predict(Path(request.profile), request.cases, request.engine, far=request.far)
    print_document(request.printing.tables(), cases_document(found))
    request.printing.document(lambda: [one.to_dict() for one in found.rows])
    return 0


def _watched(request: SimulationRequest, do: Callable[[Progress, Interrupt], int]) -> int:
    """Do it with a progress bar, and with a clean end if the user wants one."""
    with Interrupt() as interrupt, Progress(request.printing.progress(), interrupt) as progress:
        try:
            return do(progress, interrupt)
        except Stopped:
            click.echo(
                "gridbench: the simulation was interrupted, and nothing was written", err=True
            )
            return interrupt.exit_status


def _fitted(request: SimulationRequest) -> FittedSystems | None:
    """What `gridbench model` has written, if that is asked for."""
    if not request.profile.endswith(".json"):
        return None
    return read_fitted(Path(request.profile), request.engine or DEFAULT_ENGINE)


def _work(request: SimulationRequest, cores: int | None = None) -> SimulatedWorkload:
    if request.tasks is not None and request.tasks_per_core is not None:
        raise InputError(
            "--tasks and --tasks-per-core cannot both be given", remedy="leave one of them out"
        )
    cores = request.cores if cores is None else cores
    per_core = request.tasks_per_core or _TASKS_PER_CORE
    seconds, share = parse_stddev("--stddev", request.stddev)
    return SimulatedWorkload(
        cores=cores,
        tasks=cores * per_core if request.tasks is None else request.tasks,
        sleep=request.sleep,
        stddev=seconds + share * request.sleep,
        bytes_in=parse_size("--input-per-task", request.input),
        bytes_shared=parse_size("--shared", request.shared),
        bytes_out=parse_size("--output-per-task", request.output),
        seed=request.seed,
    )


def _check(request: SimulationRequest, works: Sequence[SimulatedWorkload]) -> None:
    """Refuse what cannot be done, before anything is begun."""
    start_up = request.start_up
    if start_up is not None and not 0 <= start_up <= LONGEST_TIME:
        raise InputError(
            f"--start-up must be from 0 to {as_given(LONGEST_TIME)}, not {as_given(start_up, '')}"
        )
    available = available_memory()
    for work in works:
        needed = work.tasks * _BYTES_PER_TASK + work.cores * _BYTES_PER_CORE
        if needed > available:
            raise InputError(
                f"{work.tasks:,} tasks on {work.cores:,} cores need about {size(needed)}"
                f" of memory, and {size(available)} are available",
                remedy="take fewer tasks: some thousands of cores show the same limits",
            )


def _single(request: SimulationRequest, chosen: System, progress: Progress) -> int:
    work = _work(request)
    _check(request, [work])
    folder = request.out
    if folder is not None:
        old = replaceable(folder, replace=request.replace)
        folder = make_places(folder, [chosen.name], old)[chosen.name]
    progress.begin(heading(work), work.tasks)
    done = simulate(work, chosen, start_up=request.start_up, watch=progress.watch)
    table = table_of(done)
    told = account(done, table, progress.watch)
    if folder is not None:
        write_folder(folder, done, table)
    print_document(request.printing.tables(), account_document(told))
    request.printing.document(told.to_dict)
    if folder is not None:
        request.printing.say(f"results: {folder}")
    return 0


# Sweeps.


def _sweep(
    request: SimulationRequest,
    chosen: System,
    sweep: SimulationSweep,
    progress: Progress,
    interrupt: Interrupt,
) -> int:
    cases = [_varied(request, chosen, sweep, value) for value in sweep.values]
    _check(request, [work for work, _ in cases])
    folder = _sweep_folder(request)
    accounts: list[Account] = []
    stopped = False
    for work, varied in cases:
        progress.begin(heading(work), work.tasks)
        try:
            done = simulate(work, varied, start_up=request.start_up, watch=progress.watch)
            accounts.append(account(done, table_of(done), progress.watch))
        except Stopped:
            stopped = True
            break
    if stopped and not accounts:
        raise Stopped
    swept = Swept(sweep, accounts)
    write_file(folder / _VALUES, json.dumps(swept.to_dict(), indent=2) + "\n")
    document = sweep_document(swept)
    write_page(document, folder / _PAGE)
    print_document(request.printing.tables(), document)
    request.printing.document(swept.to_dict)
    request.printing.say(f"page: {folder / _PAGE}")
    if stopped:
        left = len(cases) - len(accounts)
        click.echo(f"gridbench: interrupted; the last {left} are missing", err=True)
    return interrupt.exit_status if stopped else 0


def _varied(
    request: SimulationRequest, chosen: System, sweep: SimulationSweep, value: float
) -> tuple[SimulatedWorkload, System]:
    """The work and the system with this value."""
    name = sweep.axis.name
    if name == "link":
        return _work(request), chosen.on_link(value)
    if name == "node-link":
        return _work(request), chosen.behind(value)
    if name == "cores":
        return _work(request, int(value)), chosen
    if name == "tasks":
        request = replace(request, tasks=int(value))
    elif name == "tasks-per-core":
        request = replace(request, tasks_per_core=int(value))
    elif name == "sleep":
        request = replace(request, sleep=value)
    elif name == STDDEV_SHARE:
        request = replace(request, stddev=f"{value * 100:g}%")
    elif name == "stddev":
        request = replace(request, stddev=f"{value:g}")
    elif name == "input":
        request = replace(request, input=f"{value:.0f}")
    elif name == "shared":
        request = replace(request, shared=f"{value:.0f}")
    else:
        request = replace(request, output=f"{value:.0f}")
    return _work(request), chosen


def _sweep_folder(request: SimulationRequest) -> Path:
    folder = request.out or default_folder()
    ours = {_PAGE, _VALUES}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise unusable(folder, error) from None
    if held - ours or (held and not request.replace):
        raise InputError(
            "the output folder is not empty",
            file=folder,
            remedy="choose another --out"
            + ("" if held - ours else ", or add --force to replace the sweep in it"),
        )
    return folder


# Reality.


def _compare(request: SimulationRequest, chosen: System | FittedSystems, progress: Progress) -> int:
    assert request.against is not None
    found: list[SimulationComparison]
    if request.against == PUBLISHED:
        found = against_published(progress.begin, progress.watch)
    else:
        folder = Path(request.against)
        found = [
            against_runs(
                folder, chosen, request.engine or DEFAULT_ENGINE, progress.begin, progress.watch
            )
        ]
    print_document(request.printing.tables(), comparison_document(found))
    request.printing.document(lambda: [one.to_dict() for one in found])
    return 0
