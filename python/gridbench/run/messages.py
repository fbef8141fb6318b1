"""What the program and the process that hosts an engine tell each other.

They are Python objects, which hold plain values only: the two need not have the same packages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gridbench.run.client import Status
from gridbench.run.plan import Plan
from gridbench.run.rows import Row


@dataclass(frozen=True, slots=True)
class Pass:
    """To the host: begin a pass."""

    plan: Plan
    check: bool


@dataclass(frozen=True, slots=True)
class Close:
    """To the host: end the workers, and yourself."""


@dataclass(frozen=True, slots=True)
class News:
    """From the host: rows that are new, and how far it is."""

    rows: list[Row]
    status: Status
    description: dict[str, Any] | None
    """At the end of a pass: that of the engine, which may know more now."""


@dataclass(frozen=True, slots=True)
class Failed:
    """From the host: the engine failed or, if `refused`, does not take what it was given."""

    what: str
    refused: bool = False
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """From the host: the workers have been ended, or it was tried."""

    problem: str
