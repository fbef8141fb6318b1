"""The options of `gridbench sync`. What it needs is imported when it is called."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.going_on import results_options
from gridbench.hosts.options import hosts_options
from gridbench.machine.policy import Policy
from gridbench.printing import Printing
from gridbench.seconds import SECONDS


@click.command(
    cls=CommandWithExamples,
    short_help="Run a program on all workers at once, round after round.",
    context_settings={"allow_interspersed_args": False},
    examples=(
        "gridbench sync --workers 56 null             # what starting together costs",
        "gridbench sync --workers 1,2,4 write-read --size 64M --block 1M",
        "gridbench sync -w 1-8 -p 4k,64k,1M write --size 64M --block {parameter}",
        "gridbench sync -w 1-8 metadata --total 20000 --directory /scratch",
        "gridbench sync --hosts hosts.txt -w 7-56:7 ./mytask {parameter} {worker}",
        "gridbench sync --server 'slurm:?nodes=4&workers=14' shell 'hostname; sleep 1'",
        "gridbench sync --emulate ssh --nodes 4 -w 8 sleep 1",
        "WORKER_COUNT=8 TASK_FILE=./mytask gridbench sync",
    ),
)
@click.argument("task", required=False)
@click.argument("words", nargs=-1, metavar="[ARGUMENTS]...", type=click.UNPROCESSED)
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File with any of these options, by their names; or with WORKER_COUNT, TASK_FILE,"
    " PARAMETER_ARRAY, ARGUMENTS and HOST_FILE. The environment may have the latter too.",
)
@click.option(
    "-w",
    "--workers",
    metavar="LIST",
    help="How many workers: 56, or a sweep: 1,2,4 or 2-7 or 7-56:7. [default: one for each core]",
)
@click.option(
    "-p",
    "--parameters",
    metavar="LIST",
    help='Values for {parameter}, one round each, such as 4k,8k or \'["a b", "c"]\'.',
)
@click.option("--arguments", metavar="TEXT", help="The arguments as one text, instead of words.")
@hosts_options
@click.option(
    "--placement",
    type=click.Choice(["spread", "fill"]),
    help="Workers one by one over all hosts, or one host after the other. [default: spread]",
)
@click.option("--oversubscribe", is_flag=True, help="Allow more workers than cores on hosts.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="How often each case is run. [default: 3]",
)
@click.option(
    "--start",
    type=click.Choice(["entry", "exec", "both"]),
    help="Hold tasks at the entry of their program, so that it is loaded before; or before it is"
    " executed; or one round of each. [default: entry]",
)
@click.option("--timeout", type=SECONDS, metavar="S", help="Seconds for a round. [default: 600]")
@click.option(
    "--chdir",
    metavar="DIR",
    help="Folder that tasks run in, made if it is not there; may have placeholders."
    " [default: the current one]",
)
@click.option(
    "--watch",
    multiple=True,
    metavar="NAME",
    help="Tell the processor time of programs with this name, such as gfmd or redis-server.",
)
@click.option(
    "--start-timeout",
    type=SECONDS,
    metavar="S",
    help="Seconds until all hosts have to be there. [default: 180]",
)
@click.option("--tasks", "list_tasks", is_flag=True, help="List gridbench's own tasks, and exit.")
@click.option("--dry-run", is_flag=True, help="List the rounds and the commands, and exit.")
@results_options("runs/sync-<task>-<time>")
def sync(
    *,
    task: str | None,
    words: tuple[str, ...],
    list_tasks: bool,
    dry_run: bool,
    policy: Policy,
    printing: Printing,
    **given: Any,
) -> None:
    """Run TASK on all workers at the same instant, round after round.

    TASK is a program that every host has, or one of gridbench's own: null, sleep, write, read,
    write-read, metadata, cpu, memory, shell, fio (--tasks tells more). Options stand before TASK:
    all that follows it are its ARGUMENTS. These may have {parameter}, {worker}, {rank} (of the
    worker on its host), {host}, {round} and {total}, the numbers from 0; a brace that is meant as
    one is doubled, as in awk '{{print $1}}'.

    In each round all tasks are started and held, then let go at one instant of the hosts' corrected
    clocks. Results say how simultaneous they were, how long each took, what they did in a second,
    and what limited it. DIR holds rounds.jsonl, report.html and what the tasks printed; the same
    command with the same --out goes on where the one before stopped, without rounds that failed, if
    --retry-failed does not say otherwise.

    Exit status 1 says that a task failed, 2 that the command is wrong, 3 that other programs
    disturbed all rounds.
    """
    from gridbench.sync import listing
    from gridbench.sync.asked import request_of
    from gridbench.sync.command import run_sync

    if list_tasks:
        listing.list_tasks(printing)
        return
    asked = {**given, "task": task, "words": words}
    request = request_of(asked, os.environ, policy=policy, printing=printing)
    if dry_run:
        listing.list_rounds(request)
    else:
        sys.exit(run_sync(request))
