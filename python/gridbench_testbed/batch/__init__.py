"""Private batch systems on this machine."""

from __future__ import annotations

import contextlib
import subprocess
from abc import ABC, abstractmethod
from typing import Self

from gridbench_testbed.daemons import Daemons


class BatchSystem(Daemons, ABC):
    """A batch system for commands with the variables of `environment`, while open."""

    @staticmethod
    @abstractmethod
    def why_not() -> str:
        """Why it cannot start here; empty if it can."""

    @classmethod
    @abstractmethod
    def of(cls, nodes: int, processors: int) -> Self:
        """Start it with so many nodes, and processors of each."""

    @property
    def prefix(self) -> list[str]:
        """What to put before its commands, to use it beside others."""
        values = [f"{name}={value}" for name, value in self.variables.items()]
        return ["env", *values, *self.inside]

    @property
    @abstractmethod
    def version(self) -> str:
        """Of its programs."""

    @abstractmethod
    def jobs(self) -> list[str]:
        """Waiting and running jobs."""

    @abstractmethod
    def cancel_all(self) -> None:
        """Cancel all jobs, and wait for their end."""

    def _leave(self) -> None:
        with contextlib.suppress(RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self.cancel_all()
