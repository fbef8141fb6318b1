"""What did not go well, worker by worker: failures and stragglers, with what they printed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from gridbench.formats import NOTHING, amount, times
from gridbench.pages.table import Cell, Table
from gridbench.sync.cases import SyncCase
from gridbench.sync.figures import FrequentStraggler, frequent_stragglers
from gridbench.sync.record import STATUSES, TaskRun

_MOST = 200


@dataclass(frozen=True, slots=True)
class Trouble:
    """The tables of a page."""

    failures: Table
    failed: int
    """How many there are; the table may have fewer."""
    stragglers: Table
    late: int
    often: Table
    """Workers and hosts that are stragglers in most of their rounds."""


def trouble_of(cases: Sequence[SyncCase], files: Path | None) -> Trouble:
    """All of it; `files` is the folder of results, as seen from the page; None: without links."""
    failures: list[list[str | Cell]] = []
    stragglers: list[list[str | Cell]] = []
    for case in cases:
        for one, found in zip(case.rounds, case.all_figures, strict=True):
            late = set(found.stragglers)
            for task in one.tasks:
                first = [f"worker {task.worker}", task.host, one.named()]
                if task.status != "ok":
                    failures.append([*first, _how(task), Cell(task.why), _output(task, files)])
                elif task.worker in late:
                    took = (task.ended or 0.0) - (task.began or 0.0)
                    ratio = times(took / found.median) if found.median > 0 else NOTHING
                    stragglers.append([*first, amount(took, "s"), ratio, _output(task, files)])
    rounds = [one for case in cases for one in case.rounds]
    return Trouble(
        Table(
            ["worker", "host", "round", "how it ended", "why", "output"],
            failures[:_MOST],
            style="left",
        ),
        len(failures),
        Table(
            ["worker", "host", "round", "time", "times the median", "output"],
            stragglers[:_MOST],
            style="left",
        ),
        len(stragglers),
        Table(
            ["", "host", "rounds in which it was a straggler"],
            _often(frequent_stragglers(rounds)),
            style="left",
        ),
    )


def _often(found: Iterable[FrequentStraggler]) -> list[list[str]]:
    return [
        [
            "the host as a whole" if one.worker is None else f"worker {one.worker}",
            one.host,
            f"{one.times} of {one.rounds}",
        ]
        for one in found
    ]


def _how(task: TaskRun) -> str:
    word = STATUSES[task.status]
    if task.exit is None:
        return word
    if task.exit < 0:
        return f"{word}, signal {-task.exit}"
    return f"{word}, exit status {task.exit}"


def _output(task: TaskRun, files: Path | None) -> Cell:
    """The file with what it printed. The name comes from a record, and may lead nowhere else."""
    if not task.output:
        return Cell(NOTHING)
    path = PurePosixPath(task.output)
    inside = not path.is_absolute() and ".." not in path.parts
    if files is None or not inside:
        return Cell(task.output)
    # The colon of a name must not be that of a scheme: `quote` writes it as %3A.
    return Cell(path.name, link=f"./{quote(os.fspath(files / path))}")
