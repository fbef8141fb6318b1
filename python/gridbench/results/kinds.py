"""The kinds of results that there are."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from gridbench.result_kind import ResultKind
from gridbench.rules import Rules

SCENARIO, RUNS = "gridbench.scenario", "gridbench.report"
_PACKAGES = (
    "gridbench.micro",
    SCENARIO,
    "gridbench.sync",
    "gridbench.datagrid",
    "gridbench.datagrid.crossover",
    "gridbench.compare",
)
"""Those that have one, in the order in which they are asked; what is left are runs and logs."""


def kind_of(sources: Sequence[Path]) -> ResultKind:
    """The kind that any of the sources is of."""
    kinds = map(module_of, _PACKAGES)
    return next((kind for kind in kinds if any(map(kind.holds, sources))), module_of(RUNS))


def all_kinds() -> Iterator[ResultKind]:
    """All that there are."""
    yield from map(module_of, (*_PACKAGES, RUNS))


def module_of(package: str) -> ResultKind:
    """What the package has."""
    return cast("ResultKind", importlib.import_module(f"{package}.result_kind"))


def rules_for(source: Path) -> Rules[Any] | None:
    """What a folder or file is judged by, if it is of another kind than runs and logs."""
    kind = next((kind for kind in map(module_of, _PACKAGES) if kind.holds(source)), None)
    return None if kind is None else rules_of(kind)


def rules_of(kind: ResultKind) -> Rules[Any]:
    """What results of this kind are judged by."""
    return cast("Rules[Any]", importlib.import_module(kind.rules).RULES)
