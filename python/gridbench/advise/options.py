"""The options of `gridbench advise`. What it needs is imported when it is called."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.engines.names import DEFAULT_ENGINES
from gridbench.machine.options import Policy, load_options
from gridbench.printing import Printing, printing_options
from gridbench.quantities import Count
from gridbench.run.options import (
    grid_option,
    rounds_given,
    rounds_option,
    servers_option,
    start_option,
    task_option,
)
from gridbench.workload.body import SPIN
from gridbench.workload.options import (
    input_option,
    output_option,
    parse_body,
    shared_option,
    stddev_option,
)


@click.command(
    cls=CommandWithExamples,
    basic=(
        "--work",
        "--cores",
        "--task",
        "--input",
        "--shared",
        "--output",
        "--within",
        "--engine",
        "--from",
        "--try",
    ),
    examples=(
        "gridbench advise --work 100s --input 1MB --shared 10MB --cores 100",
        "gridbench advise --work 2h --input-per-task 1MB --cores 400 --from model.json",
        "gridbench advise --work 10s --cores 2 --task spin     # it computes here",
        "gridbench advise --work 10s --cores 50 --stddev 50%",
        "gridbench advise --work 60s --cores 16 --memory-traffic 200GB",
        "gridbench advise --work-from tasks.log --cores 50",
        "gridbench advise --work 30d --cores 10000 --profile symphony",
        "gridbench advise --work 2h --cores 500 --within 60s --from model.json",
        "gridbench advise --work 10s --cores 50 --engine process-pool --try",
        "gridbench advise --work 2h --cores 64 --grid grid.toml --server lab",
    ),
)
@click.option("--work", metavar="TIME", help="Time of the job on one core, such as 100s.")
@click.option(
    "--work-from",
    type=click.Path(path_type=Path, exists=True),
    metavar="LOG|DIR",
    help="Instead: a task log, or the folder of a run. The job is its tasks, with their times and"
    " data, which can be put together to fewer.",
)
@click.option(
    "--cores",
    required=True,
    type=Count(1, 100_000),
    metavar="N",
    help="Number of cores; each is a worker with one task at a time.",
)
@task_option
@click.option(
    "--threads-per-task",
    "threads",
    type=Count(1, 100_000),
    metavar="N",
    help="Threads of each task that computes: on this machine, as many tasks run at once as have a"
    " processor for each of their threads. --work is then the time of the job with one task after"
    " the other.  [default: 1]",
)
@click.option(
    "--memory-traffic",
    metavar="SIZE",
    help="What the whole job reads from memory and writes to it, such as 20GB: tasks that run at"
    " once share the machine's memory bandwidth.",
)
@click.option(
    "--memory-bandwidth",
    metavar="RATE",
    help="With --memory-traffic: such as 20GB/s. [default: measured once on this machine]",
)
@click.option(
    "--input",
    "bytes_in",
    metavar="SIZE",
    default="0",
    help="Input of the whole job, such as 1MB, which is divided with it. 1 MB is 1,024 KB.",
)
@input_option
@shared_option
@click.option("--output", "bytes_out", metavar="SIZE", default="0", help="Output of the whole job.")
@output_option
@start_option
@click.option(
    "--most-tasks",
    type=Count(1, 10_000_000),
    default=100_000,
    show_default=True,
    metavar="N",
    help="The largest number of tasks into which the job can be divided.",
)
@click.option(
    "--within",
    metavar="TIME",
    help="Ask for the fewest cores, up to N, with which the job ends within TIME, such as 60s.",
)
@stddev_option
@click.option(
    "--distribution",
    type=click.Choice(["normal", "log-normal", "pareto"]),
    help="With --stddev: of the times. A normal one is truncated at 0; the others have heavy tails."
    "  [default: normal]",
)
@click.option(
    "--pieces",
    type=Count(1, 100_000),
    metavar="N",
    help="With --stddev: the job consists of N pieces, files for example, which deviate by SHARE,"
    " each on its own. A task of n of them then deviates by less: its root-n-th part.",
)
@click.option("--engine", metavar="NAME", help=f"Engine. [default: {DEFAULT_ENGINES}]")
@grid_option
@servers_option
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, exists=True),
    metavar="MODEL.json|DIR",
    help="A model of `gridbench model`, or the folder of runs to fit one to. Without it the engine"
    " is calibrated by some short runs, and its model is kept for the next time.",
)
@click.option(
    "--profile",
    metavar="NAME|FILE",
    help="System that you don't have: symphony, ninfg, condor, gridrpc, a profile (.toml), or for"
    " `simulate` a model (.json).",
)
@click.option(
    "--crossover",
    "data_grid",
    type=click.Path(path_type=Path, exists=True),
    metavar="DIR",
    help="Results of `gridbench data crossover`, to say whether shared data is better in a data"
    " grid. [default: those that were measured last on this machine]",
)
@click.option(
    "--renew", is_flag=True, help="Calibrate the engine anew, whatever model of it was kept."
)
@click.option(
    "--map",
    "maps",
    is_flag=True,
    help="Show on the page what limits, over the time of a task and its data: of each model in the"
    " file given by --from, or of the engine or system of the advice.",
)
@click.option(
    "--try",
    "trying",
    is_flag=True,
    help="Run the advised split, and 1, 10, 25, 50, 100, 200, 400 and 1,000 tasks beside it, as far"
    " as they fit.",
)
@rounds_option
@click.option(
    "--try-limit",
    type=float,
    metavar="S",
    help="With --try: leave out splits that are expected to take more seconds.  [default: 60]",
)
@load_options
@printing_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the page and the model. [default: runs/advice-<time>]",
)
def advise(
    *,
    work: str | None,
    work_from: Path | None,
    cores: int,
    body_name: str,
    threads: int | None,
    memory_traffic: str | None,
    memory_bandwidth: str | None,
    bytes_in: str,
    bytes_in_each: str,
    shared: str,
    bytes_out: str,
    bytes_out_each: str,
    start: str,
    most_tasks: int,
    within: str | None,
    stddev: str | None,
    distribution: str | None,
    pieces: int | None,
    engine: str | None,
    grid: Path | None,
    servers: tuple[str, ...],
    source: Path | None,
    profile: str | None,
    data_grid: Path | None,
    maps: bool,
    renew: bool,
    trying: bool,
    rounds: int | Literal["auto"] | None,
    try_limit: float | None,
    out: Path | None,
    policy: Policy,
    printing: Printing,
) -> None:
    """Say into how many tasks to divide a job, and how many cores to ask for.

    The advice gives the expected time with an interval, where the time goes, what limits it,
    whether to send data as shared data, and what would help most. DIR then holds report.html, which
    shows the total time over the number of tasks, and model.json.

    The advice is for N cores, wherever they are. With --task spin the tasks compute on this
    machine, where no more of them run at once than it has processors.

    With --threads-per-task and --memory-traffic, tasks compute and share processors and memory: the
    job takes no less than its data takes through the memory, whose bandwidth is measured once.

    With --work-from, the job is the tasks of an earlier run: the advice is how many of them to put
    together, in their order. Times are what tasks slept, or else from calc-in to calc-out.

    Of shared data the advice also says whether it would be there sooner from a data grid, if that
    was measured by `gridbench data crossover`.

    With --grid or --server, the engine is calibrated and tried on servers of a grid, and the advice
    is for work there. Each worker has a processor.

    With --profile, the advice is for a system that is not here. Its workers have a processor each,
    and nothing is measured.

    With --within, the advice is the fewest cores with which 19 of 20 runs end in time, and says
    from how many on a run does so more likely than not.

    With --stddev, tasks differ in time, by the same share of their mean however the job is divided,
    if --pieces says nothing else. Totals are means over several draws of their times. The job as a
    whole takes as long as --work says.

    With --try, the advice is tested on this machine, or on the servers: splits run in random order,
    three times each, and their medians show how close the advised one is to the best. Exit status 1
    says that a run failed, 3 that other programs used the machine, so that nothing can be claimed.
    """
    from gridbench.machine.load import begin_sample

    # Before what takes long to import, so that it is over when that is there; but not before
    # servers are asked, whose agents may be on this machine.
    begun = None if source or profile or grid or servers else begin_sample()
    from gridbench.advise.asked import work_asked
    from gridbench.advise.command import AdviceRequest, give_advice
    from gridbench.advise.trying import effort_of
    from gridbench.advise.uneven import parse_uneven
    from gridbench.advise.work import parse_roofline, parse_time
    from gridbench.engines.servers import names_in

    body = parse_body(_task(body_name, computes=bool(threads or memory_traffic)))
    roofline, bandwidth = parse_roofline(
        threads=threads, traffic=memory_traffic, bandwidth=memory_bandwidth, body=body
    )
    asked = work_asked(
        time=work,
        log=work_from,
        cores=cores,
        sizes={
            "--input": bytes_in,
            "--input-per-task": bytes_in_each,
            "--shared": shared,
            "--output": bytes_out,
            "--output-per-task": bytes_out_each,
        },
        uneven=parse_uneven(stddev, distribution, pieces, work),
        most_tasks=most_tasks,
        warm=start == "warm",
        body=body,
    )
    sys.exit(
        give_advice(
            AdviceRequest(
                work=replace(asked, roofline=roofline),
                bandwidth=bandwidth,
                engine=engine,
                within=None if within is None else parse_time("--within", within),
                grid=grid,
                servers=names_in(servers),
                source=source,
                profile=profile,
                data_grid=data_grid,
                maps=maps,
                renew=renew,
                effort=effort_of(
                    trying=trying, rounds=rounds_given(rounds, several=True), limit=try_limit
                ),
                folder=out,
                policy=policy,
                begun=begun,
                printing=printing,
            )
        )
    )


def _task(name: str, *, computes: bool) -> str:
    """What tasks do: options that only make sense for tasks that compute say that they do."""
    source = click.get_current_context().get_parameter_source("body_name")
    return SPIN if computes and source is click.core.ParameterSource.DEFAULT else name
