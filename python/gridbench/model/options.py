"""`gridbench model`: fits models to measurements, and reports their errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError, print_error
from gridbench.formats import counted
from gridbench.printing import Printing, printing_options
from gridbench.quantities import FLAG, PATH, TEXT, Each
from gridbench.schema import argument, option, options_of, read_parameters

if TYPE_CHECKING:
    from gridbench.model.kind import FittedModel, ModelSubjects, SearchWatch
    from gridbench.progress import Steps


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
    sys.exit(fit_models(read_parameters(ModelParameters, given), printing))


def fit_models(parameters: ModelParameters, printing: Printing) -> int:
    """Fit, print and save; the exit status. 1: for an engine too little was measured.

    InputError if it is too little for all, or the folders cannot be used.
    """
    from gridbench.model.kind import kind_of
    from gridbench.model.saved import document, save
    from gridbench.pages.terminal import print_document
    from gridbench.progress import Steps

    kind = kind_of(parameters.folders)
    found = _chosen(kind.read(parameters.folders), parameters.engines)
    for reason, count in found.left_out.items():
        print(f"gridbench: {counted(count, found.noun)} left out: {reason}", file=sys.stderr)
    console = printing.progress()
    models: list[FittedModel] = []
    refusals: list[InputError] = []
    for subject in found.subjects:
        number = counted(subject.count, found.noun)
        console.print(f"{subject.told}: fitting a model to {number}")
        progress = Steps(console, "fit", subject.fits(test=parameters.test))
        try:
            with progress:
                models.append(
                    subject.fit(test=parameters.test, fitting=partial(_watched, progress))
                )
        except InputError as error:
            refusals.append(error)
            if len(found.subjects) > 1:
                print_error(f"{subject.told}: {error}")
    if not models:
        raise refusals[0] if refusals else found.none_serves()
    if parameters.out:
        save(kind, models, parameters.out)
        printing.say(f"model: {parameters.out}")
    for model in models:
        print_document(printing.tables(), model.document())
    printing.document(lambda: document(kind, models))
    return 1 if refusals else 0


def _watched(progress: Steps, what: str) -> SearchWatch:
    """Shows the searches of the fit to `what`."""
    progress.begin(f"to {what}")

    def watch(done: int, planned: int) -> None:
        progress.note(f"search {min(done + 1, planned)} of {planned}")

    return watch


def _chosen(found: ModelSubjects, engines: Sequence[str]) -> ModelSubjects:
    known = sorted({one.name for one in found.subjects})
    for name in engines:
        if name not in known:
            raise InputError(
                f"no {found.noun} of the engine `{name}` can be used",
                remedy=f"the {found.noun}s in these folders are of"
                f" {', '.join(known) or 'no engine'}",
            )
    if not engines:
        return found
    return replace(found, subjects=[one for one in found.subjects if one.name in engines])
