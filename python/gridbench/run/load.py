"""Reading a run's folder, also of a run that was interrupted or killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gridbench.errors import InputError
from gridbench.run.journal import JOURNAL, read_journal
from gridbench.run.recorder import RECORD, TIMELINE
from gridbench.timeline import ADDED, SCHEMA

_REMEDY = "give the folder of a run, as `gridbench run --out` made it"


def load_run(folder: Path) -> tuple[dict[str, Any], pa.Table]:
    """The record (run.json) and the timeline of the run in `folder`.

    A run that was killed has no timeline yet; its rows then come from the journal, and its
    status, still `running`, is given as `interrupted`. InputError if there is no readable run.
    """
    record = read_record(folder)
    if (folder / TIMELINE).exists():
        table = _timeline(folder / TIMELINE)
    elif (folder / JOURNAL).exists():
        table = _journal(folder / JOURNAL)
        if record.get("status") == "running":
            record["status"] = "interrupted"
            record["valid"] = False
            record["invalid_because"] = ["the run was cut off"]
    else:
        raise InputError(
            f"holds neither {TIMELINE} nor {JOURNAL}, so nothing was measured",
            file=folder,
            remedy=_REMEDY,
        )
    return record, table


def read_record(folder: Path) -> dict[str, Any]:
    """The record of the run in `folder`. InputError if there is none that can be read."""
    path = folder / RECORD
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(
            f"cannot read the run's record: {error.strerror}", file=path, remedy=_REMEDY
        ) from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"is not JSON: {error.msg}", file=path, line=error.lineno, remedy=_REMEDY
        ) from None
    except (ValueError, RecursionError):
        raise InputError("is not JSON text", file=path, remedy=_REMEDY) from None
    if not isinstance(record, dict) or not isinstance(record.get("setup"), dict):
        raise InputError("is not the record of a run", file=path, line=1, remedy=_REMEDY)
    return record


#: A timeline of ten million tasks takes less. A small file may unfold to any size.
_MOST_BYTES = 4 << 30
#: Characters of a worker's or host's name at most.
_LONGEST = 1024
#: Read at a time, so that what is too much is noticed before it fills the memory.
_ROWS = 8192
_TEXTS = [field.name for field in SCHEMA if pa.types.is_string(field.type)]


def _timeline(path: Path) -> pa.Table:
    try:
        with pq.ParquetFile(path, read_dictionary=_TEXTS) as file:
            names = file.schema_arrow.names
            missing = [name for name in SCHEMA.names if name not in (*names, *ADDED)]
            if missing:
                raise _no_timeline(path, f"it has no column {missing[0]}")
            batches, size = [], 0
            for batch in file.iter_batches(_ROWS, columns=[n for n in SCHEMA.names if n in names]):
                batches.append(_unfolded(batch, path))
                size += batches[-1].nbytes
                if size > _MOST_BYTES:
                    raise _no_timeline(path, f"it unfolds to more than {_MOST_BYTES >> 30} GiB")
        return pa.Table.from_batches(batches, SCHEMA).combine_chunks()
    except OSError as error:
        raise InputError(f"cannot read the timeline: {error}", file=path, remedy=_REMEDY) from None
    except (pa.ArrowException, KeyError) as error:
        # Arrow puts details of its own code into further lines.
        raise _no_timeline(path, str(error).splitlines()[0]) from None


def _unfolded(batch: pa.RecordBatch, path: Path) -> pa.RecordBatch:
    """Rows as a timeline has them; texts come as numbers of those in a dictionary."""
    for name in _TEXTS:
        column = batch[name]
        if pa.types.is_dictionary(column.type):
            lengths = pc.binary_length(column.dictionary)
            if (pc.max(lengths).as_py() or 0) > _LONGEST:
                raise _no_timeline(path, f"its column {name} has a text of over {_LONGEST} bytes")
    there = batch.schema.names
    columns = [
        batch[field.name].cast(field.type)
        if field.name in there
        else pa.repeat(pa.scalar(float("nan"), field.type), batch.num_rows)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _no_timeline(path: Path, why: str) -> InputError:
    return InputError(f"is not a timeline: {why}", file=path, remedy=_REMEDY)


def _journal(path: Path) -> pa.Table:
    try:
        return pa.concat_tables(read_journal(path))
    except OSError as error:
        raise InputError(
            f"cannot read the journal: {error.strerror}", file=path, remedy=_REMEDY
        ) from None
    except (pa.ArrowException, OverflowError) as error:
        first = str(error).splitlines()[0]
        raise InputError(f"is not a journal: {first}", file=path, remedy=_REMEDY) from None
