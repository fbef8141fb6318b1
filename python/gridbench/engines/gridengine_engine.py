"""Grid Engine without a grid: a job for each task."""

from __future__ import annotations

from typing import ClassVar

from gridbench.engines.batch_jobs import BatchJobsEngine
from gridbench_testbed.batch import BatchSystem, gridengine


class GridEngineJobsEngine(BatchJobsEngine):
    """An emulated Grid Engine, a job for each task."""

    name: ClassVar[str] = "emulated-gridengine-jobs"
    _why_not = staticmethod(gridengine.why_not)

    def _make(self, slots: int) -> tuple[BatchSystem, str]:
        rig = gridengine.GridEngine(slots=slots)
        return rig, rig.run("qstat", "-help").splitlines()[0].split()[-1]

    def _submit(self, rig: BatchSystem, count: int, command: list[str]) -> list[str]:
        assert count == 1, "it makes no arrays"
        quiet = ("-terse", "-b", "y", "-V", "-o", "/dev/null", "-j", "y", "-shell", "n")
        return [rig.run("qsub", *quiet, *command).strip()]
