"""The kinds of results that there are."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from gridbench.result_kind import ResultKind

SCENARIO, RUNS = "gridbench.scenario", "gridbench.report"
_PACKAGES = (
    "gridbench.bench.micro",
    SCENARIO,
    "gridbench.sync",
    "gridbench.datagrid",
    "gridbench.datagrid.crossover",
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
