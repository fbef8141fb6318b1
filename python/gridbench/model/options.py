"""The options of `gridbench model`. What it needs is imported when it is called."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.printing import Printing, printing_options
from gridbench.quantities import FLAG, PATH, TEXT, Each
from gridbench.schema import argument, option, options_of, read_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParameters:
    """Which models are fitted, and to what."""

    folders: tuple[Path, ...] = argument(
        Each(PATH), metavar="FOLDER|LOG...", default=(), multiple=True, required=True
    )
    engines: tuple[str, ...] = option(
        "--engine",
        Each(TEXT),
        metavar="NAME",
        help="Engine, or task of synchronised rounds, to fit a model of; may be given several"
        " times.",
        default=(),
        default_text="all",
        multiple=True,
    )
    test: bool = option(
        "--test/--no-test",
        FLAG,
        help="Hold out measurements, fit to the others, and show the errors.",
        default=True,
    )
    out: Path | None = option("--out", PATH, metavar="FILE.json", help="Keep the models.")


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench model runs/scenario-4 runs/scenario-5",
        "gridbench model runs/* --engine gridrpc-native --out model.json",
        "gridbench model runs/data-scenario --out grid.json",
        "gridbench model runs/sync-null --out rounds.json",
        "gridbench model *.log --out old.json",
    ),
)
@options_of(ModelParameters)
@printing_options
def model(*, given: dict[str, Any], printing: Printing) -> None:
    """Fit a model of each engine to the results in FOLDERs, all of one kind, or to task LOGs.

    Runs of tasks (gridbench run and scenario): the model follows every task through client,
    processors, links and workers, each of which serves only so much at a time. The fit finds the
    costs of each, with intervals, and names the costs that the runs do not determine. To see how
    wrong the model is, three groups of runs are held out in turn: a random 30 %, the runs with the
    most cores, and those with the largest data.

    Cases of data grids (gridbench data): the time of a task by its operations, the size of objects,
    and clients. Synchronised rounds (gridbench sync): what holding, starting and doing the tasks
    takes, by workers. Held out are each case in turn, and the largest ones.

    A task LOG does not name what made it: all that are given are taken for those of one system, on
    machines of their own, with cold starts. `gridbench simulate --profile FILE.json --engine log`
    then asks that system's model about other work.

    `gridbench simulate --profile FILE.json --case` predicts other cases. Exit status 1 says
    that too little was measured of one of several engines.
    """
    from gridbench.model.command import fit_models

    sys.exit(fit_models(read_parameters(ModelParameters, given), printing))
