"""The total time as a sum of its parts, as the original report estimates it.

    task data x tasks / rate + shared data x cores / rate + start-up + sleep + output x tasks / rate

Where parts overlap, such as transfers with start-up or with computing, the sum is too large; where
data takes a second, slower hop, or each task has a cost, it is too small. `gridbench.model`
follows the tasks instead; this is for a first look, and for comparison with the report.
"""

from __future__ import annotations

from dataclasses import dataclass

from gridbench.analysis.transfer import transfer_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Additive:
    """The parameters of the sum; rates in Mbit/s."""

    name: str
    start_up: float
    """Seconds, however many cores."""
    start_up_per_core: float
    """Seconds."""
    task_rate: float
    shared_rate: float
    output_rate: float

    def total(
        self,
        *,
        tasks: int,
        cores: int,
        sleep: float,
        task_mb: float = 0.0,
        shared_mb: float = 0.0,
        output_mb: float = 0.0,
        queue: float = 0.0,
    ) -> float:
        """Seconds. `sleep` is of all tasks that follow each other on a core, `queue` any wait."""
        return (
            self.start_up
            + self.start_up_per_core * min(cores, tasks)
            + transfer_time(task_mb * tasks, self.task_rate)
            + transfer_time(shared_mb * cores, self.shared_rate)
            + sleep
            + transfer_time(output_mb * tasks, self.output_rate)
            + queue
        )


SYMPHONY = Additive(
    name="Platform Symphony",
    start_up=5.6,
    start_up_per_core=0.0,
    task_rate=830.0,
    shared_rate=880.0,
    output_rate=570.0,
)
NINFG = Additive(
    name="Ninf-G with Grid Engine",
    start_up=4.2,
    start_up_per_core=0.15,
    task_rate=835.0,
    shared_rate=835.0,
    output_rate=835.0,
)
