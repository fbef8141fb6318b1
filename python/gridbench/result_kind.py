"""Kinds of results: how each is read, shown, compared and judged."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, cast

from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.jsonl_store import A, Header, ResultsForm
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
    "gridbench.sync:SYNC",
    "gridbench.datagrid:DATA_GRIDS",
    "gridbench.datagrid.crossover:CROSSOVER",
    "gridbench.compare:COMPARE",
    "gridbench.linpack:SINGLE",
    "gridbench.linpack:CLIENTS",
    "gridbench.placement:SIMULATED",
    "gridbench.placement:REAL",
    "gridbench.ensemble:ENSEMBLE",
)
"""Those that have one, in the order in which they are asked; what is left are runs and logs.
`:NAME`: one of several that a package has."""


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

    It is a module of the benchmark's package, result_kind.py, or an object in it, a `RecordsKind`.
    The module imports little: each kind is asked whether a source is of its own.
    """

    rules: str
    """The module whose RULES, a `gridbench.rules.Rules`, judge them; `:NAME`: another name."""
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
        for what cannot be in one report."""

    def to_record(self, source: Path) -> dict[str, Any]:
        """All that was measured, and what follows from it, as JSON for programs: `--json` of the
        command, which adds the answer. InputError as for `rows`."""


class Figure(NamedTuple):
    """A value that was measured of a case."""

    metric: str
    value: float
    unit: str = "s"
    better: Better = "less"


def rows_of_case(
    figures: Iterable[Figure],
    *,
    engine: str,
    case: str = "",
    repeat: int,
    valid: bool,
    disturbed: bool,
    parameters: Mapping[str, object],
) -> Iterator[ResultRow]:
    """The rows of a case: those figures that are finite. `case`: what it is called; empty: each row
    has the name of its metric alone."""
    for metric, value, unit, better in figures:
        if math.isfinite(value):
            yield ResultRow(
                engine=engine,
                what=f"{case}: {metric}" if case else metric,
                metric=metric,
                value=value,
                unit=unit,
                better=better,
                repeat=repeat,
                valid=valid,
                disturbed=disturbed,
                parameters=parameters,
            )


@dataclass(kw_only=True, eq=False)
class RecordsKind(Generic[A]):
    """A `ResultKind` whose results are records of one form."""

    form: ResultsForm[A]
    title: str
    rules: str
    rows_of: Callable[[list[A]], Iterable[ResultRow]]
    """The values of all records."""
    document_module: str
    """Its `document_of` makes the document of header and records."""
    record_name: str = "cases"
    """The records among the values for programs,"""
    record_of: Callable[[A], Mapping[str, Any]] = asdict
    """each of them,"""
    answer_of: Callable[[Header, list[A]], Mapping[str, Any]] = lambda *_: {}
    """and what else is among them."""
    reason_of: Callable[[A], str] | None = None
    """Why a record is not valid, in short; None: its status says it."""
    remedy: str = "run `{command}` again with another --out, on a quiet machine"
    """What to do if no record is valid."""
    model: str | None = None
    compares: bool = True

    def holds(self, source: Path) -> bool:
        """As `ResultKind`; so are all others."""
        return self.form.holds(source)

    def rows(self, source: Path) -> Iterator[ResultRow]:
        """Those of all records."""
        yield from self.rows_of(self.form.read(source)[1])

    def nothing_valid(self, source: Path) -> InputError:
        """How many records there are, and why they do not count."""
        reasons = map(self.reason_of or _reason, self.form.read(source)[1])
        return nothing_counts(
            source, self.form.noun, reasons, self.remedy.format(command=self.form.command)
        )

    def document(self, sources: Sequence[Path], page: Path | None = None) -> Document:
        """That of one folder."""
        del page
        source = only(sources, self.title)
        module = importlib.import_module(self.document_module)
        return cast("Document", module.document_of(*self.form.read(source)))

    def to_record(self, source: Path) -> dict[str, Any]:
        """All records, and the answer."""
        header, found = self.form.read(source)
        records = [self.record_of(one) for one in found]
        return {self.record_name: records, **self.answer_of(header, found)}


def _reason(record: Any) -> str:
    """What keeps a record with a status from being valid."""
    return "disturbed by other programs" if record.status == "done" else record.status


def nothing_counts(source: Path, noun: str, reasons: Iterable[str], remedy: str) -> InputError:
    """That no result is valid; `reasons`: one for each."""
    kinds = Counter(reasons)
    parts = [f"{count:,} {kind}" for kind, count in kinds.most_common()]
    text = f"of {counted(kinds.total(), noun)}, {', '.join(parts)}" if parts else "it holds none"
    return InputError(
        f"has no {noun} that counts, and so nothing to compare: {text}",
        file=source,
        remedy=remedy,
    )


def only(sources: Sequence[Path], title: str) -> Path:
    """The source, for a kind whose reports have a single one. InputError if there are several;
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
    """Write the page of results of one kind. InputError if they cannot be read, or cannot be in
    one report, or if `out` cannot be written."""
    from gridbench.pages.document import write_page

    write_page(kind_of(sources).document(sources, out), out)


def report_markdown(sources: Sequence[Path]) -> str:
    """The same as Markdown: sentences and tables. InputError as above."""
    from gridbench.pages.document import markdown

    return markdown(kind_of(sources).document(sources))


def all_kinds() -> Iterator[ResultKind]:
    """All that there are."""
    yield from map(module_of, (*_PACKAGES, RUNS))


def module_of(package: str) -> ResultKind:
    """Kinds of the package."""
    package, _, name = package.partition(":")
    module = importlib.import_module(f"{package}.result_kind")
    return cast("ResultKind", getattr(module, name) if name else module)


def rules_for(source: Path) -> Rules[Any] | None:
    """What a folder or file is judged by, if it is of another kind than runs and logs."""
    kind = next((kind for kind in map(module_of, _PACKAGES) if kind.holds(source)), None)
    return None if kind is None else rules_of(kind)


def model_rules() -> Rules[Any]:
    """What models of `gridbench advise` are judged by, which are no results of their own."""
    return cast("Rules[Any]", importlib.import_module("gridbench.model.rules").RULES)


def rules_of(kind: ResultKind) -> Rules[Any]:
    """Rules for results of this kind."""
    module, _, name = kind.rules.partition(":")
    return cast("Rules[Any]", getattr(importlib.import_module(module), name or "RULES"))
