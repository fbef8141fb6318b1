"""HTCondor without a grid: a job for each task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from gridbench.engines.batch_jobs import BatchJobsEngine
from gridbench_testbed.batch import BatchSystem, htcondor


class HTCondorJobsEngine(BatchJobsEngine):
    """An emulated HTCondor, a job for each task."""

    name: ClassVar[str] = "emulated-htcondor-jobs"
    _why_not = staticmethod(htcondor.why_not)

    def _make(self, slots: int) -> tuple[BatchSystem, str]:
        rig = htcondor.HTCondor(slots=slots)
        return rig, rig.run("condor_version").split()[1]

    def _submit(self, rig: BatchSystem, count: int, command: list[str]) -> list[str]:
        assert count == 1, "it makes no clusters of several jobs"
        program, *arguments = command
        said = rig.run(
            "condor_submit", "-terse", "universe=vanilla", f"executable={program}",
            f"arguments={_quoted(arguments)}", "getenv=true", "should_transfer_files=no",
            "-queue", "1",
        )  # fmt: skip
        return [said.split()[0]]


def _quoted(arguments: Sequence[str]) -> str:
    """As HTCondor reads them: quotes are doubled, and each argument stands in single ones."""
    words = " ".join("'" + argument.replace("'", "''") + "'" for argument in arguments)
    return '"' + words.replace('"', '""') + '"'
