"""Which Python a process is started with."""

from __future__ import annotations

import sys
from dataclasses import dataclass

PYTHON = (sys.executable, "-P")
"""This Python, to be followed by arguments: it imports nothing from the current folder."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A Python, and the variables for its processes."""

    command: list[str]
    """To be followed by arguments."""
    variables: dict[str, str]
