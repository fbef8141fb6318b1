"""The parameters and the command of `gridbench run`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from gridbench.command_line import CommandWithExamples
from gridbench.engines.names import DEFAULT_ENGINES, default_engines
from gridbench.errors import InputError
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.quantities import (
    AUTO,
    CORES,
    FLAG,
    PATH,
    TIME_SCALE,
    Each,
    Word,
)
from gridbench.schema import argument, group, option, read_parameters
from gridbench.shared_options import (
    TIMEOUT,
    ResultsOptions,
    ServerOptions,
    auto_rounds_option,
    engines_option,
    experiment_options,
    start_option,
)
from gridbench.workload.numbers import shown
from gridbench.workload.options import TasksOptions, task_option

if TYPE_CHECKING:
    from gridbench.workload.workload import Workload

ROUNDS_LIMIT = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunOptions:
    """How tasks run, of single runs and of scenarios."""

    engines: tuple[str, ...] = engines_option(DEFAULT_ENGINES)
    task: str = task_option(record="task")
    time_scale: float | None = option(
        "--time-scale",
        TIME_SCALE,
        metavar="F",
        help="Multiply the time of every task by F; 0: tasks take no time.",
        default_text="1, with --quick 0.01",
    )
    start: Literal["cold", "warm"] = start_option("start")
    where: ServerOptions = group(ServerOptions)
    rounds: int | Literal["auto"] | None = auto_rounds_option(
        default_text="auto; 1 for a single engine of `run` or `scenario`"
    )
    limit: float | None = option(
        "--limit",
        TIMEOUT,
        metavar="S",
        help="Seconds that all of it may take: nothing begins that would end later.",
        default_text="any; 300 for the rounds of `run`",
    )
    check: bool = option(
        "--check/--no-check",
        FLAG,
        help="Check every byte in a second, untimed pass.",
        default=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParameters(TaskRunOptions):
    """Which tasks run on which engines, where and how often."""

    named: tuple[str, ...] = argument(
        Each(Word()), metavar="[SETUP.xml] [ENGINE]...", default=(), multiple=True
    )
    cores: int | None = option(
        "--cores",
        CORES,
        metavar="N",
        help="Number of cores; each is a worker with one task at a time.",
        default_text="NNodes of SETUP.xml, or the processors of this machine, or those of the"
        " servers",
    )
    tasks: TasksOptions = group(TasksOptions)
    out: Path | None = option(
        "--out",
        PATH,
        metavar="DIR",
        help="Folder for the results; it must be new or empty.",
        default_text="runs/<time>",
    )
    force: bool = option("--force", FLAG, help="Replace existing files.", default=False)

    def setup(self) -> Path | None:
        """The set-up file among the words. InputError if there are two."""
        files = [word for word in self.named if _is_file(word)]
        if len(files) > 1:
            raise InputError(
                f"`{shown(files[0])}` and `{shown(files[1])}` are both set-up files",
                remedy="give one; other words are engines, which `gridbench engines` lists",
            )
        return Path(files[0]) if files else None

    def all_engines(self) -> tuple[str, ...]:
        """The engines of words and options, or the default. InputError if one is named twice."""
        named = (*self.engines, *(word for word in self.named if not _is_file(word)))
        for number, name in enumerate(named):
            if name in named[:number]:
                raise InputError(f"the engine `{name}` is named twice", remedy="name it once")
        return named or default_engines(self.task, compare=self.setup() is None)

    def workload(self) -> Callable[[int], Workload]:
        """The workload on so many workers; 0: on as many as the set-up file says, or as this
        machine has processors. InputError if the file cannot be used, or options contradict it."""
        scale, setup = 1.0 if self.time_scale is None else self.time_scale, self.setup()
        if setup is None:
            from gridbench.run.machine import usable_processors

            return lambda cores: self.tasks.workload(cores or usable_processors(), scale, self.task)
        if given := self.tasks.given():
            raise InputError(
                f"{given[0]} and a set-up file cannot both be given",
                remedy=f"leave out {given[0]}, or {setup}, which says what tasks there are",
            )
        from gridbench.workload.workload import read_workload

        read = read_workload(setup, scale, self.task)
        return lambda cores: replace(
            read, setup=replace(read.setup, nnodes=cores or read.setup.nnodes)
        )

    def most_rounds(self) -> int | None:
        """How often each engine runs; None: until it is known which of them is fastest."""
        return rounds_given(self.rounds, several=len(self.all_engines()) > 1)


def rounds_given(rounds: int | Literal["auto"] | None, *, several: bool) -> int | None:
    """The number of rounds; None: as many as it takes. `several` engines are to be compared."""
    if rounds is None:
        return None if several else 1
    return None if rounds == AUTO else rounds


def _is_file(word: str) -> bool:
    return word.lower().endswith(".xml") or os.sep in word or os.path.isfile(word)


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
@experiment_options(RunParameters)
def run(*, given: dict[str, Any], policy: Policy, printing: Printing) -> None:
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
    from gridbench.experiment import run_experiment
    from gridbench.run.experiment import RunExperiment

    parameters = read_parameters(RunParameters, given)
    experiment = RunExperiment(parameters, policy)
    results = ResultsOptions(out=parameters.out, fresh=parameters.force)
    sys.exit(run_experiment(experiment, results, policy, printing))
