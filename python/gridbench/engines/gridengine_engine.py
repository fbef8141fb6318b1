"""Grid Engine without a grid: a job for each task."""

from __future__ import annotations

from typing import ClassVar

from gridbench.batch.daemons import Rig
from gridbench.batch.gridengine import GridEngine, why_not
from gridbench.engines.base import Cannot
from gridbench.engines.batch_jobs import BatchJobsEngine


class GridEngineJobsEngine(BatchJobsEngine):
    """Grid Engine, a job for each task."""

    name: ClassVar[str] = "gridengine-jobs"

    def __init__(self) -> None:
        super().__init__()
        if why := why_not():
            raise Cannot(why)
        self._its_version = ""

    def _make(self, slots: int) -> Rig:
        rig = GridEngine(slots=slots)
        self._its_version = rig.run("qstat", "-help").splitlines()[0].split()[-1]
        return rig

    def _version(self) -> str:
        return self._its_version

    def _submit(self, rig: Rig, first: int, count: int, command: list[str]) -> list[str]:
        del first
        assert count == 1, "it makes no arrays"
        quiet = ("-terse", "-b", "y", "-V", "-o", "/dev/null", "-j", "y", "-shell", "n")
        return [rig.run("qsub", *quiet, *command).strip()]
