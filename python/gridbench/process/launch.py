"""Which Python a process is started with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Launch:
    """A Python, and the variables for its processes."""

    command: list[str]
    """To be followed by arguments."""
    variables: dict[str, str]
