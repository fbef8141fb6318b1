"""Batch systems, with daemons of their own that take jobs."""

from __future__ import annotations

import contextlib
import subprocess
from abc import ABC, abstractmethod

from gridbench_testbed.daemons import Daemons


class BatchSystem(Daemons, ABC):
    """While open, there is a batch system for commands with the variables of `environment`."""

    @abstractmethod
    def jobs(self) -> list[str]:
        """The jobs that wait or run."""

    @abstractmethod
    def cancel_all(self) -> None:
        """Cancel all jobs, and wait until they are gone."""

    def _leave(self) -> None:
        with contextlib.suppress(RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self.cancel_all()
