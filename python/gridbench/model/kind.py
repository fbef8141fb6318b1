"""A kind of results that can be modelled, and what its models answer."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from gridbench.errors import InputError
from gridbench.formats import counted, duration, size, whole
from gridbench.result_kind import all_kinds
from gridbench.result_kind import kind_of as result_kind_of

if TYPE_CHECKING:
    from gridbench.pages.document import Document

# ---- Measured ranges

_SLACK = 1.05
"""How far beyond the measured a value may be and still count as measured."""
UNKNOWN = 10.0
"""Times beyond what was measured that counts at most."""


@dataclass(frozen=True, slots=True)
class Span:
    """From the smallest to the largest value that was measured."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether `value` lies in it, or next to it."""
        return self.low / _SLACK <= value <= self.high * _SLACK

    def factor(self, value: float) -> float:
        """How many times `value` is beyond the nearer end; 1 within."""
        if self.holds(value):
            return 1.0
        over = value / self.high if self.high else float("inf")
        under = self.low / value if value else float("inf")
        return max(over, under)

    def distance(self, value: float) -> float:
        """The logarithm of that, `UNKNOWN` at most."""
        return math.log(min(self.factor(value), UNKNOWN))

    def outside(self, what: str, value: float, shown: Callable[[float], str]) -> str:
        """That `value` is beyond it, as a sentence without a full stop."""
        if self.high == 0:
            return f"no run had {what}, and this has {shown(value)}"
        return (
            f"{what}: {shown(value)} is outside what was measured, {shown(self.low)} to"
            f" {shown(self.high)}"
        )

    def describe(self, shown: Callable[[float], str]) -> str:
        """`1 KB to 10 MB`."""
        if self.low == self.high:
            return shown(self.low)
        return f"{shown(self.low)} to {shown(self.high)}"


def span_of(values: Iterable[float]) -> Span:
    """Of all of them; at least one."""
    known = list(values)
    return Span(min(known), max(known))


LEAST_ERROR = 0.02
"""As logarithm of a ratio: no model of a machine is surer of the next run."""
BEYOND = 0.25
"""Standard deviation of the logarithm of what is predicted, for each factor of e beyond what was
measured. With ten times as many cores the interval is from a 2.6th to 2.6 times."""
_REACH = 1.645
"""Standard deviations to either side in a 90 % interval of a normal distribution."""
_MOST = 10.0
"""Of such logarithms: what is that unsure is not known at all."""


def widening(deviation: float) -> float:
    """The factor from a prediction to either end of its 90 % interval, by the standard deviation of
    its logarithm."""
    return math.exp(min(_MOST, _REACH * deviation))


# ---- Kinds

Unit = Literal["", "bytes", "s"]
"""Of a parameter; none: it is a whole number of something."""
SearchWatch = Callable[[int, int], None]
"""Told now and then how many steps of a fit have been done, and how many there will be."""
Fitting = Callable[[str], SearchWatch | None]
"""Told what a model is fitted to next; returns who watches that."""


def nobody(_: str) -> None:
    """Watches none."""


@dataclass(frozen=True, slots=True)
class ModelParameter:
    """Something that decides what a measurement takes."""

    name: str
    """As it is given on the command line."""
    what: str
    """In words: `clients`, `size of an object`."""
    unit: Unit = ""
    usual: float | None = None
    """Default; None: the option is required, unless all measurements have the
    same."""
    harder: Literal["more", "less"] = "more"
    """In which direction it asks for what was never seen."""

    def shown(self, value: float) -> str:
        """The value with its unit."""
        if self.unit == "bytes":
            return size(value)
        return duration(value) if self.unit == "s" else whole(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseEstimate:
    """What a case is expected to take; seconds."""

    total: float
    low: float
    """Of the 90 % interval; so too `high`."""
    high: float
    parts: Mapping[str, float] = field(default_factory=dict)
    """What it is made of, by name; none: it has no parts."""
    outside: tuple[str, ...] = ()
    """In which ways it is unlike all that was measured, as sentences without a full stop; none: it
    is within."""


class FittedModel(Protocol):
    """What is known of one engine, or program, in one place."""

    @property
    def name(self) -> str:
        """Of the engine or program, as it is given on the command line."""

    @property
    def told(self) -> str:
        """What it is a model of, in one line."""

    @property
    def quantity(self) -> str:
        """What it predicts, in words: `time of a task`."""

    @property
    def measured(self) -> Mapping[str, Span]:
        """The span of each parameter, by its name, in the measurements that it is fitted to."""

    def expect(self, case: Mapping[str, float]) -> CaseEstimate:
        """What a case is expected to take, by the values of all parameters.

        InputError if there is no such case.
        """

    def document(self) -> Document:
        """Its terms with units and intervals, how well it fits, and how wrong it is about what it
        was not fitted to."""


class Subject(Protocol):
    """The measurements that one model is fitted to."""

    @property
    def name(self) -> str:
        """Of the engine or program."""

    @property
    def told(self) -> str:
        """What they are of, in one line."""

    @property
    def count(self) -> int:
        """How many there are."""

    def fits(self, *, test: bool) -> int:
        """How many fits that takes."""

    def fit(self, *, test: bool, fitting: Fitting = nobody) -> FittedModel:
        """The model; `test`: fit to a part of the measurements as well, to see how wrong it is.

        InputError if there are too few, which says what is missing.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSubjects:
    """What was found in folders."""

    subjects: Sequence[Subject]
    noun: str
    """What one measurement is called."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Measurements that cannot serve, by why."""
    remedy: str = ""
    """What helps if none can serve."""

    def none_serves(self) -> InputError:
        """What to raise if there are no subjects."""
        return none_serves(self.left_out, self.noun, self.remedy)


def none_serves(left_out: Counter[str], noun: str, remedy: str) -> InputError:
    """That no measurement can serve, by why, for so many of them each."""
    why = "; ".join(f"{counted(count, noun)}: {reason}" for reason, count in left_out.items())
    return InputError(f"none of the {noun}s can be used: {why or 'there are none'}", remedy=remedy)


class ModelKind(Protocol):
    """What a benchmark says of its results, so that `gridbench model` can fit models to them, and
    `gridbench simulate` can predict other cases.

    It is a module of the benchmark's package, model_kind.py, which result_kind.py names. The models
    of a kind all have the same parameters.
    """

    name: str
    """What is modelled, in the plural: `tasks`; files of models say it."""
    parameters: tuple[ModelParameter, ...]

    def read(self, folders: Sequence[Path]) -> ModelSubjects:
        """All measurements in these folders. InputError for a folder that cannot be used."""

    def to_record(self, models: Sequence[Any]) -> dict[str, Any]:
        """For JSON, models of this kind with all that is known of them."""

    def from_record(self, record: Any) -> Sequence[FittedModel]:
        """The models in what `to_record` gives. RecordError if it is something else."""


def kind_of(folders: Sequence[Path]) -> ModelKind:
    """The kind that all the folders are of. InputError if there is none, or they are of several."""
    modules: dict[str, Path] = {}
    for folder in folders:
        results = result_kind_of([folder])
        if results.model is None:
            raise InputError(
                f"holds results of {results.title}, which has no model",
                file=folder,
                remedy="give folders of gridbench run, scenario, data or sync",
            )
        modules.setdefault(results.model, folder)
    if len(modules) > 1:
        one, other = (_module(name).name for name in list(modules)[:2])
        raise InputError(
            f"holds {other}, and {folders[0]} holds {one}",
            file=list(modules.values())[1],
            remedy="fit a model to each of them alone",
        )
    return _module(next(iter(modules)))


def kind_named(name: str) -> ModelKind | None:
    """The kind of what files of models call so."""
    return next((kind for kind in model_kinds() if kind.name == name), None)


def model_kinds() -> Iterator[ModelKind]:
    """All that there are."""
    for name in dict.fromkeys(kind.model for kind in all_kinds()):
        if name is not None:
            yield _module(name)


def _module(name: str) -> ModelKind:
    return cast("ModelKind", importlib.import_module(name))
