"""The parameters and the command of `gridbench sync`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError, print_warning
from gridbench.hosts.hosts_file import Placement
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.quantities import FLAG, Choice, Counts, PathText, Quantity, Texts, words
from gridbench.schema import argument, group, option, read_parameters
from gridbench.shared_options import (
    TIMEOUT,
    HostOptions,
    ResultsOptions,
    dry_run_option,
    experiment_options,
    rounds_option,
)
from gridbench.sync.record import HoldPoint
from gridbench.sync.tasks import (
    BUILT_INS,
    Arguments,
    command_of,
    list_tasks,
    placeholders_in,
    split_arguments,
)

_STARTS: dict[str, tuple[HoldPoint, ...]] = {
    "entry": ("entry",),
    "exec": ("exec",),
    "both": ("entry", "exec"),
}


_WITH_ANY_OPTION = ("shell", "fio")
"""Built-in tasks that pass their arguments to another program."""


class TaskName(Quantity[str]):
    """The path of a program, or a name: of a built-in task, or of a program on the PATH."""

    name = "task"

    def read(self, value: Any, folder: Path | None = None) -> str:
        """A relative path, or the name of a file in the folder, starts at the folder."""
        path = PathText().read(value, folder)
        is_path = "/" in value or (folder is not None and os.path.isfile(path))
        return path if is_path else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncParameters:
    """Which program runs, on how many workers, and where."""

    task: str = argument(TaskName(), default="", older_name="TASK_FILE", record="task")
    workers: tuple[int, ...] = option(
        "-w",
        "--workers",
        Counts("count of workers"),
        metavar="LIST",
        help="Numbers of workers: 56, or a sweep: 1,2,4 or 2-7 or 7-56:7.",
        default=(),
        default_text="one for each core",
        older_name="WORKER_COUNT",
    )
    parameters: tuple[str, ...] = option(
        "-p",
        "--parameters",
        Texts("parameter"),
        metavar="LIST",
        help='Values for {parameter}, one round each, such as 4k,8k or \'["a b", "c"]\'.',
        default=("",),
        older_name="PARAMETER_ARRAY",
    )
    arguments: tuple[str, ...] = option(
        "--arguments",
        Arguments(),
        metavar="TEXT",
        help="The arguments as one text, instead of words.",
        default=(),
        older_name="ARGUMENTS",
    )
    hosts: HostOptions = group(HostOptions)
    placement: Placement = option(
        "--placement",
        words("spread", "fill"),
        help="Workers one by one over all hosts, or one host after the other.",
        default="spread",
        record="placement",
    )
    oversubscribe: bool = option(
        "--oversubscribe", FLAG, help="Allow more workers than cores on hosts.", default=False
    )
    rounds: int = rounds_option("How often each case is run.", 3, 10_000)
    start: tuple[HoldPoint, ...] = option(
        "--hold",
        Choice(_STARTS),
        help="Hold tasks at the entry of their program, so that it is loaded before; or before it"
        " is executed; or one round of each.",
        default=("entry",),
    )
    timeout: float = option(
        "--timeout", TIMEOUT, metavar="S", help="Time for a round.", default=600.0, record="timeout"
    )
    chdir: str = option(
        "--chdir",
        PathText(),
        metavar="DIR",
        help="Folder that tasks run in, made if it is not there; may have placeholders.",
        default=".",
        default_text="the current one",
        record="directory",
    )
    watch: tuple[str, ...] = option(
        "--watch",
        Texts("name"),
        metavar="NAME",
        help="Report the processor time of programs with this name, such as gfmd or redis-server.",
        default=(),
        multiple=True,
        record="watched",
    )
    results: ResultsOptions = group(ResultsOptions, out="runs/sync-<task>-<time>")

    def command(self) -> tuple[str, ...]:
        """Program and arguments, with placeholders. InputError if there is no such program, or no
        value for {parameter}."""
        if not self.task:
            raise InputError(
                "no task is named",
                remedy=f"name a program, or one of {', '.join(BUILT_INS)}, as in"
                " `gridbench sync null`",
            )
        found = command_of(self.task, self.arguments)
        used = placeholders_in(split_arguments([*found[1:], self.chdir]))
        if "parameter" in used and self.parameters == ("",):
            raise InputError(
                "the arguments have {parameter}, and there are no parameters",
                remedy="add --parameters 4k,8k",
            )
        return found


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
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File with any of these options, by their names; or with WORKER_COUNT, TASK_FILE,"
    " PARAMETER_ARRAY, ARGUMENTS and HOST_FILE. The environment may have the latter too.",
)
@experiment_options(SyncParameters)
@click.argument("argument_words", nargs=-1, metavar="[ARGUMENTS]...", type=click.UNPROCESSED)
@click.option("--list", "show_tasks", is_flag=True, help="List the choices, and exit.")
@dry_run_option
def sync(
    *,
    argument_words: tuple[str, ...],
    config: Path | None,
    show_tasks: bool,
    dry_run: bool,
    given: dict[str, Any],
    policy: Policy,
    printing: Printing,
) -> None:
    """Run TASK on all workers at the same instant, round after round.

    TASK is a program that every host has, or one of gridbench's own: null, sleep, write, read,
    write-read, metadata, cpu, memory, shell, fio (--list tells more). Options stand before TASK:
    all that follows it are its ARGUMENTS. These may have {parameter}, {worker}, {rank} (of the
    worker on its host), {host}, {round} and {total}, the numbers from 0; a brace that is meant as
    one is doubled, as in awk '{{print $1}}'.

    In each round all tasks are started and held, then let go at one instant of the hosts' corrected
    clocks. Results say how simultaneous they were, how long each took, what they did in a second,
    and what limited it. DIR holds rounds.jsonl, report.html and what the tasks printed. The
    same command with the same --out resumes; --retry-failed repeats rounds that failed.

    Exit status 1 says that a task failed, 2 that the command is wrong, 3 that other programs
    disturbed all rounds.
    """
    from gridbench.experiment import run_experiment
    from gridbench.sync.experiment import SyncExperiment, list_rounds

    if show_tasks:
        list_tasks(printing)
        return
    if argument_words and given["arguments"] is not None:
        raise InputError(
            "the arguments are given twice, behind the task and by --arguments",
            remedy="give them once",
        )
    _look_for_own_options(given["task"], argument_words)
    given["arguments"] = argument_words or given["arguments"]
    parameters = read_parameters(SyncParameters, given, environment=os.environ, file=config)
    experiment = SyncExperiment(parameters)
    if dry_run:
        list_rounds(experiment, printing)
    else:
        sys.exit(run_experiment(experiment, parameters.results, policy, printing))


def _look_for_own_options(task: str | None, words: Sequence[str]) -> None:
    """InputError if an option of `sync` follows a built-in task; a warning behind another
    program."""
    known = {name for parameter in sync.params for name in parameter.opts if name[:2] == "--"}
    misplaced = next((word for word in words if word.partition("=")[0] in known), None)
    if misplaced is None:
        return
    what = f"`{misplaced}` follows the task, and so is an argument of `{task}`"
    remedy = f"options of gridbench stand before it: gridbench sync {misplaced} ... {task}"
    if task in BUILT_INS and task not in _WITH_ANY_OPTION:
        raise InputError(what, remedy=remedy)
    print_warning(InputError(what, remedy=remedy))
