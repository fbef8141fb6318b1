"""The parameters and the command of `gridbench micro`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import click

from gridbench.command_line import CommandWithExamples
from gridbench.machine.options import Policy
from gridbench.micro.workloads import FULL, QUICK, Sizes
from gridbench.printing import Printing
from gridbench.quantities import AUTO, FLAG, Texts
from gridbench.schema import argument, group, option, read_parameters
from gridbench.shared_options import (
    GridOptions,
    ResultsOptions,
    auto_rounds_option,
    engines_option,
    experiment_options,
)
from gridbench.workload.options import task_option

FOLDER = Path("runs", "micro")


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroParameters:
    """Which workloads are measured on which engines, how thoroughly, and where."""

    workloads: tuple[str, ...] = argument(
        Texts("workload"), metavar="[WORKLOAD]...", default=(), multiple=True
    )
    engines: tuple[str, ...] = engines_option("all but those on batch systems")
    where: GridOptions = group(GridOptions)
    quick: bool = option("--quick", FLAG, help="Fewer and shorter measurements.", default=False)
    task: str = task_option(record="task")
    rounds: int | Literal["auto"] = auto_rounds_option(AUTO)
    results: ResultsOptions = group(ResultsOptions, out=str(FOLDER))

    def sizes(self) -> Sizes:
        """How much is measured."""
        return replace(QUICK if self.quick else FULL, body=self.task)


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench micro --quick               # a few minutes",
        "gridbench micro                       # less than an hour with all engines",
        "gridbench micro null_call start --engine gridrpc-python --engine process-pool",
        "gridbench micro work --task prices:book    # your function, on all engines",
        "gridbench micro null_call argument --grid grid.toml --server lab",
        "gridbench micro --list",
    ),
)
@experiment_options(MicroParameters)
@click.option("--list", "list_only", is_flag=True, help="List the choices, and exit.")
def micro(*, list_only: bool, given: dict[str, Any], policy: Policy, printing: Printing) -> None:
    """Measure calls, arrays, start-up and memory on all installed engines.

    Engines and repetitions are interleaved in random order, each in a fresh process; gridrpc and
    the process pool are measured twice, and no difference is claimed that is smaller than the
    difference between two equals. The limits of the machine are measured beside the engines.

    With --grid or --server gridrpc is measured with two workers on the servers of a grid as well,
    beside the engines on this machine. What needs all processes on one machine is left out there:
    start, tasks_100, shared_100MB and null_rate_4_clients.

    Each is measured five times, with --quick twice, and less often if it takes long. Every result
    is saved at once, so the same command resumes, without what failed before unless --retry-failed
    is given. DIR then holds points.jsonl, results.json and report.html. Exit status 1 says that
    something could not be measured, 3 that other programs used the machine, so that nothing can be
    claimed. Disturbed measurements are repeated, as far as time allows. A claim requires the same
    engine to be ahead in every undisturbed round, at least two of them.
    """
    from gridbench.micro.experiment import list_names, run_micro

    if list_only:
        list_names(printing)
    else:
        parameters = read_parameters(MicroParameters, given)
        sys.exit(run_micro(parameters, parameters.sizes(), policy, printing))
