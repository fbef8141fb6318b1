"""What the command line of `gridbench run` asks for: a set-up file, engines, tasks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.quantities import LONGEST_TIME, parse_size
from gridbench.workload.numbers import shown
from gridbench.workload.workload import Tasks


def split_words(words: Sequence[str]) -> tuple[Path | None, tuple[str, ...]]:
    """The set-up file and the names of engines. InputError if there are two files."""
    files = [word for word in words if _is_file(word)]
    if len(files) > 1:
        raise InputError(
            f"`{shown(files[0])}` and `{shown(files[1])}` are both set-up files",
            remedy="give one; other words are engines, which `gridbench engines` lists",
        )
    engines = tuple(word for word in words if word not in files)
    return (Path(files[0]) if files else None), engines


def _is_file(word: str) -> bool:
    return word.lower().endswith(".xml") or os.sep in word or os.path.isfile(word)


def tasks_given(
    setup: Path | None,
    *,
    tasks: int | None,
    seconds: float | None,
    bytes_in: str,
    shared: str,
    bytes_out: str,
) -> Tasks:
    """The tasks of the options. InputError for what makes no sense, or is said by a file."""
    sizes = {"--input-per-task": bytes_in, "--shared": shared, "--output-per-task": bytes_out}
    known = {option: parse_size(option, text) for option, text in sizes.items()}
    if seconds is not None and not 0 <= seconds <= LONGEST_TIME:
        raise InputError(
            f"--task-time must be from 0 to {as_given(LONGEST_TIME)}, not {as_given(seconds)}",
            remedy="for example --task-time 10ms",
        )
    given = {"--tasks": tasks is not None, "--task-time": seconds is not None}
    given |= {option: size > 0 for option, size in known.items()}
    refused = [option for option, there in given.items() if there]
    if setup is not None and refused:
        raise InputError(
            f"{refused[0]} and a set-up file cannot both be given",
            remedy=f"leave out {refused[0]}, or {setup}, which says what tasks there are",
        )
    found = Tasks()
    return Tasks(
        count=tasks,
        seconds=found.seconds if seconds is None else seconds,
        bytes_in=known["--input-per-task"],
        bytes_shared=known["--shared"],
        bytes_out=known["--output-per-task"],
    )
