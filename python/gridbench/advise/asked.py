"""The work that the command line asks about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gridbench.advise.uneven import Uneven, read_log
from gridbench.advise.work import DivisibleWork, parse_time
from gridbench.errors import InputError
from gridbench.quantities import parse_size


def work_asked(
    *,
    time: str | None,
    log: Path | None,
    cores: int,
    sizes: Mapping[str, str],
    uneven: Uneven | None,
    most_tasks: int,
    warm: bool,
    body: str,
) -> DivisibleWork:
    """A work of one time (`--work`), or of the tasks of a log (`--work-from`). `sizes` are those of
    the options, by their names. InputError for what does not go together."""
    if (time is None) == (log is None):
        raise InputError(
            "there is no work" if time is None else "--work and --work-from cannot both be given",
            remedy="give either the time of the job, such as --work 100s, or --work-from a log",
        )
    if log is None:
        seconds = parse_time("--work", time or "")
        known = {name: parse_size(name, text) for name, text in sizes.items()}
        return DivisibleWork(
            seconds=seconds,
            cores=cores,
            bytes_in=known["--input"],
            bytes_in_each=known["--input-per-task"],
            bytes_shared=known["--shared"],
            bytes_out=known["--output"],
            bytes_out_each=known["--output-per-task"],
            warm=warm,
            most_tasks=min(most_tasks, uneven.pieces or most_tasks) if uneven else most_tasks,
            body=body,
            uneven=uneven,
        )
    given = [name for name, text in sizes.items() if text != "0"]
    given += ["--stddev"] if uneven else []
    if given:
        raise InputError(
            f"{given[0]} and --work-from cannot both be given",
            remedy="leave it out: the log tells times and sizes",
        )
    found = read_log(log)
    return DivisibleWork(
        seconds=found.seconds,
        cores=cores,
        bytes_in=found.bytes_in,
        bytes_shared=found.bytes_shared,
        bytes_out=found.bytes_out,
        warm=warm,
        most_tasks=min(most_tasks, found.recorded.pieces),
        body=body,
        uneven=found.recorded,
    )
