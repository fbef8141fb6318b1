"""The parameters and the command of `gridbench scenario`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.engines.names import default_engine
from gridbench.errors import InputError
from gridbench.links.options import DEFAULT_LINK, LINK_RATE, parse_rate
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.quantities import (
    DEVIATION,
    QUICK_SCALE,
    Count,
)
from gridbench.run.options import TaskRunOptions, rounds_given
from gridbench.scenario.grids import GridChoice, TaskTimes, parse_scenarios
from gridbench.schema import group, option, read_parameters, record_of
from gridbench.shared_options import (
    MOST_NODES,
    TIMEOUT,
    ResultsOptions,
    dry_run_option,
    experiment_options,
    seed_option,
)

if TYPE_CHECKING:
    from gridbench.scenario.plan import WorkerPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioParameters(TaskRunOptions):
    """Which cases of scenarios run, on which engines and where."""

    choice: GridChoice = group(GridChoice)
    stddev: tuple[float, float] = option(
        "--stddev",
        DEVIATION,
        metavar="SHARE|TIME",
        help="Standard deviation of the times of tasks: a share of their mean, such as 50%, or a"
        " time, such as 5s.",
        default=(0.0, 0.0),
        default_text="0",
    )
    nodes: int | None = option(
        "--nodes",
        Count(1, MOST_NODES),
        metavar="K",
        help="Nodes that gridbench emulates on this machine; needs root.",
        default_text="none",
    )
    link: float | None = option(
        "--link",
        LINK_RATE,
        metavar="RATE",
        help="Rate of the links, such as 100mbit, in each direction.",
        default_text=DEFAULT_LINK,
    )
    case_limit: float | None = option(
        "--case-limit", TIMEOUT, metavar="S", help="Seconds that a case may take."
    )
    seed: int = seed_option(record="seed")
    results: ResultsOptions = group(ResultsOptions, out="runs/scenario-<number>-<time>")

    @property
    def all_engines(self) -> tuple[str, ...]:
        """The engines, or the one that suits the task."""
        return self.engines or (default_engine(self.task),)

    @property
    def most_rounds(self) -> int | None:
        """Rounds of each case; None: until the outcome is known."""
        return rounds_given(self.rounds, several=len(self.all_engines) > 1)

    def times(self) -> TaskTimes:
        """How task times come about."""
        scale = self.time_scale
        if scale is None:
            scale = QUICK_SCALE if self.choice.quick else 1.0
        seconds, share = self.stddev
        return TaskTimes(
            scale=scale, stddev=seconds, stddev_share=share, seed=self.seed, body=self.task
        )

    def place(self) -> WorkerPlace:
        """Where workers are. InputError if options contradict each other."""
        from gridbench.scenario.plan import WorkerPlace

        if self.where.elsewhere:
            if self.nodes is not None or self.link is not None:
                raise InputError(
                    "--nodes and --link make links on this machine, where servers have no workers",
                    remedy="leave them out, or leave out --grid and --server",
                )
            return WorkerPlace(servers=True)
        if self.nodes is None:
            if self.link is not None:
                raise InputError(
                    "--link gives the rate of links, and there are no links",
                    remedy="add --nodes K, the number of nodes behind such links",
                )
            return WorkerPlace()
        rate = parse_rate("--link", DEFAULT_LINK) if self.link is None else self.link
        return WorkerPlace(nodes=self.nodes, rate=rate)

    def record(self, place: WorkerPlace) -> dict[str, Any]:
        """The options that all cases of a folder share: a folder is resumed with the same."""
        times = self.times()
        return {
            **record_of(self),
            "time_scale": times.scale,
            "stddev": times.stddev,
            "stddev_share": times.stddev_share,
            "nodes": place.nodes,
            "link_rate": place.rate,
        }


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench scenario startup --time-scale 0.01",
        "gridbench scenario all --quick             # in minutes",
        "gridbench scenario shared --dry-run        # what it would take",
        "gridbench scenario startup --cores 1,2 --task spin --time-scale 0.1",
        "gridbench scenario input --cores 1,10,100 --sizes 0,1MB --engine process-pool",
        "gridbench scenario shared --nodes 4 --link 1gbit --time-scale 0.1",
        "gridbench scenario 1-3,split --grid grid.toml --server cluster",
        "gridbench scenario 3 6 --engine emulated-slurm --engine emulated-slurm-jobs",
    ),
)
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@experiment_options(ScenarioParameters)
@dry_run_option
def scenario(
    *,
    scenarios: tuple[str, ...],
    dry_run: bool,
    given: dict[str, Any],
    policy: Policy,
    printing: Printing,
) -> None:
    """Run the cases of one or more scenarios, and report the answers.

    \b
    1 shared      cores against shared data
    2 task-time   task time against data
    3 startup     cost of starting
    4 input       delay by input data
    5 output      delay by output data
    6 split       work split into n tasks

    SCENARIO is a number, a name, a range such as 1-3, a list such as 1,split, or `all`.

    With --nodes the workers are on that many emulated nodes, behind links of the rate --link.

    With --grid or --server the workers run on the servers of a grid, such as the nodes of a
    cluster; each case uses as many as it has cores.

    Cases that do not fit into memory, or into the time allowed, are skipped, and the results say
    why. Each result is saved at once, so the same command with the same --out resumes. It repeats
    failed cases only with --retry-failed. DIR then holds cases.jsonl, report.html and the runs;
    with several scenarios, a folder for each of them, and a report on all.

    No case begins while other programs use the machine: gridbench names them and waits. Cases that
    they disturb do not count (invalid). Exit status 1: a case failed; 3: other programs disturbed
    all cases.
    """
    from gridbench.experiment import run_experiment
    from gridbench.scenario.experiment import ScenarioExperiment

    numbers = parse_scenarios(scenarios)
    experiment = ScenarioExperiment(numbers, read_parameters(ScenarioParameters, given))
    if dry_run:
        experiment.list_cases(printing)
    else:
        sys.exit(run_experiment(experiment, experiment.parameters.results, policy, printing))
