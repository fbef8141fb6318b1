"""The parameters and the command of `gridbench simulate`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.engines.names import DEFAULT_ENGINE
from gridbench.links.options import DEFAULT_LINK
from gridbench.printing import Printing, printing_options
from gridbench.quantities import FLAG, PATH, SECONDS, SIZE, TEXT, Count, Each
from gridbench.schema import declarations, option, options_of, read_parameters
from gridbench.shared_options import seed_option

_TASKS_PER_CORE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationParameters:
    """What is simulated, on which system, and what is shown of it."""

    profile: str = option(
        "--profile",
        TEXT,
        metavar="NAME|FILE",
        help="System that you don't have: symphony, ninfg, condor, gridrpc, a profile (.toml), or"
        " for `simulate` a model (.json).",
        default="gridrpc",
    )
    cores: int = option(
        "--cores",
        Count(1, 1_000_000),
        metavar="N",
        help="Number of cores; each is a worker with one task at a time.",
        default=100,
    )
    tasks: int | None = option(
        "--tasks",
        Count(1, 10_000_000),
        metavar="N",
        help="Number of tasks.",
        default_text=f"{_TASKS_PER_CORE} for each core",
    )
    tasks_per_core: int | None = option(
        "--tasks-per-core", Count(1, 10_000_000), metavar="K", help="Instead of --tasks."
    )
    sleep: float = option(
        "--sleep", SECONDS, metavar="S", help="Mean time of a task.", default=30.0
    )
    stddev: str = option(
        "--stddev",
        TEXT,
        metavar="SHARE|TIME",
        help="Standard deviation of the times of tasks: a share of their mean, such as 50%, or a"
        " time, such as 5s.",
        default="0",
    )
    input: float = option(
        "--input-per-task",
        SIZE,
        metavar="SIZE",
        help="Input of each task, such as 10KB. 1 MB is 1,024 KB.",
        default=0,
    )
    shared: float = option(
        "--shared",
        SIZE,
        metavar="SIZE",
        help="Data that is the same for all tasks.",
        default=0,
    )
    output: float = option(
        "--output-per-task", SIZE, metavar="SIZE", help="What each task returns.", default=0
    )
    link: str | None = option(
        "--link",
        TEXT,
        metavar="RATE",
        help="Rate of the links, such as 100mbit, in each direction.",
        default_text=DEFAULT_LINK,
    )
    node_link: str | None = option(
        "--node-link",
        TEXT,
        metavar="RATE",
        help="Rate of each worker's own link.",
        default_text="no limit",
    )
    start_up: float | None = option(
        "--start-up",
        SECONDS,
        metavar="S",
        help="Seconds until all workers have started; 0: they run already.",
        default_text="the profile's",
    )
    seed: int = seed_option()
    sweep: str | None = option(
        "--sweep",
        TEXT,
        metavar="WHAT=LIST",
        help="Vary one value: cores, tasks, tasks-per-core, sleep, stddev, input, shared, output,"
        " link, node-link.",
    )
    against: str | None = option(
        "--against",
        TEXT,
        metavar="DIR",
        help="Simulate the runs in a folder of `gridbench run` or `gridbench scenario`, and"
        " compare; or `published`.",
    )
    cases: tuple[str, ...] = option(
        "--case",
        Each(TEXT),
        metavar="WHAT=LIST",
        help="Predict cases by a fitted model, with a range: cores, tasks, sleep, input, shared,"
        " output of tasks; clients, size, operations of a data grid; workers of synchronised"
        " rounds. May be given several times, for all combinations.",
        default=(),
        multiple=True,
    )
    far: bool = option(
        "--far",
        FLAG,
        help="Predict such cases also more than ten times beyond what was measured.",
        default=False,
    )
    engine: str | None = option(
        "--engine",
        TEXT,
        metavar="NAME",
        help="Engine whose model, or with --against whose runs, to use.",
        default_text=f"{DEFAULT_ENGINE}; with --case all of the file",
    )
    out: Path | None = option(
        "--out",
        PATH,
        metavar="DIR",
        help="Write timeline, log and report there, or the page of a sweep.",
    )
    force: bool = option("--force", FLAG, help="Replace existing files.", default=False)
    show: bool = option(
        "--show", FLAG, help="Print the profile as a file, and exit.", default=False
    )

    @property
    def task_count(self) -> int:
        """The number of tasks."""
        per_core = self.tasks_per_core or _TASKS_PER_CORE
        return self.cores * per_core if self.tasks is None else self.tasks


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
@options_of(SimulationParameters)
@printing_options
def simulate(*, given: dict[str, Any], printing: Printing) -> None:
    """Simulate a workload on a system that is not here, old or new, with up to a million cores.

    Tasks go through the same model of a run as in `gridbench published`: client, links, perhaps a
    manager, workers. The output has the total time, where it goes, and the bottleneck.
    Write sizes as 10KB or 1MB (1,024 KB), rates as 100mbit or 1gbit, and times as 30, 200ms or
    5min, as for all commands.

    DIR then holds run.json, timeline.parquet, tasks.log and report.html, as after `gridbench run`.
    """
    parameters = read_parameters(SimulationParameters, given)
    if parameters.cases or parameters.far:
        _refuse_others(given, far_alone=not parameters.cases)
    from gridbench.simulate.command import run_simulation

    sys.exit(run_simulation(parameters, printing))


_WITH_CASES = {"profile", "engine", "cases", "far"}
"""What counts for predicted cases; all else is of simulated tasks."""


def _refuse_others(given: Mapping[str, Any], *, far_alone: bool) -> None:
    if far_alone:
        raise click.UsageError("--far is for cases that --case gives.")
    for name, one, _ in declarations(SimulationParameters):
        if name not in _WITH_CASES and one.given(given[name]):
            raise click.UsageError(f"{one.flags[0]} is not for the cases of --case.")
