"""Colours that mean the same on every page: of engines, of the phases of a task, of other lines.

Each has a contrast of 3:1 or more to light and dark paper, so that it is one colour in both.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

_ENGINES = {
    "gridrpc-python": "#2f7fd6",
    "gridrpc-native": "#1591a8",
    "emulated-slurm": "#6a63d8",
    "emulated-slurm-native": "#4d7fa8",
    "emulated-gridengine": "#5a94d8",
    "emulated-gridengine-native": "#3f8f8f",
    "emulated-htcondor": "#8b68c8",
    "emulated-htcondor-native": "#6f7fb8",
    "server": "#4a7fb8",
    "process-pool": "#c96a05",
    "dask": "#0f8f6b",
    "emulated-slurm-dask": "#4f8f4a",
    "ray": "#c04aa0",
    "mpi": "#7d8590",
    "null": "#8f8f8f",
    "loky": "#b0603a",
    "parsl": "#6b8f1a",
    "ipyparallel": "#a37b1f",
    "hyperqueue": "#9a6cd0",
    "emulated-slurm-hyperqueue": "#94618f",
    "emulated-slurm-array": "#c86b7f",
    "emulated-slurm-jobs": "#8a6f5a",
    "emulated-htcondor-jobs": "#7a7a3a",
    "emulated-gridengine-jobs": "#b3701a",
    "hazelcast": "#3a84c4",
    "coherence": "#d0532f",
    "geode": "#2f8f4f",
    "ignite": "#b8429a",
    "redis": "#a8801f",
    "embedded": "#808890",
}
SERIES = (
    "#2f7fd6",
    "#c96a05",
    "#0f8f6b",
    "#c04aa0",
    "#6a63d8",
    "#6b8f1a",
    "#1591a8",
    "#a37b1f",
    "#7d8590",
    "#8a6f5a",
)
"""Of lines that are no engines, in order."""

PHASES = {
    "start-up": "#5f9a76",
    "submission": "#c96a05",
    "queue": "#7d8590",
    "dispatch": "#8b68c8",
    "input": "#2f9e5a",
    "extra in task": "#c86b7f",
    "output": "#3977d4",
    "idle at the end": "#6f7b8c",
    "never used": "#8f8f8f",
    "sleep": "#b3812a",
}
"""Of what a task or worker does: green is input, ochre work, blue output."""


def engine_colours(names: Sequence[str]) -> dict[str, str]:
    """The colour of each engine.

    A variant, such as `ray, 2 hosts`, has the colour of its engine. One that gridbench does not
    bring along has one by its name, which is the same on every page.
    """
    return {name: _colour(name) for name in names}


def _colour(name: str) -> str:
    known = [engine for engine in _ENGINES if _is_of(name, engine)]
    if known:
        return _ENGINES[max(known, key=len)]
    return SERIES[zlib.crc32(name.encode()) % len(SERIES)]


def _is_of(name: str, engine: str) -> bool:
    """Whether the name is the engine's, or begins with it as a whole word."""
    return name == engine or (name.startswith(engine) and not name[len(engine)].isalnum())
