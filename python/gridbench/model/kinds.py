"""The kinds of results that can be modelled."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from gridbench.errors import InputError
from gridbench.model_kind import ModelKind
from gridbench.results.kinds import all_kinds
from gridbench.results.kinds import kind_of as result_kind_of


def kind_of(folders: Sequence[Path]) -> ModelKind:
    """The kind that all the folders are of. InputError if there is none, or they are of several."""
    modules: dict[str, Path] = {}
    for folder in folders:
        results = result_kind_of([folder])
        if results.model is None:
            raise InputError(
                f"holds results of {results.title}, of which there is no model",
                file=folder,
                remedy="give folders of gridbench run, scenario, data or sync",
            )
        modules.setdefault(results.model, folder)
    if len(modules) > 1:
        one, other = (_module(name).name for name in list(modules)[:2])
        raise InputError(
            f"holds {other}, and {folders[0]} holds {one}",
            file=list(modules.values())[1],
            remedy="fit a model to each of them alone",
        )
    return _module(next(iter(modules)))


def kind_named(name: str) -> ModelKind | None:
    """The kind of what files of models call so."""
    return next((kind for kind in model_kinds() if kind.name == name), None)


def model_kinds() -> Iterator[ModelKind]:
    """All that there are."""
    for name in dict.fromkeys(kind.model for kind in all_kinds()):
        if name is not None:
            yield _module(name)


def _module(name: str) -> ModelKind:
    return cast("ModelKind", importlib.import_module(name))
