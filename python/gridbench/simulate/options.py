"""The options of `gridbench simulate`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.engines.default import DEFAULT_ENGINE
from gridbench.links.link_option import link_option
from gridbench.printing import Printing, printing_options
from gridbench.quantities import SECONDS, Count
from gridbench.workload.options import (
    input_option,
    output_option,
    seed_option,
    shared_option,
    stddev_option,
)


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench simulate --profile symphony --cores 400 --input-per-task 1MB",
        "gridbench simulate --profile ninfg --cores 1000 --sleep 10 --link 100mbit",
        "gridbench simulate --sweep cores=1000,10000,100000 --out runs/cores",
        "gridbench simulate --profile symphony --show > mine.toml  # to be changed",
        "gridbench simulate --profile mine.toml --cores 1000 --out runs/mine",
        "gridbench simulate --profile model.json --against runs/scenario-6",
        "gridbench simulate --against published",
        "gridbench simulate --profile model.json --case clients=20,40 --case size=1MB",
    ),
)
@click.option(
    "--profile",
    default="gridrpc",
    show_default=True,
    metavar="NAME|FILE",
    help="System that you don't have: symphony, ninfg, condor, gridrpc, a profile (.toml), or for"
    " `simulate` a model (.json).",
)
@click.option(
    "--cores",
    type=Count(1, 1_000_000),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of cores; each is a worker with one task at a time.",
)
@click.option(
    "--tasks",
    type=Count(1, 10_000_000),
    metavar="N",
    help="Number of tasks. [default: 10 for each core]",
)
@click.option(
    "--tasks-per-core", type=Count(1, 10_000_000), metavar="K", help="Instead of --tasks."
)
@click.option(
    "--sleep",
    type=SECONDS,
    default=30.0,
    show_default=True,
    metavar="S",
    help="Mean time of a task.",
)
@stddev_option
@input_option
@shared_option
@output_option
@link_option
@click.option(
    "--node-link",
    metavar="RATE",
    help="Of each worker's own link. [default: no limit]",
)
@click.option(
    "--start-up",
    type=SECONDS,
    metavar="S",
    help="Seconds until all workers have started; 0: they run already. [default: the profile's]",
)
@seed_option
@click.option(
    "--sweep",
    metavar="WHAT=LIST",
    help="Vary one value: cores, tasks, tasks-per-core, sleep, stddev, input, shared, output,"
    " link, node-link.",
)
@click.option(
    "--against",
    metavar="DIR",
    help="Simulate the runs in a folder of `gridbench run` or `gridbench scenario`, and compare; or"
    " `published`.",
)
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="WHAT=LIST",
    help="Predict cases by a fitted model, with a range: cores, tasks, sleep, input, shared, output"
    " of tasks; clients, size, operations of a data grid; workers of synchronised rounds. May be"
    " given several times, for all combinations.",
)
@click.option(
    "--far",
    is_flag=True,
    help="Predict such cases also more than ten times beyond what was measured.",
)
@click.option(
    "--engine",
    metavar="NAME",
    help="Which engine's model to take from a file of several, and whose runs with --against."
    f" [default: {DEFAULT_ENGINE}; with --case all of the file]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write timeline, log and report there, or the page of a sweep.",
)
@click.option("--force", is_flag=True, help="Replace what is there.")
@printing_options
@click.option("--show", is_flag=True, help="Print the profile as a file, and exit.")
def simulate(
    *,
    profile: str,
    cores: int,
    tasks: int | None,
    tasks_per_core: int | None,
    sleep: float,
    stddev: str | None,
    bytes_in_each: str,
    shared: str,
    bytes_out_each: str,
    link: str | None,
    node_link: str | None,
    start_up: float | None,
    seed: int,
    sweep: str | None,
    against: str | None,
    engine: str | None,
    cases: tuple[str, ...],
    far: bool,
    out: Path | None,
    force: bool,
    show: bool,
    printing: Printing,
) -> None:
    """Simulate a workload on a system that is not here, old or new, with up to a million cores.

    Tasks go through the same model of a run as in `gridbench published`: client, links, perhaps a
    manager, workers. The output has the total time, where it goes, what was busy, and what limits
    it. Write sizes as 10KB or 1MB (1,024 KB), rates as 100mbit or 1gbit, and times as 30, 200ms or
    5min, as for all commands.

    DIR then holds run.json, timeline.parquet, tasks.log and report.html, as after `gridbench run`.
    """
    if cases or far:
        _refuse_others(far_alone=not cases)
    from gridbench.simulate.command import SimulationRequest, run_simulation

    sys.exit(
        run_simulation(
            SimulationRequest(
                profile=profile,
                cores=cores,
                tasks=tasks,
                tasks_per_core=tasks_per_core,
                sleep=sleep,
                stddev=stddev or "0",
                input=bytes_in_each,
                shared=shared,
                output=bytes_out_each,
                link=link,
                node_link=node_link,
                start_up=start_up,
                seed=seed,
                sweep=sweep,
                against=against,
                engine=engine,
                cases=cases,
                far=far,
                out=out,
                replace=force,
                show=show,
                printing=printing,
            )
        )
    )


_WITH_CASES = {"profile", "engine", "cases", "far"}
"""What counts for predicted cases; all else is of simulated tasks."""


def _refuse_others(*, far_alone: bool) -> None:
    if far_alone:
        raise click.UsageError("--far is for cases that --case gives.")
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name not in _WITH_CASES and name not in ("as_json", "quiet"):
            raise click.UsageError(f"{parameter.opts[0]} is not for the cases of --case.")
