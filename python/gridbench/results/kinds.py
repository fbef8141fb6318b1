"""The kinds of results that there are."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from gridbench.results.kind import ResultKind

_MODULES = ("gridbench.bench.micro", "gridbench.scenario", "gridbench.report")
"""Packages that have one, in the order in which they are asked; the last takes what is left, which
are runs and task logs."""


def kind_of(sources: Sequence[Path]) -> ResultKind:
    """The kind that any of the sources is of."""
    *kinds, rest = (
        cast("ResultKind", importlib.import_module(f"{package}.result_kind"))
        for package in _MODULES
    )
    return next((kind for kind in kinds if any(map(kind.holds, sources))), rest)
