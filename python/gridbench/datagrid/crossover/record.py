"""Record of a measurement: one line of crossover.jsonl."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from gridbench.formats import compact_size, counted
from gridbench.jsonl_store import PlannedCase, ResultsForm

FILE = "crossover.jsonl"

Side = Literal["compute grid", "data grid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSharing(PlannedCase):
    """Data of one size that is to be brought to so many readers, once."""

    side: Side
    engine: str
    """As it is named on the command line."""
    readers: int
    """Tasks that need the data, each on a core of its own."""
    bytes: int
    repeat: int
    """From 0."""

    def describe(self) -> str:
        """In words."""
        return f"{self.engine}, {compact_size(self.bytes)} for {counted(self.readers, 'reader')}"

    def done(self, **found: Any) -> SharingRecord:
        """Its record."""
        return self._record(status="done", **found)

    def left_out(
        self, status: Literal["failed", "skipped"], why: str, load: dict[str, Any] | None = None
    ) -> SharingRecord:
        """Its record, if it could not be done."""
        return self._record(status=status, why=why, load=load)

    def _record(self, **found: Any) -> SharingRecord:
        return SharingRecord(
            side=self.side,
            engine=self.engine,
            readers=self.readers,
            bytes=self.bytes,
            repeat=self.repeat,
            at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            **found,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingRecord(PlannedSharing):
    """The outcome; seconds and bytes."""

    title: str = ""
    """The product's name, of a data grid."""
    version: str = ""
    at: str
    """ISO 8601."""
    status: Literal["done", "failed", "skipped"]
    why: str = ""
    """Of one that was not done."""
    seconds: float = 0.0
    """Until the last reader has all of it: from the moment it is handed over, or begins to be
    put."""
    reading: float = 0.0
    """The part of it after the data had been put, of a data grid."""
    workers: int = 0
    """Different workers that had a task, of a compute grid."""
    with_each_task: bool = False
    """The engine sends the data with each task, as it has no way to reach its workers once."""
    object_size: int = 0
    """Bytes of the objects that the data is put in, of a data grid."""
    members: int = 0
    """Processes that hold the data, of a data grid; 0: it is in the clients' own."""
    processes: int = 0
    """That the clients are in, of a data grid."""
    load: dict[str, Any] | None = None
    """What other programs did meanwhile: at least `judgement`."""


FORM: ResultsForm[SharingRecord] = ResultsForm(
    kind="crossover of shared data",
    of="crossover of shared data",
    noun="measurement",
    record=SharingRecord,
    file=FILE,
    command="gridbench data crossover",
)
