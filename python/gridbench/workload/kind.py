"""What the tasks of a run did, by its record: the words for it, and what they had to share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gridbench.workload.body import SLEEP, SPIN


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of tasks."""

    body: str
    """See `gridbench.workload.body`; empty for logs, which do not tell."""
    processors: int | None = None
    """That all tasks share, because they compute on one machine; None: that is not known, or there
    is no need to know, as the time of a user's function is what it took."""

    @property
    def told(self) -> str:
        """What follows the word "tasks"; empty if it is not known."""
        if self.body in ("", SLEEP):
            return "that sleep" if self.body else ""
        if self.body != SPIN:
            return f"that call {self.body.rpartition('/')[2]}"
        if self.processors is None:
            return "that compute"
        return f"that compute on {self.processors} processor{'s' if self.processors != 1 else ''}"

    @property
    def own_time(self) -> str:
        """The name of what a task does by itself, between reading its data and making its output:
        sleep, the user's function, or just computing."""
        if self.body == SLEEP:
            return "sleep"
        return "computing" if self.body in ("", SPIN) else "function"


def is_trace(record: Mapping[str, Any]) -> bool:
    """Whether a program has left this record of a run by `GRIDRPC_TRACE`, which names no body."""
    return record.get("task") == ""


def kind_of(record: Mapping[str, Any]) -> Kind:
    """The kind of the tasks of a run with this record, be it that of a log."""
    body = str(record.get("task", SLEEP if "machine" in record else ""))
    machine = record.get("machine")
    if body != SPIN or record.get("grid") or not isinstance(machine, Mapping):
        return Kind(body)
    # What its control group or affinity allows it is what its workers inherit.
    processors = machine.get("cores_usable")
    return Kind(body, processors if isinstance(processors, int) and processors > 0 else None)
