"""`gridbench model`: fits models to what was measured, and tells how wrong they are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gridbench.errors import InputError, print_error
from gridbench.formats import counted
from gridbench.model.kind import FittedModel, ModelSubjects, SearchWatch, kind_of
from gridbench.model.options import ModelParameters
from gridbench.model.saved import document, save
from gridbench.pages.terminal import print_document
from gridbench.printing import Printing
from gridbench.progress import Steps


def fit_models(parameters: ModelParameters, printing: Printing) -> int:
    """Fit, print and save; the exit status. 1: for an engine too little was measured.

    InputError if it is too little for all, or the folders cannot be used.
    """
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
