"""`gridbench simulate`: a run, a sweep, a comparison, or predicted cases."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from gridbench.atomic_write import write_file
from gridbench.engines.names import DEFAULT_ENGINE
from gridbench.errors import InputError
from gridbench.formats import as_given, size
from gridbench.links.options import parse_rate
from gridbench.pages.document import write_page
from gridbench.pages.terminal import print_document
from gridbench.printing import Printing
from gridbench.process.interrupt import Interrupt, Stopped
from gridbench.progress import Tasks
from gridbench.quantities import parse_stddev
from gridbench.results_folder import default_folder, unusable
from gridbench.run.machine import available_memory
from gridbench.run.recorder import make_places, replaceable
from gridbench.simulate.account import Account, account
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
from gridbench.simulate.options import SimulationParameters
from gridbench.simulate.profiles import profile_text, system_of
from gridbench.simulate.simulation import SimulatedWorkload, simulate
from gridbench.simulate.sweep import STDDEV_SHARE, SimulationSweep, Swept, parse_sweep, predict
from gridbench.simulate.systems import System
from gridbench.simulate.timeline import table_of, write_folder
from gridbench.workload.numbers import LONGEST_TIME

_BYTES_PER_TASK = 1_500
_BYTES_PER_CORE = 1_500
"""Memory that a simulation takes, as measured with a million tasks on 100,000 cores, and more."""
_PAGE = "sweep.html"
_VALUES = "sweep.json"


class Progress(Tasks):
    """Tasks that have come back, of one run after another; what is printed, and Ctrl-C."""

    def __init__(self, printing: Printing, interrupt: Interrupt) -> None:
        super().__init__(printing.progress(), transient=True)
        self.printing, self.interrupt = printing, interrupt

    def watch(self, done: int) -> None:
        """So many tasks have come back. Raises Stopped if the user has asked for an end."""
        self.interrupt.check()
        self.update(done)


def run_simulation(request: SimulationParameters, printing: Printing | None = None) -> int:
    """Predict, simulate, sweep or compare; the exit status. Raises InputError."""
    printing = printing or Printing()
    if request.cases:
        return _predict(request, printing)
    fitted = _fitted(request)
    if fitted and request.against not in (None, PUBLISHED):
        return _watched(printing, lambda progress: _compare(request, fitted, progress))
    chosen = fitted.only() if fitted else system_of(request.profile)
    if request.link is not None:
        chosen = chosen.on_link(parse_rate("--link", request.link))
    if request.node_link is not None:
        chosen = chosen.behind(parse_rate("--node-link", request.node_link))
    if request.show:
        click.echo(profile_text(chosen), nl=False)
        return 0
    if request.against is not None:
        return _watched(printing, lambda progress: _compare(request, chosen, progress))
    if request.sweep is not None:
        sweep = parse_sweep(request.sweep)
        return _watched(printing, lambda progress: _sweep(request, chosen, sweep, progress))
    return _watched(printing, lambda progress: _single(request, chosen, progress))


def _predict(request: SimulationParameters, printing: Printing) -> int:
    if not request.profile.endswith(".json"):
        raise InputError(
            f"--case: `{request.profile}` is not a fitted model",
            remedy="give --profile a file that `gridbench model --out` has written",
        )
    found = predict(Path(request.profile), request.cases, request.engine, far=request.far)
    print_document(printing.tables(), cases_document(found))
    printing.document(lambda: [one.to_dict() for one in found.rows])
    return 0


def _watched(printing: Printing, do: Callable[[Progress], int]) -> int:
    """Do it with a progress bar, and with a clean end if the user wants one."""
    with Interrupt() as interrupt, Progress(printing, interrupt) as progress:
        try:
            return do(progress)
        except Stopped:
            click.echo(
                "gridbench: the simulation was interrupted, and nothing was written", err=True
            )
            return interrupt.exit_status


def _fitted(request: SimulationParameters) -> FittedSystems | None:
    """What `gridbench model` has written, if that is requested."""
    if not request.profile.endswith(".json"):
        return None
    return read_fitted(Path(request.profile), request.engine or DEFAULT_ENGINE)


def _work(request: SimulationParameters) -> SimulatedWorkload:
    if request.tasks is not None and request.tasks_per_core is not None:
        raise InputError(
            "--tasks and --tasks-per-core cannot both be given", remedy="leave one of them out"
        )
    seconds, share = parse_stddev("--stddev", request.stddev)
    return SimulatedWorkload(
        cores=request.cores,
        tasks=request.task_count,
        sleep=request.sleep,
        stddev=seconds + share * request.sleep,
        bytes_in=request.input,
        bytes_shared=request.shared,
        bytes_out=request.output,
        seed=request.seed,
    )


def _check(request: SimulationParameters, works: Sequence[SimulatedWorkload]) -> None:
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


def _single(request: SimulationParameters, chosen: System, progress: Progress) -> int:
    work = _work(request)
    _check(request, [work])
    folder = request.out
    if folder is not None:
        old = replaceable(folder, replace=request.force)
        folder = make_places(folder, [chosen.name], old)[chosen.name]
    progress.begin(heading(work), work.tasks)
    done = simulate(work, chosen, start_up=request.start_up, watch=progress.watch)
    table = table_of(done)
    reported = account(done, table, progress.watch)
    if folder is not None:
        write_folder(folder, done, table)
    print_document(progress.printing.tables(), account_document(reported))
    progress.printing.document(reported.to_dict)
    if folder is not None:
        progress.printing.say(f"results: {folder}")
    return 0


# Sweeps.


def _sweep(
    request: SimulationParameters,
    chosen: System,
    sweep: SimulationSweep,
    progress: Progress,
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
    print_document(progress.printing.tables(), document)
    progress.printing.document(swept.to_dict)
    progress.printing.say(f"page: {folder / _PAGE}")
    if stopped:
        left = len(cases) - len(accounts)
        click.echo(f"gridbench: interrupted; the last {left} are missing", err=True)
    return progress.interrupt.exit_status if stopped else 0


def _varied(
    request: SimulationParameters, chosen: System, sweep: SimulationSweep, value: float
) -> tuple[SimulatedWorkload, System]:
    """The work and the system with this value."""
    match sweep.axis.name:
        case "link":
            return _work(request), chosen.on_link(value)
        case "node-link":
            return _work(request), chosen.behind(value)
        case "cores" | "tasks" | "tasks-per-core" as name:
            changed: dict[str, Any] = {name.replace("-", "_"): int(value)}
        case "stddev":
            changed = {"stddev": f"{value:g}"}
        case name if name == STDDEV_SHARE:
            changed = {"stddev": f"{value * 100:g}%"}
        case name:
            changed = {name: value}
    return _work(replace(request, **changed)), chosen


def _sweep_folder(request: SimulationParameters) -> Path:
    folder = request.out or default_folder()
    ours = {_PAGE, _VALUES}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise unusable(folder, error) from None
    if held - ours or (held and not request.force):
        raise InputError(
            "the output folder is not empty",
            file=folder,
            remedy="choose another --out"
            + ("" if held - ours else ", or add --force to replace the sweep in it"),
        )
    return folder


# Reality.


def _compare(
    request: SimulationParameters,
    chosen: System | FittedSystems,
    progress: Progress,
) -> int:
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
    print_document(progress.printing.tables(), comparison_document(found))
    progress.printing.document(lambda: [one.to_dict() for one in found])
    return 0
