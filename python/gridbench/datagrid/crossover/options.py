"""The options of `gridbench data crossover`. What it needs is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.going_on import results_options
from gridbench.machine.policy import Policy
from gridbench.printing import Printing
from gridbench.quantities import SECONDS


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
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help="Compute grid, see `gridbench engines`; may be given several times."
    "  [default: gridrpc-python, process-pool]",
)
@click.option(
    "--data-grid",
    "data_grids",
    multiple=True,
    metavar="NAME|FILE",
    help="Data grid, see `gridbench data engines`; may be given several times."
    "  [default: embedded, which needs no cluster]",
)
@click.option(
    "--sizes",
    metavar="LIST",
    help="Sizes of the shared data; 1 MB is 1,024 KB.  [default: 1MB,4MB,16MB,64MB,256MB]",
)
@click.option(
    "--cores",
    metavar="LIST",
    help="Numbers of tasks that need the data, each on its own core: results call them readers."
    "  [default: 1,2,4,8,16]",
)
@click.option(
    "--object-size",
    metavar="SIZE",
    default="1MB",
    show_default=True,
    help="Size of the objects into which the data are cut for a data grid.",
)
@click.option(
    "--members",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    metavar="N",
    help="Members of each data grid, all on this machine.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    metavar="N",
    help="How often each size is measured with each number of tasks.",
)
@click.option(
    "--warm",
    type=SECONDS,
    default=5.0,
    show_default=True,
    metavar="S",
    help="Seconds of warm-up at most, in which clients of a data grid read before it counts.",
)
@click.option(
    "--case-limit",
    "limit",
    type=SECONDS,
    default=120.0,
    show_default=True,
    metavar="S",
    help="Seconds that a run of a compute grid may take.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=1,
    show_default=True,
    metavar="K",
    help="Seed of the random order of the measurements.",
)
@results_options("runs/crossover-<time>")
def crossover(
    *,
    engines: tuple[str, ...],
    data_grids: tuple[str, ...],
    sizes: str | None,
    cores: str | None,
    object_size: str,
    members: int,
    rounds: int,
    warm: float,
    limit: float,
    seed: int,
    out: Path | None,
    fresh: bool,
    retry_failed: bool,
    policy: Policy,
    printing: Printing,
) -> None:
    """Say from which size on data that all tasks need is better in a data grid.

    A program holds some data, and tasks on several cores need all of it. Measured is the time until
    the last of them has it: handed over to a compute grid as shared data, with workers that are
    there already; and put into a data grid and read from there, object by object, or only read, as
    if it were there already.

    DIR then holds crossover.jsonl and report.html: both times over size and cores, the sizes at
    which the data grid is the faster one, and what a model of each side predicts. The models are
    kept for `gridbench advise`, which says from where a job should take its shared data. The same
    command with the same --out goes on where the one before stopped, without what failed, if
    --retry-failed does not say otherwise.

    Exit status 1 says that something failed, 2 that the command cannot be followed, 3 that other
    programs use the machine, so that nothing was measured, or disturbed all that was measured.
    """
    from gridbench.datagrid.crossover.asked import request_of
    from gridbench.datagrid.crossover.command import run_crossover

    sys.exit(
        run_crossover(
            request_of(
                engines=engines,
                data_grids=data_grids,
                sizes=sizes,
                cores=cores,
                object_size=object_size,
                members=members,
                rounds=rounds,
                warm=warm,
                limit=limit,
                seed=seed,
                folder=out,
                fresh=fresh,
                retry_failed=retry_failed,
                policy=policy,
                printing=printing,
            )
        )
    )
