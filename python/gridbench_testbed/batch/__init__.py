"""Batch systems, with daemons of their own that take jobs."""

from __future__ import annotations

import contextlib
import subprocess
from abc import ABC, abstractmethod
from typing import Self

from gridbench_testbed.daemons import Daemons


class BatchSystem(Daemons, ABC):
    """While open, there is a batch system for commands with the variables of `environment`."""

    @staticmethod
    @abstractmethod
    def why_not() -> str:
        """Why there can be none here; empty if there can."""

    @classmethod
    @abstractmethod
    def of(cls, nodes: int, processors: int) -> Self:
        """One that runs jobs on so many nodes, with so many processors each."""

    @property
    @abstractmethod
    def version(self) -> str:
        """Of its programs."""

    @abstractmethod
    def jobs(self) -> list[str]:
        """The jobs that wait or run."""

    @abstractmethod
    def cancel_all(self) -> None:
        """Cancel all jobs, and wait until they are gone."""

    def _leave(self) -> None:
        with contextlib.suppress(RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self.cancel_all()
