"""The options of `gridbench run`. What it needs is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.engines.default import DEFAULT_ENGINES, default_engines
from gridbench.machine.options import load_options
from gridbench.machine.policy import Policy
from gridbench.printing import Printing, printing_options
from gridbench.quantities import AUTO, ROUNDS, TIME_SCALE, Count
from gridbench.shared_options import TIMEOUT
from gridbench.workload.options import parse_body, task_option, tasks_options


def rounds_given(rounds: int | Literal["auto"] | None, *, several: bool) -> int | None:
    """The number of rounds; None: as many as it takes. `several` engines are to be compared."""
    if rounds is None:
        return None if several else 1
    return None if rounds == AUTO else rounds


engines_option = click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help=f"Engine to measure; may be given several times. [default: {DEFAULT_ENGINES}]",
)
start_option = click.option(
    "--start",
    type=click.Choice(["cold", "warm"]),
    default="cold",
    show_default=True,
    help="Whether starting the workers counts (cold), or all have answered before t = 0 (warm).",
)

grid_option = click.option(
    "--grid",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Have workers on the servers of this grid.toml.",
)
servers_option = click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="NAME[,NAME]",
    help="Only on these servers of FILE, or on one that is a URL, such as ssh://node1; may be given"
    " several times. [default: all of FILE]",
)
start_timeout_option = click.option(
    "--start-timeout",
    type=TIMEOUT,
    default=180.0,
    show_default=True,
    metavar="S",
    help="Time until all workers and hosts have to be ready.",
)
rounds_option = click.option(
    "--rounds",
    type=ROUNDS,
    metavar="N|auto",
    help="How often each case is measured; auto: as often as the answer takes. [default: auto; 1"
    " for a single engine of `run` or `scenario`]",
)
time_scale_option = click.option(
    "--time-scale",
    type=TIME_SCALE,
    metavar="F",
    help="Multiply the time of every task by F; 0: tasks take no time. [default: 1, with --quick"
    " 0.01]",
)
ROUNDS_LIMIT = 300.0
limit_option = click.option(
    "--limit",
    type=TIMEOUT,
    metavar="S",
    help="Seconds that all of it may take: nothing begins that would end later. [default: any; 300"
    " for the rounds of `run`]",
)
check_option = click.option(
    "--check/--no-check",
    default=True,
    show_default=True,
    help="Check every byte in a second, untimed pass.",
)


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench run gridrpc-python process-pool        # in seconds",
        "gridbench run --cores 4 --tasks 1000 --task-time 5ms --shared 10MB",
        "gridbench run examples/compute/setup.xml",
        "gridbench run setup.xml process-pool --start warm --out runs/warm",
        "gridbench run setup.xml gridrpc-python process-pool",
        "gridbench run setup.xml --rounds auto        # until the time is known to 5 %",
        "gridbench run setup.xml --time-scale 0.1     # every task sleeps a tenth",
        "gridbench run setup.xml --task spin --cores 2    # every task computes",
        "gridbench run setup.xml --grid grid.toml --server lab,here --out runs/many",
    ),
)
@click.argument("words", nargs=-1, metavar="[SETUP.xml] [ENGINE]...")
@engines_option
@start_option
@grid_option
@servers_option
@click.option(
    "--cores",
    type=Count(1, 100_000),
    metavar="N",
    help="Number of cores; each is a worker with one task at a time. [default: NNodes of SETUP.xml,"
    " or the processors of this machine, or those of the servers]",
)
@tasks_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the results; it must be new or empty. [default: runs/<time>]",
)
@time_scale_option
@check_option
@task_option
@rounds_option
@limit_option
@start_timeout_option
@load_options
@printing_options
@click.option("--force", is_flag=True, help="Replace what is there.")
def run(
    *,
    words: tuple[str, ...],
    tasks: int | None,
    task_time: float | None,
    bytes_in_each: str,
    shared: str,
    bytes_out_each: str,
    engines: tuple[str, ...],
    start: str,
    grid: Path | None,
    servers: tuple[str, ...],
    cores: int | None,
    out: Path | None,
    time_scale: float | None,
    body_name: str,
    check: bool,
    rounds: int | Literal["auto"] | None,
    limit: float | None,
    start_timeout: float,
    force: bool,
    policy: Policy,
    printing: Printing,
) -> None:
    """Run tasks on one or more engines, and compare the engines.

    Tasks are those of --tasks, --task-time, --input-per-task, --shared and --output-per-task, or
    those of a set-up file. Without a file and an engine, gridrpc runs beside Python's process pool.

    DIR then holds run.json (configuration, machine, summary), timeline.parquet (all stamps
    of all tasks), tasks.log (the same in the benchmark's own format) and report.html. With
    several engines these lie in DIR/<engine>, and DIR/report.html compares them.

    Several engines run in turn, round after round, until it is known which of them is fastest, or
    that they are as fast as each other, but 10 times at most. With --rounds auto a single engine
    runs until its time is known to 5 %. Later rounds lie in DIR/<engine>-2 and so on; the page
    shows the one of median time.

    Tasks sleep unless --task says otherwise: the run then measures the engine alone, and any number
    of workers can be at work at once. Tasks that compute share the processors, and their ideal time
    counts the processors of this machine.

    With --grid or --server the workers of gridrpc's engines are on other machines: gridbench asks
    the servers for their workers first, and ignores NNodes. `gridbench report` shows runs with
    different servers or engines side by side.

    Nothing is measured while other programs use the machine: gridbench names them and waits. A run
    that they disturb does not count; the exit status is 3 if no run of an engine counts.

    Ctrl-C ends a run and keeps what was measured; a second one ends the program at once.
    """
    from gridbench.engines.servers import names_in
    from gridbench.run.asked import split_words, tasks_given
    from gridbench.run.command import RunRequest, run_benchmark
    from gridbench.run.rounds import Rounds
    from gridbench.run.runner import Options

    body = parse_body(body_name)
    setup, named = split_words(words)
    engines = (*named, *engines) or default_engines(body, compare=setup is None)
    given = tasks_given(
        setup,
        tasks=tasks,
        seconds=task_time,
        bytes_in=bytes_in_each,
        shared=shared,
        bytes_out=bytes_out_each,
    )
    sys.exit(
        run_benchmark(
            RunRequest(
                setup_file=setup,
                tasks=given,
                engines=engines,
                rounds=Rounds(
                    rounds_given(rounds, several=len(engines) > 1),
                    limit or ROUNDS_LIMIT,
                    accept_load=policy.accept,
                ),
                folder=out,
                time_scale=1.0 if time_scale is None else time_scale,
                body=body,
                grid=grid,
                servers=names_in(servers),
                cores=cores,
                replace=force,
                policy=policy,
                printing=printing,
                options=Options(warm=start == "warm", check=check, start_timeout=start_timeout),
            )
        )
    )
