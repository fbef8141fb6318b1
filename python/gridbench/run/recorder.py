"""Writing down a run while it goes on, so that nothing measured is lost.

A run's folder holds `run.json` from the start, `tasks.log` and the journal growing with
every result. When the measuring is over, `complete` turns the journal into
`timeline.parquet` and adds the summary. Files that are replaced are replaced at once.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.atomic_write import replace_file
from gridbench.errors import InputError
from gridbench.run.rows import JOURNAL, TIMELINE, Row, read_journal
from gridbench.tasklog_writer import Header, TaskLogWriter
from gridbench.workload.workload import Setup, kind_of

if TYPE_CHECKING:
    from gridbench.analysis.summary import Summary

RECORD = "run.json"
LOG = "tasks.log"
REPORT = "report.html"


class Recorder:
    """Keeps one run on one engine. Raises InputError if the folder cannot be written to."""

    def __init__(self, folder: Path, setup: Setup, record: dict[str, Any]) -> None:
        self.record = record
        """What run.json will say; the caller adds to it until `finish`."""
        self.last_retrieve = 0.0
        """Seconds from t = 0 until the last result so far was there."""
        self._folder = folder
        try:
            self._write_record()
            self._log = TaskLogWriter(
                folder / LOG,
                Header(
                    ntasks=setup.ntasks,
                    nnodes=setup.nnodes,
                    input_file=setup.input_file,
                    task_kb=setup.task_kb,
                    shared_kb=setup.shared_kb,
                    write_kb=setup.write_kb,
                ),
            )
            self._journal = (folder / JOURNAL).open("x", encoding="utf-8")
        except OSError as error:
            raise _cannot_write(folder, error) from error

    def add(self, rows: list[Row]) -> None:
        """Append results, and hand them to the operating system before returning."""
        try:
            for row in rows:
                self._journal.write(row.to_line())
            self._journal.flush()
            for row in rows:
                # The log has no column for failures, and numbers only for tasks that ran.
                if row.status == "ok":
                    self.last_retrieve = max(self.last_retrieve, row.retrieve)
                    self._log.row(
                        row.tid,
                        row.slept,
                        row.submit,
                        row.calc_in,
                        row.calc_out,
                        row.retrieve,
                        row.host,
                    )
        except OSError as error:
            raise _cannot_write(self._folder, error) from error

    def finish(self, status: str) -> None:
        """Note how the run ended. Only the summary is then missing; see `complete`."""
        self.record["status"] = status
        try:
            # Closing flushes what a full disk refused before, and fails again.
            for file in (self._journal, self._log):
                file.close()
            self._write_record()
        except OSError as error:
            raise _cannot_write(self._folder, error) from error

    def _write_record(self) -> None:
        write_record(self._folder, self.record)


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write or replace run.json. OSError if that fails; an older one is then untouched."""
    text = json.dumps(record, indent=2, allow_nan=False) + "\n"
    replace_file(folder / RECORD, text)


def complete(folder: Path, record: dict[str, Any], setup: Setup) -> Summary:
    """Turn the journal of a run that was measured into the timeline, and add the summary."""
    import pyarrow.parquet as pq

    from gridbench.analysis.summary import summarise
    from gridbench.timeline import SCHEMA

    partial = folder / f".{TIMELINE}.{os.getpid()}.partial"
    try:
        try:
            with pq.ParquetWriter(partial, SCHEMA) as writer:
                for table in read_journal(folder / JOURNAL):
                    writer.write_table(table)
            partial.replace(folder / TIMELINE)
        finally:
            partial.unlink(missing_ok=True)
        table = pq.read_table(folder / TIMELINE)
        summary = summarise(table, setup.ntasks, setup.nnodes, kind_of(record).processors)
        record["summary"] = summary.to_dict()
        write_record(folder, record)
        (folder / JOURNAL).unlink()
    except OSError as error:
        raise _cannot_write(folder, error) from error
    return summary


def _cannot_write(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot write the results: {error.strerror or error}",
        file=folder,
        remedy="what was written until then is kept, and `gridbench report` reads it; choose a"
        " folder that can be written and has space",
    )
