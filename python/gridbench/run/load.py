"""Reading a run's folder, also of a run that was interrupted or killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gridbench.errors import InputError
from gridbench.run.recorder import RECORD
from gridbench.run.rows import JOURNAL, TIMELINE, read_journal
from gridbench.timeline import SCHEMA

_REMEDY = "give the folder of a run, as `gridbench run --out` made it"


def load_run(folder: Path) -> tuple[dict[str, Any], pa.Table]:
    """The record (run.json) and the timeline of the run in `folder`.

    A run that was killed has no timeline yet; its rows then come from the journal, and its
    status, still `running`, is given as `interrupted`. InputError if there is no readable run.
    """
    record = _record(folder / RECORD)
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


def _record(path: Path) -> dict[str, Any]:
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


def _timeline(path: Path) -> pa.Table:
    try:
        table = pq.read_table(path)
        return table.select(SCHEMA.names).cast(SCHEMA)
    except OSError as error:
        raise InputError(f"cannot read the timeline: {error}", file=path, remedy=_REMEDY) from None
    except (pa.ArrowException, KeyError) as error:
        # Arrow puts details of its own code into further lines.
        first = str(error).splitlines()[0]
        raise InputError(f"is not a timeline: {first}", file=path, remedy=_REMEDY) from None


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
