"""Runs and task logs, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.errors import InputError
from gridbench.result_kind import FigureName, ResultRow

if TYPE_CHECKING:
    from gridbench.pages.document import Document

title = "gridbench run"
model: str | None = "gridbench.model.model_kind"
rules = "gridbench.report.rules"
compares = False


def holds(source: Path) -> bool:
    """Whether there are runs, or what may be a task log."""
    from gridbench.run.recorder import runs_below

    return source.is_file() or bool(runs_below(source))


def rows(source: Path) -> Iterator[ResultRow]:
    """Total times of runs. InputError if they cannot be read."""
    from collections import Counter

    from gridbench.report.run_analysis import counts, disturbed_only, study
    from gridbench.report.source import load_runs
    from gridbench.run.recorder import runs_below

    repeats: Counter[FigureName] = Counter()
    # Runs that were repeated lie in folders of their own.
    for run in load_runs(runs_below(source) or [source]):
        one = study(run)
        if not one.end > 0:
            continue
        start = "cold" if run.cold else "warm"
        kind = f" {run.kind.told}" if run.kind.told else ""
        what = f"{run.ntasks:,} tasks{kind}, {run.nnodes:,} workers, {start} start"
        # A log does not say what made it; then it is compared with any other log.
        name = run.engine if isinstance(run.record.get("engine"), dict) else "log"
        yield ResultRow(
            engine=name,
            what=what,
            metric="total time",
            value=one.end,
            repeat=repeats[name, what],
            valid=counts(one),
            disturbed=disturbed_only(one),
            parameters={
                "tasks": run.ntasks,
                "work": run.kind.told,
                "workers": run.nnodes,
                "start": start,
            },
        )
        repeats[name, what] += 1


def nothing_valid(source: Path) -> InputError:
    """Why no run is valid."""
    return InputError("holds no run that counts", file=source)


def document(sources: Sequence[Path], page: Path | None = None) -> Document:
    """All of them beside each other."""
    del page
    from gridbench.report.document import document_of
    from gridbench.report.run_analysis import studies_of

    return document_of(studies_of(_places(sources)))


def to_record(source: Path) -> dict[str, Any]:
    """The run.json of each run, by the name of its folder; of a single run, by its engine."""
    from gridbench.report.source import section
    from gridbench.run.load import read_record
    from gridbench.run.recorder import run_folders

    records = {folder: read_record(folder) for folder in run_folders(source)}
    return {
        "runs": {
            str(section(record, "engine").get("name")) if folder == source else folder.name: record
            for folder, record in records.items()
        }
    }


def _places(sources: Sequence[Path]) -> list[Path]:
    """The folders and logs of single runs: the folder of a run on several engines stands for all of
    them."""
    from gridbench.run.recorder import run_folders

    places: list[Path] = []
    for source in sources:
        places += (run_folders(source) if source.is_dir() else []) or [source]
    return places
