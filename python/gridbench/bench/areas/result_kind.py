"""Results of the areas, as `gridbench.result_kind.JudgedKind`; they have no report."""

from __future__ import annotations

import json
from pathlib import Path

rules = "gridbench.bench.areas.rules"


def holds(source: Path) -> bool:
    """Whether it is a file with tables of areas."""
    if source.suffix != ".json" or not source.is_file():
        return False
    try:
        record = json.loads(source.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and {"areas", "extent"} <= record.keys()
