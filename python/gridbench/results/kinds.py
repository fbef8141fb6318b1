"""The kinds of results that there are."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from gridbench.result_kind import JudgedKind, ResultKind
from gridbench.rules import Rules

SCENARIO, RUNS = "gridbench.scenario", "gridbench.report"
_PACKAGES = (
    "gridbench.bench.micro",
    SCENARIO,
    "gridbench.sync",
    "gridbench.datagrid",
    "gridbench.datagrid.crossover",
)
"""Those that have one, in the order in which they are asked; what is left are runs and logs."""
_JUDGED = ("gridbench.bench.areas",)
"""Those whose results are judged only. They are asked first, as any JSON may be of a micro
benchmark."""


def kind_of(sources: Sequence[Path]) -> ResultKind:
    """The kind that any of the sources is of."""
    kinds = map(module_of, _PACKAGES)
    return next((kind for kind in kinds if any(map(kind.holds, sources))), module_of(RUNS))


def all_kinds() -> Iterator[ResultKind]:
    """All that there are."""
    yield from map(module_of, (*_PACKAGES, RUNS))


def module_of(package: str) -> ResultKind:
    """What the package has."""
    return cast("ResultKind", _imported(package))


def rules_for(source: Path) -> Rules[Any] | None:
    """What a folder or file is judged by, if it is of another kind than runs and logs."""
    kinds = (cast("JudgedKind", _imported(package)) for package in (*_JUDGED, *_PACKAGES))
    kind = next((kind for kind in kinds if kind.holds(source)), None)
    return None if kind is None else rules_of(kind)


def rules_of(kind: JudgedKind) -> Rules[Any]:
    """What results of this kind are judged by."""
    return cast("Rules[Any]", importlib.import_module(kind.rules).RULES)


def _imported(package: str) -> object:
    return importlib.import_module(f"{package}.result_kind")
