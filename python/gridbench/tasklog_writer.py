"""Writing a task log. Apart from reading, as a run loads no table library while it measures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

COLUMN_LINE = "#tid sleep time  submit time  calc-in time  calc-out time retrieve time  ch name"

UNKNOWN_HOST = "-"
"""Stands for a host name that is not known, since a column cannot be empty."""


@dataclass(frozen=True, slots=True)
class TaskLogHeader:
    """First line of a task log. Sizes are in KB of 1024 bytes, per task (shared: per run)."""

    ntasks: int
    nnodes: int
    input_file: str
    task_kb: float
    shared_kb: float
    write_kb: float

    def line(self) -> str:
        """The header as it is in the file, without the line's end."""
        name = " ".join(self.input_file.split())
        return (
            f"# NTasks={self.ntasks} NNodes={self.nnodes} InputFile={name} "
            f"TaskDataSize={self.task_kb:.6f} SharedDataSize={self.shared_kb:.6f} "
            f"WriteDataSize={self.write_kb:.6f}"
        )


class TaskLogWriter:
    """Writes a task log row by row; each row is in the operating system's hands at once.

    Raises OSError if the file cannot be written.
    """

    def __init__(self, path: Path, header: TaskLogHeader) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n", buffering=1)
        self._file.write(f"{header.line()}\n{COLUMN_LINE}\n")

    def row(  # noqa: PLR0917  the arguments are in the order of the columns
        self,
        tid: int,
        slept: float,
        submit: float,
        calc_in: float,
        calc_out: float,
        retrieve: float,
        host: str,
    ) -> None:
        """Append one task; times in seconds on the client's time base.

        The format has no word for a stamp that is not known, so a task with one (it failed
        before it computed) becomes a comment, which readers pass over.
        """
        name = "_".join(host.split()) or UNKNOWN_HOST
        if not all(map(math.isfinite, (slept, submit, calc_in, calc_out, retrieve))):
            self._file.write(f"# task {tid} has no complete stamps, host {name}\n")
            return
        self._file.write(
            f"{tid} {slept:.6f} {submit:.6f}     {calc_in:.6f}     "
            f"{calc_out:.6f} {retrieve:.6f}      {name}\n"
        )

    def close(self) -> None:
        """Close the file; safe to call twice."""
        self._file.close()

    def __enter__(self) -> TaskLogWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
