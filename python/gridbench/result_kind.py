"""Kinds of results: how each is read, shown, compared and judged."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from gridbench.errors import InputError
from gridbench.rules import Rules

if TYPE_CHECKING:
    from gridbench.pages.document import Document

FigureName = tuple[str, str]
"""The engine, and what was measured of it: what figures are known by."""


Better = Literal["less", "more"]
SCENARIO, RUNS = "gridbench.scenario", "gridbench.report"
_PACKAGES = (
    "gridbench.micro",
    SCENARIO,
    "gridbench.sync",
    "gridbench.datagrid",
    "gridbench.datagrid.crossover",
    "gridbench.compare",
    "gridbench.linpack",
    "gridbench.linpack.clients",
    "gridbench.placement",
    "gridbench.placement.real",
)
"""Those that have one, in the order in which they are asked; what is left are runs and logs."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure, as often as it was measured."""

    values: tuple[float, ...]
    unit: str = "s"
    better: Better = "less"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """A measured value with everything it depends on: a row of the table of results."""

    engine: str
    what: str
    """Case and metric in words. Together with the engine, the name of the figure."""
    metric: str
    value: float
    unit: str = "s"
    better: Better = "less"
    repeat: int = 0
    """From 0."""
    valid: bool = True
    """Whether a claim may rest on it."""
    disturbed: bool = False
    """Whether other programs alone make it invalid."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """Of the case, by name."""


class ResultKind(Protocol):
    """How `gridbench report` shows and compares the results of a benchmark, and how `gridbench
    check` judges them.

    It is a module of the benchmark's package, result_kind.py, and imports little: each kind is
    asked whether a source is of its own.
    """

    rules: str
    """The module whose RULES, a `gridbench.rules.Rules`, judge them."""
    title: str
    """The command that makes them, in messages."""
    model: str | None
    """The module that is the `gridbench.model.kind.ModelKind` of them; None: there is no model."""
    compares: bool
    """Whether the page of two shows their comparison alone, as one page cannot hold both."""

    def holds(self, source: Path) -> bool:
        """Whether a source looks like results of this kind; whether it is, loading tells."""

    def rows(self, source: Path) -> Iterator[ResultRow]:
        """All values that were measured. InputError if they cannot be read."""

    def nothing_valid(self, source: Path) -> InputError:
        """Why no value is valid, and what to do. InputError as above."""

    def document(self, sources: Sequence[Path], page: Path | None = None) -> Document:
        """What these results say. `page`: the file it is written to as HTML, for links. InputError
        for what cannot stand in one report."""

    def to_record(self, source: Path) -> dict[str, Any]:
        """All that was measured, and what follows from it, as JSON for programs: `--json` of the
        command, which adds the answer. InputError as for `rows`."""


def only(sources: Sequence[Path], title: str) -> Path:
    """The source, for a kind of which one makes a report. InputError if there are several;
    `title`: the command that makes the results."""
    if len(sources) > 1:
        raise InputError(
            f"the results of `{title}` cannot be in one report with others",
            remedy="make a report of them alone, or compare two of them",
        )
    return sources[0]


def kind_of(sources: Sequence[Path]) -> ResultKind:
    """The kind that any of the sources is of."""
    kinds = map(module_of, _PACKAGES)
    return next((kind for kind in kinds if any(map(kind.holds, sources))), module_of(RUNS))


def write_report(sources: Sequence[Path], out: Path) -> None:
    """Write the page of results of one kind. InputError if they cannot be read, or cannot stand in
    one report, or if `out` cannot be written."""
    from gridbench.pages.document import write_page

    write_page(kind_of(sources).document(sources, out), out)


def report_markdown(sources: Sequence[Path]) -> str:
    """The same as Markdown: sentences and tables. InputError as above."""
    from gridbench.pages.markdown import markdown

    return markdown(kind_of(sources).document(sources))


def all_kinds() -> Iterator[ResultKind]:
    """All that there are."""
    yield from map(module_of, (*_PACKAGES, RUNS))


def module_of(package: str) -> ResultKind:
    """What the package has."""
    return cast("ResultKind", importlib.import_module(f"{package}.result_kind"))


def rules_for(source: Path) -> Rules[Any] | None:
    """What a folder or file is judged by, if it is of another kind than runs and logs."""
    kind = next((kind for kind in map(module_of, _PACKAGES) if kind.holds(source)), None)
    return None if kind is None else rules_of(kind)


def rules_of(kind: ResultKind) -> Rules[Any]:
    """What results of this kind are judged by."""
    return cast("Rules[Any]", importlib.import_module(kind.rules).RULES)
