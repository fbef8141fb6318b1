"""`gridbench model`: fits models to what was measured, and tells how wrong they are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from gridbench.errors import InputError, print_error
from gridbench.formats import counted
from gridbench.model.kind import FittedModel, ModelSubjects, SearchWatch, kind_of
from gridbench.model.saved import document, save
from gridbench.pages.terminal import print_document
from gridbench.printing import Printing
from gridbench.progress import Steps


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRequest:
    """What the user asked for."""

    folders: Sequence[Path]
    engines: Sequence[str] = ()
    """None: all that the folders have measurements of."""
    test: bool = True
    """Hold measurements out to see how wrong the model is."""
    out: Path | None = None
    printing: Printing = field(default_factory=Printing)


def fit_models(request: ModelRequest) -> int:
    """Fit, print and save; the exit status. 1: for an engine too little was measured.

    InputError if it is too little for all, or the folders cannot be used.
    """
    kind = kind_of(request.folders)
    found = _chosen(kind.read(request.folders), request.engines)
    for reason, count in found.left_out.items():
        print(f"gridbench: {counted(count, found.noun)} left out: {reason}", file=sys.stderr)
    console = request.printing.progress()
    models: list[FittedModel] = []
    refusals: list[InputError] = []
    for subject in found.subjects:
        number = counted(subject.count, found.noun)
        console.print(f"{subject.told}: fitting a model to {number}")
        progress = Steps(console, "fit", subject.fits(test=request.test))
        try:
            with progress:
                models.append(subject.fit(test=request.test, fitting=partial(_watched, progress)))
        except InputError as error:
            refusals.append(error)
            if len(found.subjects) > 1:
                print_error(f"{subject.told}: {error}")
    if not models:
        raise refusals[0] if refusals else found.none_serves()
    if request.out:
        save(kind, models, request.out)
        request.printing.say(f"model: {request.out}")
    for model in models:
        print_document(request.printing.tables(), model.document())
    request.printing.document(lambda: document(kind, models))
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
