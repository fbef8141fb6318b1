"""A published figure beside ours."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gridbench.model.profiles import Given
from gridbench.published.printed import Computed, Printed

Verdict = Literal["agrees", "agrees within the inputs", "exception", "differs"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure, worked out again from its inputs."""

    row: str
    """Which row of its table it is in."""
    quantity: str
    unit: str
    theirs: Printed
    ours: Computed
    exception: str = ""
    """Why it cannot be reproduced, if that is known; else empty."""

    @property
    def difference(self) -> float:
        """Ours less theirs."""
        return self.ours.value - self.theirs.value

    @property
    def verdict(self) -> Verdict:
        """Whether the two agree.

        `agrees`: ours, rounded as theirs is, is the same. `agrees within the inputs`: it would be
        for inputs that are rounded to those that are printed. `exception`: they do not agree,
        and it is known why.
        """
        half = self.theirs.half_unit * (1 + 1e-6)
        if abs(self.difference) <= half:
            return "agrees"
        low, high = self.theirs.value - half, self.theirs.value + half
        if self.ours.low <= high and self.ours.high >= low:
            return "agrees within the inputs"
        return "exception" if self.exception else "differs"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "row": self.row,
            "quantity": self.quantity,
            "unit": self.unit,
            "theirs": self.theirs.value,
            "digits": self.theirs.digits,
            "ours": self.ours.value,
            "difference": self.difference,
            "verdict": self.verdict,
            "reason": self.exception,
        }


@dataclass(frozen=True, slots=True)
class Prediction:
    """A measured figure, what the report expected of it, and what the pipeline model does."""

    row: str
    unit: str
    measured: Printed
    theirs: float | None
    ours: float

    @property
    def error(self) -> float:
        """Ours over measured, less 1."""
        return self.ours / self.measured.value - 1

    @property
    def their_error(self) -> float:
        """Theirs over measured, less 1; NaN if there is none."""
        return math.nan if self.theirs is None else self.theirs / self.measured.value - 1

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "row": self.row,
            "unit": self.unit,
            "measured": self.measured.value,
            "theirs": self.theirs,
            "their_error": None if self.theirs is None else self.their_error,
            "ours": self.ours,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Variant:
    """The same predictions with another choice of parameters that the sources allow."""

    what: str
    mean_error: float
    """Mean of the absolute relative errors."""


@dataclass(frozen=True, slots=True)
class Reproduced:
    """A table of figures that follow from others."""

    name: str
    """As one asks for it: the table's number in the report."""
    title: str
    how: str
    """The arithmetic, in a sentence or two."""
    figures: tuple[Figure, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "how": self.how,
            "figures": [figure.to_dict() for figure in self.figures],
        }


@dataclass(frozen=True, slots=True)
class Predicted:
    """A table of figures that the pipeline model predicts."""

    name: str
    title: str
    how: str
    predictions: tuple[Prediction, ...]
    parameters: tuple[Given, ...] = ()
    """What the model was given, with sources."""
    variants: tuple[Variant, ...] = ()
    comparable: bool = True
    """Whether its rows are of one kind, so that a mean of their errors says something."""

    @property
    def compared(self) -> bool:
        """Whether the report has predictions as well, and a mean of their errors says something."""
        return self.comparable and any(one.theirs is not None for one in self.predictions)

    @property
    def mean_error(self) -> float:
        """Mean of the absolute relative errors, ours."""
        return _mean([abs(one.error) for one in self.predictions])

    @property
    def their_mean_error(self) -> float:
        """The same of the report's predictions; NaN if it has none."""
        return _mean([abs(one.their_error) for one in self.predictions if one.theirs is not None])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        theirs = self.their_mean_error if self.compared else None
        return {
            "name": self.name,
            "title": self.title,
            "how": self.how,
            "mean_absolute_error": self.mean_error if self.comparable else None,
            "their_mean_absolute_error": theirs,
            "predictions": [one.to_dict() for one in self.predictions],
            "parameters": [asdict(given) for given in self.parameters],
            "variants": [asdict(variant) for variant in self.variants],
        }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan
