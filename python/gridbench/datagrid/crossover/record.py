"""What is kept of a measurement: one line of crossover.jsonl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from gridbench.record_file import ResultsForm

FILE = "crossover.jsonl"

Side = Literal["compute grid", "data grid"]
Identity = tuple[Side, str, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Data of one size brought to so many readers, once; seconds and bytes."""

    side: Side
    engine: str
    """As it is named on the command line."""
    title: str = ""
    """The product's name, of a data grid."""
    version: str = ""
    readers: int
    """Tasks that need the data, each on a core of its own."""
    bytes: int
    repeat: int
    """From 0."""
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
    """The engine sends the data anew with each task, as it has no way to reach its workers once."""
    object_size: int = 0
    """Bytes of the objects that the data is put in, of a data grid."""
    members: int = 0
    """Processes that hold the data, of a data grid; 0: it is in the clients' own."""
    processes: int = 0
    """That the clients are in, of a data grid."""
    load: dict[str, Any] | None = None
    """What other programs did meanwhile: at least `judgement`."""

    @property
    def identity(self) -> Identity:
        """Of all records of a file, one has it."""
        return self.side, self.engine, self.readers, self.bytes, self.repeat


FORM: ResultsForm[Sharing] = ResultsForm(
    kind="crossover of shared data",
    of="crossover of shared data",
    noun="measurement",
    record=Sharing,
    file=FILE,
    command="gridbench data crossover",
)
