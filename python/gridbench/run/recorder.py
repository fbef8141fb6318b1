"""The folder of a run: writes results as they arrive, so that nothing measured is lost.

It holds `run.json` from the start, and `tasks.log` and the journal, which grow with every result.
Parquet files are readable only when finished: until then rows are JSON lines in the journal, and
all whole ones remain, whatever kills the run. After the run `complete_run` turns the journal
into `timeline.parquet` and adds the summary. Files are replaced atomically.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.atomic_write import replace_file
from gridbench.errors import InputError
from gridbench.results_folder import LOCK, unusable
from gridbench.run.journal import JOURNAL, TimelineRow, read_journal
from gridbench.tasklog_writer import TaskLogHeader, TaskLogWriter
from gridbench.workload.workload import Setup, kind_of

if TYPE_CHECKING:
    from gridbench.analysis.summary import Summary


TIMELINE = "timeline.parquet"
RECORD = "run.json"
LOG = "tasks.log"
REPORT = "report.html"
_FILES = (RECORD, LOG, REPORT, JOURNAL, TIMELINE)


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
                TaskLogHeader(
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

    def add(self, rows: list[TimelineRow]) -> None:
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
        """Note how the run ended. Only the summary is then missing; see `complete_run`."""
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


def complete_run(folder: Path, record: dict[str, Any], setup: Setup) -> Summary:
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


def replaceable(folder: Path, *, replace: bool) -> list[Path]:
    """The folders of the run that `folder` holds, which are to be replaced; it is made if it is not
    there. InputError if it holds anything else, or a run and not `replace`; or if it cannot be
    written."""
    try:
        held = _held(folder, replace=replace)
        folder.mkdir(parents=True, exist_ok=True)
        # Whether it can be written is known only after writing.
        probe = folder / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise unusable(folder, error) from None
    return held


def make_places(
    folder: Path, engines: list[str], old: list[Path], *, apart: bool = False
) -> dict[str, Path]:
    """Remove the `old` runs, and make a place for each engine: a folder of its own if they are to
    lie `apart`, as those of several engines or rounds do."""
    try:
        _remove(old, folder)
        places = {engine: folder / engine if apart else folder for engine in engines}
        for place in places.values():
            place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(folder, error) from None
    return places


def place_of(first: Path, number: int | None) -> Path:
    """Where the results of a round go, beside those of the first one, which exists already: the
    third round of `process-pool` is in `process-pool-3`. InputError if it cannot be made."""
    if number is None or number == 1:
        return first
    place = first.with_name(f"{first.name}-{number}")
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise unusable(place, error) from None
    return place


def run_folders(folder: Path) -> list[Path]:
    """The run in `folder`, or, if it holds runs of several engines, those in order of start."""
    if (folder / RECORD).exists():
        return [folder]
    inner = [record.parent for record in folder.glob(f"*/{RECORD}") if record.is_file()]
    return sorted(inner, key=lambda place: (_started(place), place.name))


def runs_below(folder: Path) -> list[Path]:
    """All runs in `folder` and below it, such as those that were repeated, in order of name."""
    return sorted(record.parent for record in folder.rglob(RECORD) if record.is_file())


def _started(folder: Path) -> str:
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return str(record["started"])
    except (OSError, ValueError, TypeError, KeyError):  # whoever loads it will say what is wrong
        return ""


def _held(folder: Path, *, replace: bool) -> list[Path]:
    """The folders of the run that `folder` holds. InputError if it holds anything else, or one that
    is not to be replaced."""
    if not folder.is_dir() or all(entry.name == LOCK for entry in folder.iterdir()):
        return []
    held = [folder, *run_folders(folder)]
    if not any((place / RECORD).exists() for place in held):
        raise InputError(
            "the output folder is not empty, and holds no run",
            file=folder,
            remedy="choose another --out, or empty it yourself",
        )
    if not replace:
        raise InputError(
            "the output folder holds a run already",
            file=folder,
            remedy="choose another --out, or add --force to replace that run",
        )
    return held


def _remove(held: list[Path], folder: Path) -> None:
    for place in reversed(held):
        for name in _FILES:
            (place / name).unlink(missing_ok=True)
        if place != folder and not any(place.iterdir()):
            place.rmdir()
