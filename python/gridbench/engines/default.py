"""The engine that is meant where none is named."""

from __future__ import annotations

from gridbench.workload.body import keeps_time

DEFAULT_ENGINE = "gridrpc-native"
_FOR_FUNCTIONS = "gridrpc-python"
DEFAULT_ENGINES = f"{DEFAULT_ENGINE}, or {_FOR_FUNCTIONS} for MODULE:FUNCTION"
"""For help texts."""


def default_engine(body: str) -> str:
    """The engine for tasks of that body (`gridbench.workload.body`): a user's function is one of
    Python."""
    return DEFAULT_ENGINE if keeps_time(body) else _FOR_FUNCTIONS
