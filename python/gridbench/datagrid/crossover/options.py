"""The parameters and the command of `gridbench data crossover`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.datagrid.workload import LARGEST_OBJECT, LIMITS, SMALLEST_OBJECT
from gridbench.errors import InputError
from gridbench.formats import size
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.quantities import CORES, MB, SIZE, Count, Duration, ListOf, Size, Texts
from gridbench.schema import group, option, read_parameters
from gridbench.shared_options import (
    ResultsOptions,
    case_limit_option,
    experiment_options,
    rounds_option,
    seed_option,
)

_MOST_OBJECTS = int(LIMITS["SharedDataSize"][1])


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossoverParameters:
    """Which data are brought to which readers, and how."""

    engines: tuple[str, ...] = option(
        "--engine",
        Texts("engine"),
        metavar="NAME",
        help="Compute grid, see `gridbench engines`; may be given several times.",
        default=("gridrpc-python", "process-pool"),
        multiple=True,
    )
    data_grids: tuple[str, ...] = option(
        "--data-grid",
        Texts("data grid"),
        metavar="NAME|FILE",
        help="Data grid, see `gridbench data engines`; may be given several times.",
        default=("embedded",),
        default_text="embedded, which needs no cluster",
        multiple=True,
    )
    sizes: tuple[int, ...] = option(
        "--sizes",
        ListOf(SIZE, ascending=True),
        metavar="LIST",
        help="Sizes of the shared data; 1 MB is 1,024 KB.",
        default=tuple(n * MB for n in (1, 4, 16, 64, 256)),
        default_text="1MB,4MB,16MB,64MB,256MB",
    )
    cores: tuple[int, ...] = option(
        "--cores",
        ListOf(CORES, ascending=True),
        metavar="LIST",
        help="Numbers of tasks that need the data, each on its own core: results call them"
        " readers.",
        default=(1, 2, 4, 8, 16),
    )
    object_size: int = option(
        "--object-size",
        Size(SMALLEST_OBJECT, LARGEST_OBJECT),
        metavar="SIZE",
        help="Size of the objects into which the data are cut for a data grid.",
        default=MB,
        default_text="1MB",
        record="object_size",
    )
    members: int = option(
        "--members",
        Count(1, 1000),
        metavar="N",
        help="Members of each data grid, all on this machine.",
        default=3,
        record="members",
    )
    rounds: int = rounds_option("How often each size is measured with each number of tasks.", 3)
    warm: float = option(
        "--warm",
        Duration(1e-3, 3600.0),
        metavar="S",
        help="Warm-up at most, in which clients of a data grid read before it counts.",
        default=5.0,
        record="warm_up",
    )
    limit: float = case_limit_option(120.0)
    seed: int = seed_option()
    results: ResultsOptions = group(ResultsOptions, out="runs/crossover-<time>")

    def check(self) -> None:
        """InputError for sizes that cannot be cut into objects."""
        each = self.object_size
        for one in self.sizes:
            if not one or one % each:
                raise InputError(
                    f"--sizes: {size(one)} cannot be divided into objects of {size(each)}",
                    remedy=f"give a multiple of {size(each)}, or another --object-size",
                )
            if one // each > _MOST_OBJECTS:
                raise InputError(
                    f"--sizes: {size(one)} would be {one // each:,} objects of {size(each)}, and"
                    f" {_MOST_OBJECTS:,} are the most",
                    remedy="give a larger --object-size",
                )


@click.command(
    cls=CommandWithExamples,
    short_help="Shared data through a compute grid, or from a data grid?",
    examples=(
        "gridbench data crossover",
        "gridbench data crossover --data-grid hazelcast --data-grid redis",
        "gridbench data crossover --engine process-pool --engine ray --data-grid ignite",
        "gridbench data crossover --sizes 10MB,100MB,1GB --cores 1,10,100",
        "gridbench data crossover --sizes 64KB,1MB --object-size 64KB --rounds 1",
    ),
)
@experiment_options(CrossoverParameters)
def crossover(*, given: dict[str, Any], policy: Policy, printing: Printing) -> None:
    """Say from which size on data that all tasks need is better in a data grid.

    A program holds some data, and tasks on several cores need all of it. Measured is the time until
    the last of them has it: handed over to a compute grid as shared data, with workers that are
    there already; and put into a data grid and read from there, object by object, or only read, as
    if it were there already.

    DIR then holds crossover.jsonl and report.html: both times over size and cores, the sizes at
    which the data grid is the faster one, and what a model of each side predicts. The models are
    kept for `gridbench advise`, which says from where a job should take its shared data. The same
    command with the same --out resumes; --retry-failed repeats what failed.

    Exit status 1 says that something failed, 2 that the command cannot be followed, 3 that other
    programs use the machine, so that nothing was measured, or disturbed all that was measured.
    """
    from gridbench.datagrid.crossover.experiment import CrossoverExperiment
    from gridbench.experiment import run_experiment

    parameters = read_parameters(CrossoverParameters, given)
    experiment = CrossoverExperiment(parameters)
    sys.exit(run_experiment(experiment, parameters.results, policy, printing))
