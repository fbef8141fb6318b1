"""The crossover as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gridbench.costs.held_out import HeldOut
from gridbench.datagrid.crossover.answer import Answer, Pair
from gridbench.datagrid.crossover.crossing import Crossing
from gridbench.datagrid.crossover.models import Fitted
from gridbench.datagrid.crossover.present.notes import headline
from gridbench.datagrid.crossover.record import Sharing
from gridbench.provisional import is_provisional


def to_record(answer: Answer, found: Sequence[Sharing]) -> dict[str, Any]:
    """Crossings in bytes and readers, and the models; null stands for never, and for no limit."""
    told = headline(answer, found)
    return {
        "sentences": told,
        "provisional": is_provisional(told[0]),
        "crossings": [_pair(one) for one in answer.pairs],
        "models": [
            {"side": side, "engine": name} | _model(one)
            for side, fitted in (("compute grid", answer.compute), ("data grid", answer.grids))
            for name, one in fitted.items()
        ],
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "compute_grid": pair.compute.engine,
        "data_grid": pair.grid.engine,
        "there_already": pair.grid.there,
        "bytes_by_readers": {str(n): _crossing(one) for n, one in pair.over_size.items()},
        "readers_by_bytes": {str(n): _crossing(one) for n, one in pair.over_readers.items()},
        "predicted_bytes_by_readers": {
            str(n): _crossing(one) for n, one in pair.predicted_sizes.items()
        },
        "predicted_readers_by_bytes": {
            str(n): _crossing(one) for n, one in pair.predicted_readers.items()
        },
    }


def _crossing(one: Crossing) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "at": _finite(one.at),
        "low": _finite(one.low),
        "high": _finite(one.high),
        "several": one.several,
    }


def _model(fitted: Fitted[Any]) -> dict[str, Any]:
    return {
        **{key: _finite(value) for key, value in asdict(fitted.model).items()},
        "held_out": [_held_out(one) for one in fitted.held_out],
    }


def _held_out(one: HeldOut) -> dict[str, Any]:
    return {"what": one.what, "typical": one.typical, "largest": one.largest}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
