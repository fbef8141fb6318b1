"""Where results go, and what may be replaced there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from gridbench.errors import InputError
from gridbench.results_folder import unusable
from gridbench.results_lock import LOCK
from gridbench.run.recorder import LOG, RECORD, REPORT
from gridbench.run.rows import JOURNAL, TIMELINE

_FILES = (RECORD, LOG, REPORT, JOURNAL, TIMELINE)


def prepare(
    folder: Path,
    engines: list[str],
    *,
    apart: bool = False,
    replace: bool,
    settled: Callable[[], object] = lambda: None,
) -> dict[str, Path]:
    """Make the folder of a run; where each engine's results go: into a folder of its own in it if
    they are to lie `apart`, as those of several engines or rounds do.

    InputError if it holds something already: an older run is removed only if `replace`, and
    files that are not of a run never. `settled` is called when the folder can be used, and before
    anything is removed.
    """
    try:
        held = _held(folder, replace=replace)
        folder.mkdir(parents=True, exist_ok=True)
        # Whether it can be written is known only after writing.
        probe = folder / ".probe"
        probe.touch()
        probe.unlink()
        settled()
        _remove(held, folder)
        places = {engine: folder / engine if apart else folder for engine in engines}
        for place in places.values():
            place.mkdir(exist_ok=True)
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
