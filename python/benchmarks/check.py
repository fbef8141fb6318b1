"""Check files that `python -m benchmarks --out` has written, by the rules in docs/rules.md.

python -m benchmarks.check FILE.json...
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gridbench.bench.points import DataPoint, Points
from gridbench.command_line import run_command
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.records import RecordError, from_record
from gridbench.results.check import check_results
from gridbench.rules import Rules, Seen, broken_by, enough, recorded

_EXACT = 1e-9
"""Share by which what is worked out again may differ."""
_NO_POINTS = "the file is an older one, and has no single runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """Those of an engine, or a limit, in a row."""

    median: float | None
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableRow:
    """A row of a table, as far as it is judged."""

    what: str
    gridrpc: _Series
    peer: _Series | None = None
    limit: _Series | None = None
    ratio_to_peer: float | None = None
    ratio_to_limit: float | None = None
    ratios: dict[str, tuple[float, ...]]
    """Those of single rounds, by `peer` and `limit`."""
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table."""

    rows: tuple[_TableRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Results:
    """The file."""

    machine: dict[str, Any]
    versions: dict[str, str]
    extent: str
    complete: bool
    areas: dict[str, _Table]
    points: tuple[DataPoint, ...] | None = None
    """None: it is an older file."""


@dataclass(frozen=True, slots=True)
class AreaResults:
    """The results, as the rules look at them."""

    record: _Results
    points: Points | None
    """Of a run that was repeated, the one that counts; None: the file has no single runs."""

    @property
    def rows(self) -> Iterator[tuple[str, _TableRow]]:
        """All of them, with the areas' names."""
        return ((name, row) for name, area in self.record.areas.items() for row in area.rows)


def read(file: Path) -> AreaResults:
    """The results in a file. InputError if it is damaged."""
    try:
        record = from_record(_Results, json.loads(file.read_bytes()))
    except (OSError, ValueError, RecursionError, RecordError) as error:
        raise InputError(
            f"is no file of `python -m benchmarks`, or it is damaged: {error}",
            file=file,
            remedy="give the file that --out named, or measure again",
        ) from None
    return AreaResults(record, None if record.points is None else Points(record.points))


def _complete(found: AreaResults) -> Seen:
    areas = counted(len(found.record.areas), "table")
    if not found.record.complete:
        return "broken", f"it was ended early, with {areas}"
    return "kept", f"all requested cases ran: {areas}"


def _no_failure_is_hidden(found: AreaResults) -> Seen:
    if found.points is None:
        return "not known", _NO_POINTS
    problems = [problem for _, row in found.rows for problem in row.problems]
    failed = found.points.failed
    hidden = [
        f"{point.workload}, round {point.round + 1}"
        for point in failed
        if not any(point.workload in problem or point.why in problem for problem in problems)
    ]
    text = f"{counted(len(failed), 'run')} failed, and the tables say so" if failed else ""
    return broken_by(hidden, "no table tells that these failed", text or "no run failed")


def _figures(found: AreaResults) -> Seen:
    wrong = [f"{row.what} ({area})" for area, row in found.rows if not _follows(row)]
    text = "medians and ratios, worked out again from the values of the rounds"
    return broken_by(wrong, "medians or ratios are not those of the values", text)


def _follows(row: _TableRow) -> bool:
    parts = [part for part in (row.gridrpc, row.peer, row.limit) if part is not None]
    pairs = [
        (part.median, statistics.median(part.values) if part.values else None) for part in parts
    ]
    pairs += [
        (ratio, statistics.median(each))
        for ratio, name in ((row.ratio_to_peer, "peer"), (row.ratio_to_limit, "limit"))
        if (each := row.ratios.get(name))
    ]
    return all(_same(then, now) for then, now in pairs)


def _same(then: float | None, now: float | None) -> bool:
    if then is None or now is None:
        return then is now
    return math.isclose(then, now, rel_tol=_EXACT)


def _repeated(found: AreaResults) -> Seen:
    if found.points is None:
        return "not known", _NO_POINTS
    runs: dict[str, int] = {}
    for point in found.points.run:
        if point.status == "ok":
            runs[point.workload] = runs.get(point.workload, 0) + (not point.disturbed)
    return enough(runs.items(), "undisturbed run")


def _recorded(found: AreaResults) -> Seen:
    return recorded(found.record.machine, found.record.versions)


_EACH: dict[str, Callable[[AreaResults], Seen]] = {
    "complete": _complete,
    "no failure is hidden": _no_failure_is_hidden,
    "figures follow from the values": _figures,
    "repeated": _repeated,
    "who measured what, where": _recorded,
}

RULES = Rules(key="bench", read=read, each=_EACH)


def rules_for(source: Path) -> Rules[Any] | None:
    """The rules, if it is a file with tables of areas."""
    if source.suffix != ".json" or not source.is_file():
        return None
    try:
        record = json.loads(source.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    is_ours = isinstance(record, dict) and {"areas", "extent"} <= record.keys()
    return RULES if is_ours else None


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument(
    "files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE.json..."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.pass_context
def check_files(context: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
    """Judge files of `python -m benchmarks --out` by the rules of docs/rules.md.

    Exit status 1 says that a rule is broken, so that nothing should be claimed from the file.
    """
    context.exit(check_results(files, as_json=as_json, rules_for=rules_for))


if __name__ == "__main__":
    run_command(check_files, "python -m benchmarks.check")
